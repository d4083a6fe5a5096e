// tilewave devices: what there is to run on, and the libraries through which ranks speak, as a table or a JSON object each. What is not
// known is "unknown" in one, null in the other. With --for, a profile's figures, and by type what its units multiply and which multiples
// they want.
#include <cmath>
#include <iostream>
#include <unistd.h>
#include <variant>

#include "app/options/command.h"
#include "app/text/page.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "framework/measure/calibration.h"
#include "kernels/core/communicator.h"
#include "kernels/core/device_profiles.h"
#include "kernels/core/unit_rates.h"
#include "models/planning/plan.h"

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
          {"link", "link_bytes_per_s", gpu.link_bytes_per_s, rate_text(1e-9 * gpu.link_bytes_per_s) + " GB/s per direction"},
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

// A type as the units of a GPU have it; 0: no such units, or none that are printed.
struct TypeRates {
  std::string_view type;
  int cuda_cores = 0, tensor_cores = 0;
};
std::vector<TypeRates> type_rates(const UnitRates& rates) {
  std::vector<TypeRates> all = {{"FP64", rates.fp64, rates.tensor_fp64}, {"FP32", rates.fp32, 0},
                                {"TF32", 0, rates.tensor_tf32},          {"FP16", rates.fp16, rates.tensor_fp16},
                                {"BF16", rates.bf16, rates.tensor_bf16}, {"FP8", 0, rates.tensor_fp8},
                                {"INT8", rates.int8, rates.tensor_int8}, {"FP4", 0, rates.tensor_fp4},
                                {"INT4", 0, rates.tensor_int4},          {"INT1", 0, rates.tensor_int1}};
  std::erase_if(all, [](const TypeRates& one) { return one.cuda_cores == 0 && one.tensor_cores == 0; });
  return all;
}

void print_types(const DeviceInfo& device, Output output) {
  const UnitRates rates = unit_rates(device);
  const std::vector<AlignedMultiple> multiples = aligned_multiples(device);
  const auto multiple_of = [&](std::string_view type) {
    for (const AlignedMultiple& one : multiples) {
      if (one.type == type) return one;
    }
    return AlignedMultiple{};
  };
  Table table({{.heading = "type", .align = Align::left},
               {.heading = "multiply-adds per clock and SM, CUDA cores"},
               {.heading = "Tensor Cores"},
               {.heading = "multiple for Tensor Cores"},
               {.heading = "best multiple"}});
  const auto cell = [](std::int64_t number) { return number > 0 ? count_text(number) : std::string("-"); };
  const auto known = [](std::int64_t number) { return number > 0 ? static_cast<double>(number) : NAN; };
  for (const TypeRates& one : type_rates(rates)) {
    const AlignedMultiple multiple = multiple_of(one.type);
    table.add({std::string(one.type), cell(one.cuda_cores), cell(one.tensor_cores), cell(multiple.least), cell(multiple.best)});
    if (output == Output::table) continue;
    JsonObject object;
    object.add("kind", "type").add("device", device.name).add("type", one.type);
    object.add("cuda_core_multiply_adds", known(one.cuda_cores)).add("tensor_core_multiply_adds", known(one.tensor_cores));
    object.add("least_multiple", known(multiple.least)).add("best_multiple", known(multiple.best)).add("source", rates.source);
    std::cout << object.text() << '\n';
  }
  if (output == Output::json) return;
  const Page page = page_of(STDOUT_FILENO, Columns::fitting);
  table.print(std::cout, page);
  std::cout << wrapped(concat("-: no such units, or none that are printed. Rates: ", rates.source,
                              ". Multiples are of elements that rows have: Matrix Multiplication Background, 2.2"),
                       page)
            << '\n';
}

int print_profile(const std::string& name, Output output) {
  const DeviceInfo device = profile_named(name);
  std::vector<Field> fields = gpu_fields(device);
  std::erase_if(fields, [](const Field& field) {
    return field.key == "device" || field.key == "driver" || field.key == "bf16_peak_flops_per_s" || field.key == "predicted_times";
  });
  const DeviceProfile& profile = *find_profile(device);
  const double cache = profile.cache_bandwidth_bytes_per_s, ratio = ops_per_byte(device, DType::f16, MathMode::ieee);
  const double of_cache = cache > 0.0 ? profile.f16_flops_per_s / cache : 0.0;
  fields.push_back({"f16 peak", "f16_peak_flops_per_s", profile.f16_flops_per_s, flops_text(profile.f16_flops_per_s)});
  fields.push_back({"f32 peak", "f32_peak_flops_per_s", profile.f32_flops_per_s, flops_text(profile.f32_flops_per_s)});
  fields.push_back({"f16 ops:byte", "f16_ops_per_byte", ratio, number_text(ratio, "%.1f")});
  fields.push_back({"... from L2", "f16_l2_ops_per_byte", of_cache, number_text(of_cache, "%.1f")});
  fields.push_back({"source", "source", source_of_figures(device), ""});
  fields.push_back({"predicted times", "predicted_times", source_of(cost_model_of(device)), ""});
  print(fields, output);
  print_types(device, output);
  return 0;
}

// What ranks speak through, or what to install; and where it was looked for.
void print_library(const std::string& name, const FoundLibrary& library, Output output) {
  if (output == Output::json) {
    JsonObject object;
    object.add("library", name);
    for (const Field& field :
         {Field{"", "version", library.version, ""}, {"", "path", library.path, ""}, {"", "refused", library.refused, ""}}) {
      add_to(object, field);
    }
    std::vector<JsonObject> looked;
    for (const std::string& place : library.looked) looked.emplace_back().add("at", place);
    object.add("looked", looked);
    std::cout << object.text() << '\n';
    return;
  }
  std::string looked;
  for (const std::string& place : library.looked) looked += (looked.empty() ? "" : ", ") + place;
  std::vector<Field> fields = {{name, "", library.refused.empty() ? concat(library.version, ", ", library.path) : library.refused, ""}};
  if (!looked.empty()) fields.push_back({"looked for at", "", looked, ""});
  print(fields, output);
}

int print_devices(Output output) {
  print(cpu_fields(probe_cpu()), output);
  CudaDevices gpus = probe_cuda();
  for (DeviceInfo& gpu : gpus.usable) {
    const std::string note = use_calibration(gpu);
    if (!note.empty()) std::cerr << "tilewave: " << note << '\n';
    print(gpu_fields(gpu), output);
  }
  print_library("MPI", find_mpi(), output);
  print_library("NCCL", find_nccl(), output);
  if (output == Output::table && !gpus.refused.empty()) std::cout << "cuda: " << gpus.refused << '\n';
  return 0;
}

}  // namespace

Command add_devices(CLI::App& program) {
  CLI::App* command = program.add_subcommand("devices", "list what there is to run on, or what a GPU that need not be here can do");
  struct Arguments {
    std::string profile;
    bool json = false;
  };
  const auto options = std::make_shared<Arguments>();
  command->add_option("--for", options->profile, "this GPU's figures instead: rates and multiples by type")->type_name("NAME");
  command->add_flag("--json", options->json, "one JSON object a device and a library, and with --for one a type");
  return {command, [options] {
            const Output output = options->json ? Output::json : Output::table;
            return options->profile.empty() ? print_devices(output) : print_profile(options->profile, output);
          }};
}

}  // namespace tilewave
