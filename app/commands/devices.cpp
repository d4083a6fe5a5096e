// tilewave devices: what there is to run on, as a table or a JSON object a device. What is not known is "unknown" in one, null in the
// other.
#include <cmath>
#include <iostream>
#include <unistd.h>
#include <variant>

#include "app/options/command.h"
#include "app/text/page.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "framework/measure/calibration.h"
#include "kernels/core/device_profiles.h"

namespace tilewave {
namespace {

struct Field {
  std::string label, key;
  std::variant<std::string, std::int64_t, double> value;
  std::string text;  // of the value; empty: the value itself
};

std::string text_of(const Field& field) {
  return std::visit(
      [&]<class Value>(const Value& value) {
        const bool known = value != Value();
        return known && !field.text.empty() ? field.text : known ? concat(value) : "unknown";
      },
      field.value);
}

void add_to(JsonObject& object, const Field& field) {
  std::visit([&]<class Value>(const Value& value) { value != Value() ? object.add(field.key, value) : object.add(field.key, NAN); },
             field.value);
}

Field bytes_field(const char* label, const char* key, std::int64_t bytes) { return {label, key, bytes, bytes_text(bytes)}; }

std::vector<Field> cpu_fields(const DeviceInfo& cpu) {
  return {{"device", "device", "cpu", ""},
          {"name", "name", cpu.name, ""},
          {"threads", "threads", cpu.sm_count, ""},
          {"instruction set", "instruction_set", cpu.instruction_set, ""},
          bytes_field("vector", "vector_bytes", cpu.vector_bytes),
          bytes_field("L1 cache", "l1_bytes", cpu.l1_bytes),
          bytes_field("L2 cache", "l2_bytes", cpu.l2_bytes),
          bytes_field("L3 cache", "l3_bytes", cpu.l3_bytes),
          bytes_field("memory", "memory_bytes", cpu.memory_bytes)};
}

std::vector<Field> gpu_fields(const DeviceInfo& gpu) {
  const double peak = peak_flops_per_s(gpu, DType::bf16, MathMode::ieee);
  return {{"device", "device", concat("cuda:", gpu.index), ""},
          {"name", "name", gpu.name, ""},
          {"capability", "capability", std::int64_t{gpu.capability}, concat(gpu.capability / 10, '.', gpu.capability % 10)},
          {"SMs", "sms", gpu.sm_count, ""},
          {"clock", "clock_hz", gpu.clock_hz, rate_text(1e-6 * gpu.clock_hz) + " MHz"},
          {"bf16 peak", "bf16_peak_flops_per_s", peak, flops_text(peak)},
          bytes_field("L2 cache", "l2_bytes", gpu.l2_bytes),
          bytes_field("shared memory", "shared_bytes", gpu.shared_bytes),
          bytes_field("memory", "memory_bytes", gpu.memory_bytes),
          {"bandwidth", "bandwidth_bytes_per_s", gpu.bandwidth_bytes_per_s, rate_text(1e-9 * gpu.bandwidth_bytes_per_s) + " GB/s"},
          {"driver", "driver", gpu.driver, ""},
          {"predicted times", "predicted_times", source_of(cost_model_of(gpu)), ""}};
}

void print(const std::vector<Field>& fields, Output output) {
  if (output == Output::json) {
    JsonObject object;
    for (const Field& field : fields) add_to(object, field);
    std::cout << object.text() << '\n';
    return;
  }
  constexpr std::size_t kLabel = 16;
  for (const Field& field : fields) {
    std::string label = field.label;
    label.resize(kLabel, ' ');
    std::cout << wrapped(label + text_of(field), page_of(STDOUT_FILENO, Columns::fitting), kLabel) << '\n';
  }
  std::cout << '\n';
}

int print_devices(Output output) {
  print(cpu_fields(probe_cpu()), output);
  CudaDevices gpus = probe_cuda();
  for (DeviceInfo& gpu : gpus.usable) {
    const std::string note = use_calibration(gpu);
    if (!note.empty()) std::cerr << "tilewave: " << note << '\n';
    print(gpu_fields(gpu), output);
  }
  if (output == Output::table && !gpus.refused.empty()) std::cout << "cuda: " << gpus.refused << '\n';
  return 0;
}

}  // namespace

Command add_devices(CLI::App& program) {
  CLI::App* command = program.add_subcommand("devices", "list what there is to run on");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "one JSON object a device");
  return {command, [json] { return print_devices(*json ? Output::json : Output::table); }};
}

}  // namespace tilewave
