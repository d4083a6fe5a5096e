// One line a GEMM, flat.
#include "framework/io/planned_gemms.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/io/file.h"
#include "framework/io/json_fault.h"
#include "framework/io/json_lines.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;
constexpr std::string_view kFormat = "tilewave planned gemms 2";
constexpr std::string_view kFormatOfRows = "tilewave planned gemms 1";  // where a kernel's name, "row", says all of its composition

std::string line_of(const PlannedGemm& gemm) {
  const GemmProblem& p = gemm.problem;
  const Epilogue& e = p.epilogue;
  JsonObject line;
  line.add("role", name_of(p.role)).add("m", p.m).add("n", p.n).add("k", p.k);
  line.add("a_major", name_of(p.a_major)).add("b_major", name_of(p.b_major)).add("d_major", name_of(p.d_major));
  line.add("operand", name_of(p.operand_dtype)).add("output", name_of(p.output_dtype)).add("math", name_of(p.math));
  line.add("bias", e.bias).add("activation", name_of(e.activation)).add("saved_input", e.saved_input);
  line.add("derivative", name_of(e.derivative)).add("residual", e.residual).add("bias_gradient", e.bias_gradient);
  line.add("output_sums", e.output_sums)
      .add("accumulate", e.accumulate)
      .add("a_pitch", p.a_pitch)
      .add("b_pitch", p.b_pitch)
      .add("d_pitch", p.d_pitch);
  line.add("a_alignment_bytes", p.a_alignment).add("b_alignment_bytes", p.b_alignment).add("d_alignment_bytes", p.d_alignment);
  const GemmComposition& composition = gemm.plan.composition;
  line.add("kernel", composition.kernel).add("schedule", name_of(composition.schedule)).add("swap_ab", composition.swap_ab);
  line.add("epilogue", name_of(composition.epilogue));
  line.add("tile_m", gemm.plan.tile.m).add("tile_n", gemm.plan.tile.n).add("split", gemm.plan.split);
  line.add("algorithm", gemm.plan.algorithm);
  if (gemm.seconds > 0.0) line.add("time_us", 1e6 * gemm.seconds);
  return line.text() + "\n";
}

// The value of that name among the first `count` of an enumeration. Throws where there is none.
template <class Enum>
Enum parsed(const nlohmann::json& line, const char* key, int count) {
  const auto& name = line.at(key).get_ref<const std::string&>();
  for (int i = 0; i < count; ++i) {
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  throw InputError(concat("\"", key, "\": \"", printable(name), "\" is unknown"));
}

GemmProblem problem_in(const nlohmann::json& line) {
  const auto number = [&](const char* key) { return line.at(key).get<std::int64_t>(); };
  const auto flag = [&](const char* key) { return line.at(key).get<bool>(); };
  return {.role = parsed<GemmRole>(line, "role", 3),
          .m = number("m"),
          .n = number("n"),
          .k = number("k"),
          .a_major = parsed<Major>(line, "a_major", 3),
          .b_major = parsed<Major>(line, "b_major", 3),
          .d_major = parsed<Major>(line, "d_major", 3),
          .operand_dtype = parsed<DType>(line, "operand", 5),
          .output_dtype = parsed<DType>(line, "output", 5),
          .math = parsed<MathMode>(line, "math", 2),
          .epilogue = {.bias = flag("bias"),
                       .activation = parsed<Activation>(line, "activation", 4),
                       .saved_input = flag("saved_input"),
                       .derivative = parsed<Activation>(line, "derivative", 4),
                       .residual = flag("residual"),
                       .bias_gradient = flag("bias_gradient"),
                       .output_sums = line.value("output_sums", false),  // earlier files have none
                       .accumulate = flag("accumulate")},
          .a_pitch = number("a_pitch"),
          .b_pitch = number("b_pitch"),
          .d_pitch = number("d_pitch"),
          .a_alignment = number("a_alignment_bytes"),
          .b_alignment = number("b_alignment_bytes"),
          .d_alignment = number("d_alignment_bytes")};
}

// The kernel that the line names, or null.
const GemmKernel* kernel_in(const nlohmann::json& line, Backend backend) {
  if (line.contains("row")) return find_gemm_kernel(backend, line.at("row").get<std::string>());
  const auto word = [&](const char* key) { return line.at(key).get<std::string>(); };
  const std::string name = word("kernel"), schedule = word("schedule"), epilogue = word("epilogue");
  const bool swap_ab = line.at("swap_ab").get<bool>();
  for (const GemmKernel* kernel : gemm_catalog()) {
    const GemmComposition& c = kernel->composition;
    if (kernel->backend == backend && c.kernel == name && name_of(c.schedule) == schedule && c.swap_ab == swap_ab &&
        name_of(c.epilogue) == epilogue)
      return kernel;
  }
  return nullptr;
}

// The plan that the line names, where this build and device still have it.
std::optional<GemmPlan> plan_in(const nlohmann::json& line, const GemmProblem& problem, const DeviceInfo& device) {
  const GemmKernel* const kernel = kernel_in(line, device.backend);
  const Tile tile = {.m = line.at("tile_m").get<std::int64_t>(), .n = line.at("tile_n").get<std::int64_t>()};
  if (kernel == nullptr || std::ranges::count(kernel->tiles, tile) == 0 || !kernel->refuse(problem, device, {&tile, 1}).empty()) return {};
  const int split = line.at("split").get<int>();
  GemmPlan plan = kernel->plan(problem, tile, device, split);
  plan.algorithm = line.at("algorithm").get<int>();
  if (plan.split != split || plan.algorithm < 0) return {};
  return plan;
}

}  // namespace

void write_planned_gemms(const std::filesystem::path& path, const PlannedGemms& gemms) {
  std::string text =
      JsonObject().add("format", kFormat).add("device", gemms.device).add("driver", gemms.driver).add("catalog", gemms.catalog).text() +
      "\n";
  for (const PlannedGemm& gemm : gemms.gemms) text += line_of(gemm);
  write_file_atomically(path, text);
}

ReadGemms read_planned_gemms(const std::filesystem::path& path, const DeviceInfo& device) {
  std::istringstream lines(read_file(path, kMaxBytes));
  ReadGemms read;
  std::string text;
  std::int64_t number = 0;
  try {
    while (std::getline(lines, text)) {
      ++number;
      const nlohmann::json line = nlohmann::json::parse(text);
      if (number == 1) {
        TW_CHECK_INPUT(line.at("format") == kFormat || line.at("format") == kFormatOfRows, "its format is another");
        read.gemms.device = line.at("device").get<std::string>();
        read.gemms.driver = line.at("driver").get<std::string>();
        read.gemms.catalog = line.value("catalog", std::uint32_t{0});  // earlier files have none
        continue;
      }
      const GemmProblem problem = problem_in(line);
      TW_CHECK_INPUT(problem.m > 0 && problem.n > 0 && problem.k > 0, "M, N and K must be at least 1");
      const std::optional<GemmPlan> plan = plan_in(line, problem, device);
      if (!plan) {
        ++read.left_out;
        continue;
      }
      PlannedGemm& gemm = read.gemms.gemms.emplace_back();
      gemm.problem = problem;
      gemm.plan = *plan;
      gemm.seconds = 1e-6 * line.value("time_us", 0.0);
    }
  } catch (const std::exception& error) {
    throw InputError(concat(path.string(), ", line ", number, ": ", json_fault(error), "; remove the file and it is made anew."));
  }
  TW_CHECK_INPUT(number > 0, path.string(), ": is empty; remove the file and it is made anew.");
  return read;
}

std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  if (const auto cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "tilewave";
  const auto home = variable("HOME");
  return home.empty() ? home : home / ".cache" / "tilewave";
}

std::string file_name_of(const DeviceInfo& device) {
  std::string name;
  for (const char letter : device.name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name;
}

}  // namespace tilewave
