// Points, fit and file of a calibration.
#include "framework/measure/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/io/file.h"
#include "framework/io/json_fault.h"
#include "framework/measure/gemm_scratch.h"
#include "framework/measure/least_squares.h"
#include "framework/tensor/pitch.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 20;
constexpr std::string_view kFormat =
    "tilewave time "
    "model 10";  // a word that stored files begin with

// A GEMM of a fully-connected layer as a training step poses it.
GemmProblem problem(GemmRole role, std::int64_t m, std::int64_t n, std::int64_t k, PitchPolicy pitch = PitchPolicy::aligned) {
  GemmProblem p = {.role = role, .m = m, .n = n, .k = k, .operand_dtype = DType::bf16, .output_dtype = DType::bf16, .epilogue = {}};
  p.a_major = role == GemmRole::forward ? Major::k : Major::m;
  p.b_major = role == GemmRole::wgrad ? Major::n : Major::k;
  p.a_pitch = pitch_of(p.a_major == Major::k ? k : m, p.operand_dtype, pitch);
  p.b_pitch = pitch_of(p.b_major == Major::k ? k : n, p.operand_dtype, pitch);
  p.d_pitch = pitch_of(m, p.output_dtype, pitch);
  p.a_alignment = alignment_of(0, 2 * p.a_pitch);
  p.b_alignment = alignment_of(0, 2 * p.b_pitch);
  p.d_alignment = alignment_of(0, 2 * p.d_pitch);
  return p;
}

GemmProblem into_fp32(GemmProblem p) {
  p.output_dtype = DType::f32;
  p.epilogue.accumulate = true;
  p.d_alignment = alignment_of(0, 4 * p.d_pitch);
  return p;
}
GemmProblem with(GemmProblem p, const Epilogue& epilogue) {
  p.epilogue = epilogue;
  return p;
}

// Fast plans count most: they are what choosing is between, and the fastest's time is what a plan promises.
double weight_of(const PlannedGemm& gemm, double fastest_s) { return std::pow(fastest_s / gemm.seconds, 4.0); }

using Groups = std::map<GemmProblem, std::vector<const PlannedGemm*>>;

struct Quality {
  double error = 0.0, choice = 1.0;
};
Quality quality(const Groups& groups, const std::vector<double>& logs, const std::map<const PlannedGemm*, std::size_t>& index) {
  double errors = 0.0, choices = 0.0;
  for (const auto& [posed, plans] : groups) {
    const auto predicted = [&](const PlannedGemm* gemm) { return logs[index.at(gemm)] + std::log(gemm->seconds); };
    const auto* const fastest =
        *std::min_element(plans.begin(), plans.end(), [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
    const auto* const chosen =
        *std::min_element(plans.begin(), plans.end(), [&](const auto* a, const auto* b) { return predicted(a) < predicted(b); });
    errors += std::abs(logs[index.at(fastest)]);
    choices += std::log(chosen->seconds / fastest->seconds);
  }
  const auto count = static_cast<double>(groups.size());
  return {.error = errors / count, .choice = std::exp(choices / count)};
}

}  // namespace

double coordinate_of(std::string_view constant, double value) {
  return std::log(constant.ends_with("_fraction") ? value / (1.0 - value) : value);
}

double constant_at(std::string_view constant, double coordinate) {
  const double value = std::exp(coordinate);
  return constant.ends_with("_fraction") ? value / (1.0 + value) : value;
}

std::vector<GemmProblem> calibration_problems() {
  using enum GemmRole;
  const Epilogue gelu = {.bias = true, .activation = Activation::gelu_tanh, .saved_input = true};
  const Epilogue relu = {.bias = true, .activation = Activation::relu, .saved_input = true};
  const Epilogue through_gelu = {.derivative = Activation::gelu_tanh}, through_relu = {.derivative = Activation::relu};
  const Epilogue bias = {.bias = true}, residual = {.bias = true, .residual = true}, sums = {.bias_gradient = true};
  std::vector<GemmProblem> problems;
  struct Sizes {
    std::int64_t out, in, tokens;
  };
  for (const auto& [out, in, tokens] : {Sizes{2048, 1024, 3072},
                                        {5120, 1280, 2560},
                                        {1280, 5120, 6144},
                                        {1536, 1536, 12288},
                                        {6144, 1536, 8192},
                                        {24576, 1024, 4096},
                                        {640, 640, 49152},
                                        {896, 896, 7000},
                                        {2736, 1024, 4600},
                                        {6144, 6144, 6144}}) {
    problems.push_back(problem(forward, out, tokens, in));
    problems.push_back(problem(dgrad, in, tokens, out));
    problems.push_back(problem(wgrad, in, out, tokens));
    problems.push_back(into_fp32(problem(wgrad, in, out, tokens)));
  }
  for (const auto& [out, in, tokens] : {Sizes{2048, 1024, 3072}, {5120, 1280, 2560}, {6144, 1536, 8192}, {2560, 640, 49152}}) {
    problems.push_back(with(problem(dgrad, out, tokens, in), through_relu));
    problems.push_back(with(problem(forward, out, tokens, in), gelu));
    problems.push_back(with(problem(forward, out, tokens, in), relu));
    problems.push_back(with(problem(dgrad, out, tokens, in), through_gelu));
    problems.push_back(with(problem(forward, in, tokens, out), residual));
    problems.push_back(with(problem(wgrad, in, out, tokens), sums));
  }
  problems.push_back(with(problem(forward, 1536, 12288, 1536), bias));
  // Operands that no 16-byte load can take.
  for (const std::int64_t width : {2044, 2050, 2047}) {
    problems.push_back(problem(dgrad, 1024, 3072, width, PitchPolicy::packed));
    problems.push_back(problem(forward, width, 3072, 1024, PitchPolicy::packed));
  }
  // Outputs too few to fill a GPU beside a long K, and few tokens, outputs or inputs.
  for (const auto& [m, n, k] : {Sizes{320, 320, 6144}, {640, 448, 6144}, {1152, 192, 5120}, {192, 1152, 2304}, {448, 1600, 9216}}) {
    problems.push_back(problem(forward, m, n, k));
    problems.push_back(into_fp32(problem(wgrad, m, n, k)));
  }
  for (const auto& [out, in, tokens] : {Sizes{2560, 1152, 40}, {3840, 1280, 320}, {48, 1280, 6000}, {1280, 48, 6000}, {160, 2560, 1600}}) {
    problems.push_back(problem(forward, out, tokens, in));
    problems.push_back(problem(dgrad, in, tokens, out));
    problems.push_back(problem(wgrad, in, out, tokens));
  }
  // Rows of whole 16 bytes that start on no more.
  for (const auto& [out, in, tokens] : {Sizes{1288, 1288, 5000}, {4616, 1160, 2504}, {1160, 4616, 12008}, {38008, 776, 3000}}) {
    problems.push_back(problem(forward, out, tokens, in, PitchPolicy::packed));
    problems.push_back(problem(dgrad, in, tokens, out, PitchPolicy::packed));
    problems.push_back(problem(wgrad, in, out, tokens, PitchPolicy::packed));
  }
  // Bound by memory: what is read, what is written, what is added to.
  for (const PitchPolicy pitch : {PitchPolicy::aligned, PitchPolicy::packed}) {
    for (const auto& [out, in, tokens] : {Sizes{60008, 1032, 96}, {12296, 4104, 64}, {40008, 520, 520}}) {
      problems.push_back(problem(forward, out, tokens, in, pitch));
      problems.push_back(problem(dgrad, in, tokens, out, pitch));
      problems.push_back(problem(wgrad, in, out, tokens, pitch));
    }
  }
  problems.push_back(into_fp32(problem(wgrad, 1024, 60000, 96)));
  problems.push_back(into_fp32(problem(wgrad, 1536, 40000, 640)));
  problems.push_back(with(problem(wgrad, 640, 60000, 256), sums));
  // A few microseconds.
  for (const auto& [out, in, tokens] : {Sizes{1024, 384, 640}, {640, 320, 96}, {2560, 1280, 128}, {768, 256, 4096}, {384, 1536, 1280}}) {
    problems.push_back(problem(forward, out, tokens, in));
    problems.push_back(with(problem(forward, out, tokens, in), gelu));
    problems.push_back(problem(dgrad, in, tokens, out));
    problems.push_back(with(problem(dgrad, out, tokens, in), through_gelu));
    problems.push_back(problem(wgrad, in, out, tokens));
  }
  // Wide.
  for (const auto& [out, in, tokens] : {Sizes{14336, 4096, 1000}, {90000, 640, 1500}, {4096, 14336, 3000}}) {
    problems.push_back(problem(forward, out, tokens, in));
    problems.push_back(problem(dgrad, in, tokens, out));
    problems.push_back(problem(wgrad, in, out, tokens));
  }
  // Rows that start anywhere, with what stands beside the product.
  for (const auto& [out, in, tokens] : {Sizes{38003, 1280, 3000}, {3413, 1283, 5000}, {1280, 3413, 2001}, {901, 901, 20001}}) {
    problems.push_back(problem(forward, out, tokens, in, PitchPolicy::packed));
    problems.push_back(problem(dgrad, in, tokens, out, PitchPolicy::packed));
    problems.push_back(problem(wgrad, in, out, tokens, PitchPolicy::packed));
    problems.push_back(into_fp32(problem(wgrad, in, out, tokens, PitchPolicy::packed)));
    problems.push_back(with(problem(forward, out, tokens, in, PitchPolicy::packed), gelu));
    problems.push_back(with(problem(dgrad, in, tokens, out, PitchPolicy::packed), through_gelu));
    problems.push_back(with(problem(wgrad, in, out, tokens, PitchPolicy::packed), sums));
  }
  // A few tokens, or outputs.
  for (const std::int64_t few : {1, 5, 16}) {
    problems.push_back(problem(forward, 6144, few, 5120));
    problems.push_back(problem(dgrad, 1536, few, 6144));
    problems.push_back(problem(forward, few, 12288, 2048));
    problems.push_back(problem(wgrad, 2048, few, 12288));
  }
  // Without wgmma.
  GemmProblem tf32 = problem(forward, 2048, 3072, 1024), fp32 = problem(forward, 1024, 1536, 1024);
  tf32.math = MathMode::tf32;
  for (GemmProblem* p : {&tf32, &fp32}) {
    p->operand_dtype = p->output_dtype = DType::f32;
    problems.push_back(*p);
  }
  return problems;
}

std::vector<PlannedGemm> measure_for_calibration(const Queue& queue, const DeviceInfo& device, const std::function<void()>& done) {
  constexpr double kSlowest = 2.0;  // times the least predicted: what is further off is never chosen
  constexpr std::size_t kTilesPerKernel = 4;
  TW_CHECK_INPUT(device.backend == Backend::cuda, "a calibration fits the cost model of a GPU; a CPU's rows have their own.");
  GemmScratch scratch(queue);
  // Before every block the GPU is kept as hot as a step's GEMMs keep it.
  const GemmProblem large = problem(GemmRole::forward, 8192, 8192, 4096);
  const Candidate heater = scratch.candidate(scratch.pose(large), choose(large, device), "heater");
  const std::function<void()> heat = [&heater] {
    for (std::size_t launch = 0; launch < 3; ++launch) heater.launch(launch);
    heater.wait();
  };
  InterleaveOptions options = {.load_s = 2.0,
                               .block_s = 0.003,
                               .screening_block_s = 0.003,
                               .screening_blocks = 1,
                               .rounds = 3,
                               .finalists = 64,
                               .before_block = &heat};
  std::vector<PlannedGemm> measured;
  for (const GemmProblem& posed_problem : calibration_problems()) {
    const auto posed = scratch.pose(posed_problem);
    std::map<std::string, std::size_t> tiles;
    std::map<std::string, GemmPlan> plans;
    std::vector<Candidate> candidates;
    for (const GemmPlan& plan : measurable_plans(posed_problem, device, {}, kSlowest)) {
      if (++tiles[name_of(plan.composition)] > kTilesPerKernel) continue;
      plans[name_of(plan)] = plan;
      candidates.push_back(scratch.candidate(posed, plan, name_of(plan)));
    }
    for (const Timing& timing : compare(candidates, {}, options).ours) {
      measured.push_back({.problem = posed_problem, .plan = plans.at(timing.name), .seconds = timing.median_s});
    }
    options.load_s = 0.0;
    done();
  }
  return measured;
}

Calibration fit_cost_model(std::span<const PlannedGemm> measured, const DeviceInfo& device) {
  TW_CHECK(!measured.empty(), "a fit needs measured GEMMs.");
  const std::span<const CostConstant> constants = cost_constants();
  Groups groups;
  std::map<const PlannedGemm*, std::size_t> index;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    groups[measured[i].problem].push_back(&measured[i]);
    index[&measured[i]] = i;
  }
  std::vector<const GemmKernel*> kernels;
  std::vector<double> weights;
  for (const PlannedGemm& gemm : measured) {
    kernels.push_back(&kernel_of(device.backend, gemm.plan));
    const auto& group = groups.at(gemm.problem);
    const auto fastest = std::min_element(group.begin(), group.end(), [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
    weights.push_back(weight_of(gemm, (*fastest)->seconds));
  }
  const auto model_at = [&](std::span<const double> x) {
    CostModel model = cost_model_of(device);
    for (std::size_t i = 0; i < constants.size(); ++i) {
      model.*constants[i].value = constant_at(constants[i].name, x[i]);
    }
    return model;
  };
  const auto errors = [&](std::span<const double> logs) {
    DeviceInfo with_model = device;
    with_model.cost_model = std::make_shared<CostModel>(model_at(logs));
    std::vector<double> result;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const PlannedGemm& gemm = measured[i];
      const GemmPlan plan = kernels[i]->plan(gemm.problem, gemm.plan.tile, with_model, gemm.plan.split);
      result.push_back(std::log(plan.predicted_s / gemm.seconds));
    }
    return result;
  };
  std::vector<double> start;
  for (const CostConstant& constant : constants) {
    start.push_back(coordinate_of(constant.name, cost_model_of(device).*constant.value));
  }
  const std::vector<double> end = fit({.residuals =
                                           [&](std::span<const double> logs) {
                                             std::vector<double> weighted = errors(logs);
                                             for (std::size_t i = 0; i < weighted.size(); ++i) weighted[i] *= weights[i];
                                             return weighted;
                                           },
                                       .start = start,
                                       .huber = 0.1,
                                       .pull = 0.05});
  const Quality before = quality(groups, errors(start), index), after = quality(groups, errors(end), index);
  Calibration calibration = {.model = model_at(end),
                             .points = measured.size(),
                             .error_before = before.error,
                             .error_after = after.error,
                             .choice_before = before.choice,
                             .choice_after = after.choice};
  calibration.model.source = CostModelSource::calibrated;
  return calibration;
}

std::filesystem::path calibration_path(const DeviceInfo& device) {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / (file_name_of(device) + ".json");
}

namespace {

constexpr const char* kLinks = "links";

bool is_of(const nlohmann::json& stored, const DeviceInfo& device) {
  return stored.at("format") == kFormat && stored.at("device") == device.name && stored.at("driver") == device.driver &&
         stored.at("capability") == device.capability;
}

// What is stored of the device; that alone whose it is where nothing is, or nothing of use.
nlohmann::ordered_json stored_of(const std::filesystem::path& path, const DeviceInfo& device) {
  std::error_code code;
  try {
    if (std::filesystem::exists(path, code)) {
      nlohmann::ordered_json stored = nlohmann::ordered_json::parse(read_file(path, kMaxBytes));
      if (is_of(stored, device)) return stored;
    }
  } catch (const std::exception&) {  // as use_calibration() says
  }
  return {{"format", kFormat}, {"device", device.name}, {"driver", device.driver}, {"capability", device.capability}};
}

void write(const std::filesystem::path& path, const nlohmann::ordered_json& stored) {
  make_folders(path.parent_path());
  write_file_atomically(path, stored.dump() + "\n");
}

}  // namespace

void save_calibration(const std::filesystem::path& path, const Calibration& calibration, const DeviceInfo& device) {
  nlohmann::ordered_json object = stored_of(path, device);
  object["points"] = calibration.points;
  object["error_before"] = calibration.error_before;
  object["error_after"] = calibration.error_after;
  object["operation_error_before"] = calibration.operation_error_before;
  object["operation_error_after"] = calibration.operation_error_after;
  for (const CostConstant& constant : cost_constants()) object[std::string(constant.name)] = calibration.model.*constant.value;
  for (const OperationConstant& constant : operation_constants()) {
    object[std::string(constant.name)] = calibration.model.operations.*constant.value;
  }
  write(path, object);
}

void save_links(const std::filesystem::path& path, const LinkConstants& links, const DeviceInfo& device) {
  nlohmann::ordered_json object = stored_of(path, device);
  object[kLinks] = {{"link_share", links.share}, {"link_hop_s", links.hop_s}};
  write(path, object);
}

std::string use_calibration(DeviceInfo& device) {
  const std::filesystem::path path = calibration_path(device);
  std::error_code code;
  if (device.backend != Backend::cuda || path.empty() || !std::filesystem::exists(path, code)) return {};
  const auto unused = [&](const std::string& why) {
    return concat(path.string(), ": ", why, "; the default cost model is used. tilewave bench calibrate makes the file anew.");
  };
  try {
    const nlohmann::json object = nlohmann::json::parse(read_file(path, kMaxBytes));
    CostModel model = cost_model_of(device);
    if (object.at("format") != kFormat) return unused("its format is another version's");
    if (!is_of(object, device)) {
      return unused(concat("it is of ", printable(object.at("device").get<std::string>()), " under driver ",
                           printable(object.at("driver").get<std::string>()), ", and this is ", device.name, " under ", device.driver));
    }
    std::string_view bad;
    const auto take = [&](const nlohmann::json& from, std::string_view name, double& value) {
      value = from.at(std::string(name)).get<double>();
      if (!(value > 0.0) || !std::isfinite(value)) bad = name;
    };
    const auto links = object.find(kLinks);
    if (links == object.end() || object.contains("points")) {  // links may be all that was measured
      for (const CostConstant& constant : cost_constants()) take(object, constant.name, model.*constant.value);
      for (const OperationConstant& constant : operation_constants()) {  // one that came later keeps its default
        if (object.contains(std::string(constant.name))) take(object, constant.name, model.operations.*constant.value);
      }
      model.source = CostModelSource::calibrated;
    }
    if (links != object.end()) {
      take(*links, "link_share", model.operations.link_share);
      take(*links, "link_hop_s", model.operations.link_hop_s);
    }
    if (!bad.empty()) return unused(concat(bad, " is not a number above 0"));
    device.cost_model = std::make_shared<CostModel>(model);
    return {};
  } catch (const std::exception& error) {
    return unused(concat("it cannot be read (", json_fault(error), ")"));
  }
}

}  // namespace tilewave
