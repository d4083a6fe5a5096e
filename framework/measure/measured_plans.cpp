// From the cache, or from a comparison of the best few.
#include "framework/measure/measured_plans.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "framework/io/checksum.h"
#include "framework/io/file.h"
#include "framework/io/planned_gemms.h"
#include "framework/measure/gemm_scratch.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

constexpr double kSlowest = 1.6;  // times the least predicted: the model is not off by more
constexpr std::size_t kPlansPerKernel = 4;

// Times of a CPU are those of its number of threads.
std::string device_key(const DeviceInfo& device) {
  return device.backend == Backend::cpu ? concat(device.name, ", ", device.sm_count, " threads") : device.name;
}

std::filesystem::path cache_path(const MeasuredChoice& choice) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return folder;
  const std::string engine = choice.choice.forced.empty() ? "in_house" : choice.choice.forced;
  const std::string strict = choice.choice.alignment_policy == AlignmentPolicy::strict ? ".strict" : "";
  const std::string split = choice.choice.split > 0 ? concat(".split", choice.choice.split) : "";
  return folder / concat(file_name_of({.name = device_key(choice.device)}), ".", engine, strict, split, ".plans.jsonl");
}

// Of the kernels and tiles among which the fastest is found.
std::uint32_t catalog_of(Backend backend) {
  std::string text;
  for (const GemmKernel* kernel : gemm_catalog()) {
    if (kernel->backend != backend) continue;
    text += name_of(*kernel);
    for (const Tile tile : kernel->tiles) text += concat(" ", tile.m, "x", tile.n);
  }
  return crc32c(std::as_bytes(std::span(text)));
}

std::vector<PlannedGemm> remembered(const std::filesystem::path& path, const MeasuredChoice& choice) {
  std::error_code code;
  if (path.empty() || !std::filesystem::exists(path, code)) return {};
  try {
    ReadGemms read = read_planned_gemms(path, choice.device);
    const bool here = read.gemms.device == device_key(choice.device) && read.gemms.driver == choice.device.driver;
    if (here && read.gemms.catalog == catalog_of(choice.device.backend)) return std::move(read.gemms.gemms);
    const std::string where = concat("on ", printable(read.gemms.device), " under driver ", printable(read.gemms.driver));
    choice.noted(concat(path.string(), " was measured ", here ? "among other kernels or tiles" : where, "; its GEMMs are measured anew."));
  } catch (const InputError& error) {
    choice.noted(concat(error.what(), " Its GEMMs are measured anew."));
  }
  return {};
}

PlannedGemm fastest(GemmScratch& scratch, const GemmProblem& problem, const MeasuredChoice& choice, InterleaveOptions& options) {
  const auto posed = scratch.pose(problem);
  const GemmPlan model_choice = choose(problem, choice.device, choice.choice);
  const GemmKernel& kernel = kernel_of(choice.device.backend, model_choice);
  std::vector<GemmPlan> plans;
  if (kernel.reference) {
    plans.assign(static_cast<std::size_t>(std::max(1, scratch.library_candidates(kernel, *posed))), model_choice);
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].algorithm = static_cast<int>(i);
  } else {
    std::map<std::string, std::size_t> of_kernel;
    for (const GemmPlan& plan : measurable_plans(problem, choice.device, choice.choice, kSlowest)) {
      const bool same_bits = choice.device.backend == Backend::cuda || plan.composition == model_choice.composition;
      if (same_bits && ++of_kernel[name_of(plan.composition)] <= kPlansPerKernel) plans.push_back(plan);
    }
  }
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < plans.size(); ++i) candidates.push_back(scratch.candidate(posed, plans[i], std::to_string(i)));
  const Timing best = compare(candidates, {}, options).ours.front();
  options.load_s = 0.0;
  PlannedGemm winner = {.problem = problem, .plan = plans[std::stoul(best.name)], .seconds = best.median_s};
  winner.plan.reason = concat("measured ", std::round(1e8 * best.median_s) / 100.0, " us, the fastest of ", plans.size());
  return winner;
}

}  // namespace

GemmPlans measured_plans(const std::set<GemmProblem>& problems, const MeasuredChoice& choice) {
  const std::filesystem::path path = cache_path(choice);
  std::vector<PlannedGemm> known = remembered(path, choice);
  GemmPlans plans;
  for (const PlannedGemm& gemm : known) {
    if (!problems.contains(gemm.problem)) continue;
    GemmPlan plan = gemm.plan;
    plan.reason = concat("measured before, ", std::round(1e8 * gemm.seconds) / 100.0, " us");
    plans.insert_or_assign(gemm.problem, plan);
  }
  const std::size_t from_cache = plans.size();
  if (from_cache == problems.size()) return plans;

  const auto start = std::chrono::steady_clock::now();
  const double load_s = choice.device.backend == Backend::cuda ? 1.0 : 0.1;
  InterleaveOptions options = {.load_s = load_s, .block_s = 0.006, .screening_block_s = 0.002, .rounds = 5};
  GemmScratch scratch(choice.queue);
  for (const GemmProblem& problem : problems) {
    if (plans.contains(problem)) continue;
    known.push_back(fastest(scratch, problem, choice, options));
    plans.insert_or_assign(problem, known.back().plan);
  }
  choice.noted(concat("measured ", problems.size() - from_cache, " GEMMs in ",
                      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count(), " ms, ",
                      from_cache, " were known", path.empty() ? "" : " from ", path.string(), "."));
  if (path.empty()) return plans;
  try {
    make_folders(path.parent_path());
    write_planned_gemms(path, {.device = device_key(choice.device),
                               .driver = choice.device.driver,
                               .catalog = catalog_of(choice.device.backend),
                               .gemms = known});
  } catch (const Error& error) {
    choice.noted(concat("what was measured is not kept for other runs: ", error.what()));
  }
  return plans;
}

}  // namespace tilewave
