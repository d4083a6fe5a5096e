// Measures, fits and keeps a GPU's cost model; or fits again the GEMMs that were measured and saved.
#include <cstdio>
#include <iostream>

#include "app/bench/bench.h"
#include "app/bench/calibrate.h"
#include "framework/io/file.h"
#include "framework/io/json_lines.h"

namespace tilewave {
namespace {

struct Options {
  DeviceOptions device;
  std::filesystem::path save, fit;
  bool json = false;
};

void print(const Calibration& calibration, const CostModel& before, const std::filesystem::path& kept) {
  std::printf("%-32s %12s %12s\n", "constant", "before", "after");
  for (const CostConstant& constant : cost_constants()) {
    std::printf("%-32s %12.5g %12.5g\n", std::string(constant.name).c_str(), before.*constant.value, calibration.model.*constant.value);
  }
  for (const OperationConstant& constant : operation_constants()) {
    std::printf("%-32s %12.5g %12.5g\n", std::string(constant.name).c_str(), before.operations.*constant.value,
                calibration.model.operations.*constant.value);
  }
  std::printf(
      "%zu GEMMs. Predicted time of each problem's fastest plan, mean error: %.1f %% -> %.1f %%. Time of the plan chosen over the "
      "fastest's: %.3f -> %.3f\n",
      calibration.points, 100.0 * calibration.error_before, 100.0 * calibration.error_after, calibration.choice_before,
      calibration.choice_after);
  if (calibration.operation_error_after > 0.0) {
    std::printf("Other operations, mean error: %.1f %% -> %.1f %%\n", 100.0 * calibration.operation_error_before,
                100.0 * calibration.operation_error_after);
  }
  if (!kept.empty()) std::printf("kept in %s\n", kept.c_str());
}

// What --save wrote on this GPU.
CalibrationTimes saved_times(const std::filesystem::path& path, const DeviceInfo& device) {
  ReadGemms read = read_planned_gemms(path, device);
  TW_CHECK_INPUT(read.gemms.device == device.name && read.gemms.driver == device.driver, "--fit ", path.string(), ": holds times of ",
                 read.gemms.device, " with driver ", read.gemms.driver, ", and this is ", device.name, " with driver ", device.driver,
                 "; measure here with --save.");
  for (const auto& gemm : read.gemms.gemms) {
    TW_CHECK_INPUT(gemm.seconds > 0.0, "--fit ", path.string(), ": holds plans without times; name what --save wrote.");
  }
  if (read.left_out > 0) std::cerr << path.string() << ": " << read.left_out << " GEMMs are left out, whose rows do not run here\n";
  return {.gemms = std::move(read.gemms.gemms), .operations = {}};
}

int calibrate(const Options& options) {
  if (!options.save.empty()) check_output_file("--save", options.save);
  const DeviceInfo device = options.device.probe();
  TW_CHECK_INPUT(device.backend == Backend::cuda, "bench calibrate fits the cost model of a GPU, and ", device.name,
                 " is none; a CPU's rows have models of their own (docs/understand/cpu-gemm.md).");
  const CalibrationTimes times = options.fit.empty() ? measure_calibration(options.device, device) : saved_times(options.fit, device);
  if (!options.save.empty()) write_planned_gemms(options.save, {.device = device.name, .driver = device.driver, .gemms = times.gemms});
  const Calibration calibration = calibration_of(times, device);
  const std::filesystem::path kept = calibration_path(device);
  if (!kept.empty()) save_calibration(kept, calibration, device);
  if (options.json) {
    JsonObject object;
    object.add("device", device.name).add("points", calibration.points).add("error_before_fraction", calibration.error_before);
    object.add("error_after_fraction", calibration.error_after).add("chosen_time_before_fraction", calibration.choice_before);
    object.add("chosen_time_after_fraction", calibration.choice_after).add("kept", kept.string());
    for (const CostConstant& constant : cost_constants()) object.add(constant.name, calibration.model.*constant.value);
    for (const OperationConstant& constant : operation_constants()) object.add(constant.name, calibration.model.operations.*constant.value);
    std::cout << object.text() << '\n';
  } else {
    CostModel before = default_cost_model(device.name);
    if (!times.operations) before.operations = cost_model_of(device).operations;
    print(calibration, before, kept);
  }
  return 0;
}

}  // namespace

Command add_bench_calibrate(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "calibrate", "GPU: fit the cost model that plans are chosen by to what this GPU measures, and keep it (docs/understand/gemm.md)");
  const auto options = std::make_shared<Options>();
  options->device.add_to(*command);
  command->add_option("--save", options->save, "write the GEMMs measured, as JSON lines")->type_name("FILE");
  command->add_option("--fit", options->fit, "fit the GEMMs saved, and measure nothing")->type_name("FILE");
  command->add_flag("--json", options->json, "one JSON object");
  return {command, [options] { return calibrate(*options); }};
}

}  // namespace tilewave
