// tilewave devices: what there is to run on.
#include <iostream>

#include "app/command.h"
#include "app/step_table.h"
#include "framework/io/json_lines.h"

namespace tilewave {
namespace {

std::string known(std::int64_t value, const std::string& text) { return value > 0 ? text : "unknown"; }

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
    return 0;
  }
  std::cout << "cpu       " << (cpu.name.empty() ? "unknown" : cpu.name) << '\n'
            << "  threads " << cpu.sm_count << '\n'
            << "  vectors " << cpu.instruction_set << ", " << cpu.vector_bytes << " bytes\n"
            << "  caches  L1 " << known(cpu.l1_bytes, bytes_text(cpu.l1_bytes)) << ", L2 " << known(cpu.l2_bytes, bytes_text(cpu.l2_bytes))
            << ", L3 " << known(cpu.l3_bytes, bytes_text(cpu.l3_bytes)) << '\n'
            << "  memory  " << known(cpu.memory_bytes, bytes_text(cpu.memory_bytes)) << '\n';
  if (!kHasCuda) std::cout << "cuda      this build has no CUDA kernels\n";
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
