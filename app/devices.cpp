// tilewave devices: what there is to run on.
#include <iostream>

#include "app/command.h"
#include "app/step_table.h"
#include "framework/io/json_lines.h"
#include "framework/measure/calibration.h"
#include "kernels/device_profiles.h"

namespace tilewave {
namespace {

std::string known(std::int64_t value, const std::string& text) { return value > 0 ? text : "unknown"; }

void print_gpus(bool json) {
  CudaDevices gpus = probe_cuda();
  for (DeviceInfo& gpu : gpus.usable) {
    const std::string note = use_calibration(gpu);
    if (!note.empty()) std::cerr << "tilewave: " << note << '\n';
    if (json) {
      std::cout << JsonObject()
                       .add("device", sentence("cuda:", gpu.index))
                       .add("name", gpu.name)
                       .add("capability", gpu.capability)
                       .add("sms", gpu.sm_count)
                       .add("clock_hz", gpu.clock_hz)
                       .add("bandwidth_bytes_per_s", gpu.bandwidth_bytes_per_s)
                       .add("l2_bytes", gpu.l2_bytes)
                       .add("shared_bytes", gpu.shared_bytes)
                       .add("memory_bytes", gpu.memory_bytes)
                       .add("driver", gpu.driver)
                       .add("predicted_times", source_of(time_model_of(gpu)))
                       .text()
                << '\n';
      continue;
    }
    const double bf16_peak = peak_flops_per_s(gpu, DType::bf16, MathMode::ieee);
    std::cout << "cuda:" << gpu.index << "    " << gpu.name << '\n'
              << "  SMs     " << gpu.sm_count << ", compute capability " << gpu.capability / 10 << '.' << gpu.capability % 10 << ", "
              << 1e-6 * gpu.clock_hz << " MHz\n"
              << "  bf16    " << (bf16_peak > 0.0 ? sentence("at most ", 1e-12 * bf16_peak, " TFLOP/s") : "unknown") << '\n'
              << "  caches  L2 " << bytes_text(gpu.l2_bytes) << ", " << bytes_text(gpu.shared_bytes) << " of shared memory a block\n"
              << "  memory  " << bytes_text(gpu.memory_bytes) << ", " << 1e-9 * gpu.bandwidth_bytes_per_s << " GB/s\n"
              << "  driver  " << gpu.driver << '\n'
              << "  plans   by predicted times, " << source_of(time_model_of(gpu)) << '\n';
  }
  if (!json && !gpus.refused.empty()) std::cout << "cuda      " << gpus.refused << '\n';
}

int print_devices(bool json) {
  const DeviceInfo cpu = probe_cpu();
  if (json) {
    std::cout << JsonObject()
                     .add("device", "cpu")
                     .add("name", cpu.name)
                     .add("threads", cpu.sm_count)
                     .add("instruction_set", cpu.instruction_set)
                     .add("vector_bytes", cpu.vector_bytes)
                     .add("l1_bytes", cpu.l1_bytes)
                     .add("l2_bytes", cpu.l2_bytes)
                     .add("l3_bytes", cpu.l3_bytes)
                     .add("memory_bytes", cpu.memory_bytes)
                     .text()
              << '\n';
    print_gpus(json);
    return 0;
  }
  std::cout << "cpu       " << (cpu.name.empty() ? "unknown" : cpu.name) << '\n'
            << "  threads " << cpu.sm_count << '\n'
            << "  vectors " << cpu.instruction_set << ", " << cpu.vector_bytes << " bytes\n"
            << "  caches  L1 " << known(cpu.l1_bytes, bytes_text(cpu.l1_bytes)) << ", L2 " << known(cpu.l2_bytes, bytes_text(cpu.l2_bytes))
            << ", L3 " << known(cpu.l3_bytes, bytes_text(cpu.l3_bytes)) << '\n'
            << "  memory  " << known(cpu.memory_bytes, bytes_text(cpu.memory_bytes)) << '\n';
  print_gpus(json);
  return 0;
}

}  // namespace

Command add_devices(CLI::App& program) {
  CLI::App* command = program.add_subcommand("devices", "list what there is to run on");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "one JSON object a device");
  return {command, [json] { return print_devices(*json); }};
}

}  // namespace tilewave
