// Choosing: the rows of the device's back end that do not refuse, ranked by the predicted time of their best tile.
#include "kernels/gemm/plan.h"

#include <algorithm>
#include <iomanip>
#include <span>
#include <sstream>
#include <vector>

#include "kernels/core/error.h"
#include "kernels/core/saturating.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/reference/naive.h"

namespace tilewave {
namespace {

std::string text(Tile tile) { return concat(tile.m, "x", tile.n); }

constexpr std::size_t kNamedRows = 3;  // of the others, in a reason

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

// "<row>" or "<row>/<tile>", checked against the catalog: the row, and the tile named or all of them.
struct Forced {
  const GemmKernel* row = nullptr;
  std::span<const Tile> tiles;
};

Forced parse(std::string_view forced, Backend backend) {
  const std::size_t slash = forced.find('/');
  const std::string_view name = forced.substr(0, slash);
  const GemmKernel* const row = find_gemm_kernel(backend, name);
  Forced choice = {.row = row != nullptr ? row : find_gemm_kernel(name), .tiles = {}};
  if (choice.row == nullptr) {
    std::string known;
    for (const std::string_view other : gemm_kernel_names()) known += concat(known.empty() ? "" : ", ", other);
    throw InputError(concat("no GEMM kernel is called \"", name, "\"; the rows are ", known, "."));
  }
  choice.tiles = choice.row->tiles;
  if (slash == std::string_view::npos) return choice;
  const std::string_view tile = forced.substr(slash + 1);
  std::string known;
  for (const Tile& one : choice.row->tiles) {
    if (tile == text(one)) choice.tiles = {&one, 1};
    known += concat(known.empty() ? "" : ", ", text(one));
  }
  TW_CHECK_INPUT(choice.tiles.size() == 1 && tile == text(choice.tiles.front()), "the GEMM kernel ", choice.row->name, " has no tile \"",
                 tile, "\"; its tiles are ", known, ".");
  return choice;
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

std::string refusal_of(const GemmKernel& row, std::span<const Tile> tiles, const GemmProblem& problem, const DeviceInfo& device,
                       AlignmentPolicy policy) {
  if (row.backend != device.backend)
    return concat("it runs on a ", row.backend == Backend::cuda ? "GPU" : "CPU", ", and this is ", device.name,
                  "; take gemm.choice = \"model\", or another --device.");
  if (policy == AlignmentPolicy::strict && row.tensor_cores) {
    if (size_of(problem.operand_dtype) != 2) {  // Matrix Multiplication Background, section 2.2: TF32 and FP64 came with cuBLAS 11
      return "gemm.alignment_policy = \"strict\" keeps Tensor Cores to operands of 16 bits.";
    }
    if (!strictly_aligned(problem)) return not_strict(problem);
  }
  return row.refuse(problem, device, tiles);
}

bool faster(const GemmPlan& a, const GemmPlan& b) { return a.predicted_s < b.predicted_s; }

// The rows that may run the problem, and why the others do not. Throws where there is none, or nobody can count the FLOPs.
struct Willing {
  Forced forced;
  std::vector<const GemmKernel*> rows;
  std::string refusals;

  std::span<const Tile> tiles_of(const GemmKernel& row) const { return forced.row != nullptr ? forced.tiles : row.tiles; }
};
Willing willing_rows(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice) {
  TW_CHECK_INPUT(problem.flops() != kUncountable, text(problem),
                 " has more than 2^63 FLOPs; lower batch.target_tokens, model.vocabulary or the layers' widths.");
  Willing willing = {.forced = choice.forced.empty() ? Forced{} : parse(choice.forced, device.backend), .rows = {}, .refusals = {}};
  const GemmKernel* const forced = willing.forced.row;
  for (const GemmKernel* row : gemm_catalog()) {
    if (forced != nullptr ? row != forced : row->backend != device.backend || row->reference || row->ladder) continue;
    const std::string refusal = refusal_of(*row, willing.tiles_of(*row), problem, device, choice.alignment_policy);
    if (refusal.empty()) {
      willing.rows.push_back(row);
    } else {
      willing.refusals += concat(" ", row->name, ": ", refusal);
    }
  }
  TW_CHECK_INPUT(forced == nullptr || !willing.rows.empty(), text(problem), " cannot run as \"", choice.forced, "\":", willing.refusals);
  TW_CHECK(!willing.rows.empty(), "no GEMM kernel runs ", text(problem), ":", willing.refusals);
  return willing;
}

struct Posed {
  const GemmProblem& problem;
  const DeviceInfo& device;
  int split = 0;  // as GemmChoice has it
};
// The row's plans with those of the tiles that fit and take K in so many parts, the least predicted time first.
std::vector<GemmPlan> plans_of(const GemmKernel& row, std::span<const Tile> tiles, const Posed& posed) {
  std::vector<GemmPlan> plans;
  for (const Tile tile : tiles) {
    if (!row.fits(tile, posed.device)) continue;
    GemmPlan plan = row.plan(posed.problem, tile, posed.device, posed.split);
    if (posed.split == 0 || (plan.split == posed.split && !plan.streams_k)) plans.push_back(std::move(plan));
  }
  std::stable_sort(plans.begin(), plans.end(), faster);
  return plans;
}

void check_split(bool some, const GemmProblem& problem, const GemmChoice& choice) {
  TW_CHECK_INPUT(some, text(problem), ": no kernel", choice.forced.empty() ? "" : concat(" that \"", choice.forced, "\" names"),
                 " takes its K in ", choice.split, choice.split == 1 ? " part" : " parts", "; let the model decide, or take fewer parts.");
}

}  // namespace

GemmPlan choose(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice) {
  const Willing willing = willing_rows(problem, device, choice);
  // Rows may round differently, tiles never do: a CPU's row is chosen as for one thread, so that results do not depend on the number of
  // threads, and as for operands along K; its tile is chosen for the threads and the matrices there are.
  DeviceInfo row_device = device;
  GemmProblem row_problem = problem;
  if (device.backend == Backend::cpu) {
    row_device.sm_count = 1;
    row_problem.a_major = row_problem.b_major = Major::k;
    row_problem.d_major = Major::m;
  }

  std::vector<GemmPlan> rows;  // the best plan of each row
  for (const GemmKernel* row : willing.rows) {
    const std::vector<GemmPlan> plans = plans_of(*row, row->tiles, {row_problem, row_device, choice.split});
    if (!plans.empty()) rows.push_back(plans.front());
  }
  check_split(!rows.empty(), problem, choice);
  std::stable_sort(rows.begin(), rows.end(), faster);
  const GemmKernel& row = *find_gemm_kernel(device.backend, rows.front().row);
  const std::vector<GemmPlan> tiles = plans_of(row, willing.tiles_of(row), {problem, device, choice.split});
  check_split(!tiles.empty(), problem, choice);
  GemmPlan best = tiles.front();
  if (willing.forced.row != nullptr) {
    best.reason = concat("forced by \"", choice.forced, "\"");
  } else {
    best.reason = concat("predicted ", microseconds(best.predicted_s));
    if (!best.inside.empty()) best.reason += concat(" (", best.inside, ")");
    if (tiles.size() > 1) best.reason += concat(", ", text(tiles[1].tile), " would take ", microseconds(tiles[1].predicted_s));
    std::size_t named = 0;  // but for the oracle, which is there to be right
    for (const GemmPlan& other : rows) {
      if (other.row == best.row || other.row == kNaiveKernel.name || named == kNamedRows) continue;
      ++named;
      best.reason += concat(", ", other.row, " ", decimals(other.predicted_s / rows.front().predicted_s, 2), " times as long");
    }
    if (!willing.refusals.empty()) best.reason += concat("; refused:", willing.refusals);
  }
  return best;
}

std::vector<GemmPlan> gemm_candidates(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice) {
  const Willing willing = willing_rows(problem, device, choice);
  std::vector<GemmPlan> candidates;
  for (const GemmKernel* row : willing.rows) {
    for (GemmPlan& plan : plans_of(*row, willing.tiles_of(*row), {problem, device, choice.split})) candidates.push_back(std::move(plan));
  }
  check_split(!candidates.empty(), problem, choice);
  std::stable_sort(candidates.begin(), candidates.end(), faster);
  return candidates;
}

}  // namespace tilewave
