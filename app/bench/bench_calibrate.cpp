// Measures, fits and keeps a GPU's cost model; or fits again the GEMMs that were measured and saved.
#include <iostream>

#include "app/bench/bench.h"
#include "app/bench/calibrate.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/file.h"
#include "framework/io/json_lines.h"

namespace tilewave {
namespace {

struct Options {
  DeviceOptions device;
  std::filesystem::path save, fit;
  PageOptions page;
  bool json = false;
};

struct Fitted {
  const Calibration& calibration;
  const CostModel& before;
  const std::filesystem::path& kept;
};
void print(const Fitted& fitted, const Page& page) {
  const auto& [calibration, before, kept] = fitted;
  const auto line = [&](const std::string& text) { std::cout << wrapped(text, page) << '\n'; };
  const auto change = [](double from, double to) { return concat(percent_text(from), " -> ", percent_text(to)); };
  line(concat("predicted time of each problem's fastest plan, mean error over ", calibration.points,
              " GEMMs: ", change(calibration.error_before, calibration.error_after)));
  line(concat("time of the plan chosen over the fastest's: ", number_text(calibration.choice_before, "%.3f"), " -> ",
              number_text(calibration.choice_after, "%.3f")));
  if (calibration.operation_error_after > 0.0) {
    line(concat("other operations, mean error: ", change(calibration.operation_error_before, calibration.operation_error_after)));
  }
  if (!kept.empty()) line(concat("kept in ", kept.string()));
  std::cout << '\n';
  Table table({{.heading = "constant", .align = Align::left}, {.heading = "before"}, {.heading = "after"}});
  for (const CostConstant& constant : cost_constants()) {
    table.add(
        {std::string(constant.name), number_text(before.*constant.value, "%.5g"), number_text(calibration.model.*constant.value, "%.5g")});
  }
  for (const OperationConstant& constant : operation_constants()) {
    table.add({std::string(constant.name), number_text(before.operations.*constant.value, "%.5g"),
               number_text(calibration.model.operations.*constant.value, "%.5g")});
  }
  table.print(std::cout, page);
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
  if (read.left_out > 0) std::cerr << path.string() << ": " << read.left_out << " GEMMs are left out, whose kernels do not run here\n";
  return {.gemms = std::move(read.gemms.gemms), .operations = {}};
}

int calibrate(const Options& options) {
  if (!options.save.empty()) check_output_file("--save", options.save);
  const DeviceInfo device = options.device.probe();
  TW_CHECK_INPUT(device.backend == Backend::cuda, "bench calibrate fits the cost model of a GPU, and ", device.name,
                 " is none; a CPU's kernels have models of their own (docs/understand/cpu-gemm.md).");
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
    print({.calibration = calibration, .before = before, .kept = kept}, options.page.of_stdout());
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
  options->page.add_to(*command);
  return {command, [options] { return calibrate(*options); }};
}

}  // namespace tilewave
