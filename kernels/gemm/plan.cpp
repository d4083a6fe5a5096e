// Choosing: the kernels of the device's back end that do not refuse, ranked by the predicted time of their best tile.
#include "kernels/gemm/plan.h"

#include <algorithm>
#include <iomanip>
#include <span>
#include <sstream>
#include <vector>

#include "kernels/core/error.h"
#include "kernels/core/saturating.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/forced_gemm.h"
#include "kernels/gemm/reference/naive.h"

namespace tilewave {
namespace {

std::string text(Tile tile) { return concat(tile.m, "x", tile.n); }

constexpr std::size_t kNamedKernels = 3;  // of the others, in a reason

std::string decimals(double value, int count) {
  std::ostringstream stream;
  stream << std::fixed << std::setprecision(count) << value;
  return stream.str();
}

std::string microseconds(double seconds) { return decimals(seconds * 1e6, 1) + " us"; }

std::string text(const GemmProblem& problem) {
  return concat("the ", name_of(problem.operand_dtype), " ", name_of(problem.role), " gemm M x N x K = ", problem.m, " x ", problem.n,
                " x ", problem.k);
}

// What GemmChoice::forced says, checked against the catalog: the kernel, the tile named or all of them, and the parts of K or 0.
struct Forced {
  const GemmKernel* kernel = nullptr;
  std::span<const Tile> tiles;
  int split = 0;
};

[[noreturn]] void throw_no_kernel(const std::string& name) {
  std::string known;
  for (const std::string& other : gemm_kernel_names()) known += concat(known.empty() ? "" : ", ", other);
  throw InputError(concat("no GEMM kernel is called \"", name, "\"; there are ", known, "."));
}

Forced check_forced(const ForcedGemm& words, Backend backend) {
  const GemmKernel* const here = find_gemm_kernel(backend, words.kernel);
  Forced forced = {.kernel = here != nullptr ? here : find_gemm_kernel(words.kernel), .tiles = {}, .split = words.split};
  if (forced.kernel == nullptr) throw_no_kernel(words.kernel);
  forced.tiles = forced.kernel->tiles;
  if (!words.tile) return forced;
  std::string known;
  for (const Tile& one : forced.kernel->tiles) {
    if (*words.tile == one) forced.tiles = {&one, 1};
    known += concat(known.empty() ? "" : ", ", text(one));
  }
  TW_CHECK_INPUT(forced.tiles.size() == 1 && forced.tiles.front() == *words.tile, "the GEMM kernel ", name_of(*forced.kernel),
                 " has no tile \"", text(*words.tile), "\"; its tiles are ", known, ".");
  return forced;
}

// "... multiples of 8, unlike M = 33708, which D's rows run along; K = 4095."
std::string not_strict(const GemmProblem& problem) {
  const std::int64_t multiple = strict_multiple(problem.operand_dtype);
  const auto along = [&](Major major) {
    std::string matrices;
    const auto add = [&](const char* matrix, Major its) {
      if (its == major) matrices += concat(matrices.empty() ? "" : " and ", matrix, "'s");
    };
    add("A", problem.a_major);
    add("B", problem.b_major);
    add("D", problem.d_major);
    return matrices;
  };
  std::string dimensions;
  const auto name = [&](const char* dimension, std::int64_t value, Major major) {
    const std::string matrices = along(major);
    if (value % multiple == 0 || (major != Major::k && matrices.empty())) return;
    dimensions += concat(dimensions.empty() ? "" : "; ", dimension, " = ", value);
    if (!matrices.empty()) dimensions += concat(", which ", matrices, " rows run along");
  };
  name("M", problem.m, Major::m);
  name("N", problem.n, Major::n);
  name("K", problem.k, Major::k);
  return concat(
      "gemm.alignment_policy = \"strict\" keeps Tensor Cores to products whose K and whose matrices' fastest-varying dimensions are "
      "multiples of ",
      multiple, ", unlike ", dimensions, ".");
}

std::string refusal_of(const GemmKernel& kernel, std::span<const Tile> tiles, const GemmProblem& problem, const DeviceInfo& device,
                       AlignmentPolicy policy) {
  if (kernel.backend != device.backend)
    return concat("it runs on a ", kernel.backend == Backend::cuda ? "GPU" : "CPU", ", and this is ", device.name,
                  "; take gemm.choice = \"model\", or another --device.");
  if (policy == AlignmentPolicy::strict && kernel.tensor_cores) {
    if (size_of(problem.operand_dtype) != 2) {  // Matrix Multiplication Background, section 2.2: TF32 and FP64 came with cuBLAS 11
      return "gemm.alignment_policy = \"strict\" keeps Tensor Cores to operands of 16 bits.";
    }
    if (!strictly_aligned(problem)) return not_strict(problem);
  }
  return kernel.refuse(problem, device, tiles);
}

bool faster(const GemmPlan& a, const GemmPlan& b) { return a.predicted_s < b.predicted_s; }

// The kernels that may run the problem, and why the others do not. Throws where there is none, or nobody can count the FLOPs.
struct Willing {
  Forced forced;
  std::vector<const GemmKernel*> kernels;
  std::string refusals;
  int split = 0;  // as GemmChoice has it

  std::span<const Tile> tiles_of(const GemmKernel& kernel) const { return forced.kernel != nullptr ? forced.tiles : kernel.tiles; }
};
Willing willing_kernels(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice) {
  TW_CHECK_INPUT(problem.flops() != kUncountable, text(problem),
                 " has more than 2^63 FLOPs; lower batch.target_tokens, model.vocabulary or the layers' widths.");
  Willing willing = {.forced = {}, .kernels = {}, .refusals = {}, .split = choice.split};
  if (!choice.forced.empty()) willing.forced = check_forced(parse_forced_gemm(choice.forced), device.backend);
  if (willing.forced.split > 0) willing.split = willing.forced.split;
  const GemmKernel* const forced = willing.forced.kernel;
  for (const GemmKernel* kernel : gemm_catalog()) {
    if (forced != nullptr ? kernel != forced : kernel->backend != device.backend || kernel->reference || kernel->ladder) continue;
    const std::string refusal = refusal_of(*kernel, willing.tiles_of(*kernel), problem, device, choice.alignment_policy);
    if (refusal.empty()) {
      willing.kernels.push_back(kernel);
    } else {
      willing.refusals += concat(" ", name_of(*kernel), ": ", refusal);
    }
  }
  TW_CHECK_INPUT(forced == nullptr || !willing.kernels.empty(), text(problem), " cannot run as \"", choice.forced, "\":", willing.refusals);
  TW_CHECK(!willing.kernels.empty(), "no GEMM kernel runs ", text(problem), ":", willing.refusals);
  return willing;
}

struct Posed {
  const GemmProblem& problem;
  const DeviceInfo& device;
  int split = 0;  // as GemmChoice has it
};
// The kernel's plans with those of the tiles that fit and take K in so many parts, the least predicted time first.
std::vector<GemmPlan> plans_of(const GemmKernel& kernel, std::span<const Tile> tiles, const Posed& posed) {
  std::vector<GemmPlan> plans;
  for (const Tile tile : tiles) {
    if (!kernel.fits(posed.problem, tile, posed.device)) continue;
    GemmPlan plan = kernel.plan(posed.problem, tile, posed.device, posed.split);
    if (posed.split == 0 || (plan.split == posed.split && !plan.streams_k)) plans.push_back(std::move(plan));
  }
  std::stable_sort(plans.begin(), plans.end(), faster);
  return plans;
}

void check_split(bool some, const GemmProblem& problem, const GemmChoice& choice, int split) {
  TW_CHECK_INPUT(some, text(problem), ": no kernel", choice.forced.empty() ? "" : concat(" that \"", choice.forced, "\" names"),
                 " takes its K in ", split, split == 1 ? " part" : " parts", "; let the model decide, or take fewer parts.");
}

// "predicted 12.3 us, 128x256 would take 13.0 us, one_wave/swap_ab 1.10 times as long; refused: ..."
std::string reason_of(std::span<const GemmPlan> tiles, std::span<const GemmPlan> kernels, const std::string& refusals) {
  const GemmPlan& best = tiles.front();
  std::string reason = concat("predicted ", microseconds(best.predicted_s));
  if (!best.inside.empty()) reason += concat(" (", best.inside, ")");
  if (tiles.size() > 1) reason += concat(", ", text(tiles[1].tile), " would take ", microseconds(tiles[1].predicted_s));
  std::size_t named = 0;  // but for the oracle, which is there to be right
  for (const GemmPlan& other : kernels) {
    if (other.composition == best.composition || other.composition == kNaiveKernel.composition || named == kNamedKernels) continue;
    ++named;
    reason += concat(", ", name_of(other.composition), " ", decimals(other.predicted_s / kernels.front().predicted_s, 2), " times as long");
  }
  if (!refusals.empty()) reason += concat("; refused:", refusals);
  return reason;
}

}  // namespace

std::string_view name_of(RasterKind kind) {
  switch (kind) {
    case RasterKind::rows:
      return "rows";
    case RasterKind::grouped:
      return "grouped";
    case RasterKind::bands:
      return "bands";
    case RasterKind::columns:
      return "columns";
    case RasterKind::patches:
      return "patches";
    case RasterKind::library:
      return "library";
  }
  throw Error("there is no such raster.");
}

std::string name_of(const GemmPlan& plan) {
  const std::string name = name_of(plan.composition);
  const std::size_t kernel = plan.composition.kernel.size();
  return concat(plan.composition.kernel, "/", text(plan.tile), name.substr(kernel), plan.split > 1 ? concat("/k", plan.split) : "");
}

GemmPlan choose(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice) {
  const Willing willing = willing_kernels(problem, device, choice);
  // Kernels may round differently, tiles never do: a CPU's kernel is chosen as for one thread, so that results do not depend on the number
  // of threads, and as for operands along K; its tile is chosen for the threads and the matrices there are.
  DeviceInfo kernel_device = device;
  GemmProblem kernel_problem = problem;
  if (device.backend == Backend::cpu) {
    kernel_device.sm_count = 1;
    kernel_problem.a_major = kernel_problem.b_major = Major::k;
    kernel_problem.d_major = Major::m;
  }

  std::vector<GemmPlan> kernels;  // the best plan of each
  for (const GemmKernel* kernel : willing.kernels) {
    const std::vector<GemmPlan> plans = plans_of(*kernel, kernel->tiles, {kernel_problem, kernel_device, willing.split});
    if (!plans.empty()) kernels.push_back(plans.front());
  }
  check_split(!kernels.empty(), problem, choice, willing.split);
  std::stable_sort(kernels.begin(), kernels.end(), faster);
  const GemmKernel& kernel = kernel_of(device.backend, kernels.front());
  const std::vector<GemmPlan> tiles = plans_of(kernel, willing.tiles_of(kernel), {problem, device, willing.split});
  check_split(!tiles.empty(), problem, choice, willing.split);
  GemmPlan best = tiles.front();
  const bool forced = willing.forced.kernel != nullptr;
  best.reason = forced ? concat("forced by \"", choice.forced, "\"") : reason_of(tiles, kernels, willing.refusals);
  return best;
}

std::vector<GemmPlan> gemm_candidates(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice) {
  const Willing willing = willing_kernels(problem, device, choice);
  std::vector<GemmPlan> candidates;
  for (const GemmKernel* kernel : willing.kernels) {
    for (GemmPlan& plan : plans_of(*kernel, willing.tiles_of(*kernel), {problem, device, willing.split})) {
      candidates.push_back(std::move(plan));
    }
  }
  check_split(!candidates.empty(), problem, choice, willing.split);
  std::stable_sort(candidates.begin(), candidates.end(), faster);
  return candidates;
}

}  // namespace tilewave
