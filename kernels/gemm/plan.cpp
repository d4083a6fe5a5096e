// Choosing: the rows of the device's back end that do not refuse, ranked by the predicted time of their best tile.
#include "kernels/gemm/plan.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <vector>

#include "kernels/error.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

std::string text(Tile tile) { return sentence(tile.m, "x", tile.n); }

std::string one_decimal(double value) {
  std::ostringstream stream;
  stream << std::fixed << std::setprecision(1) << value;
  return stream.str();
}

std::string microseconds(double seconds) { return one_decimal(seconds * 1e6) + " us"; }

std::string text(const GemmProblem& problem) {
  return sentence("the ", name_of(problem.operand_dtype), " ", name_of(problem.role), " gemm M x N x K = ", problem.m, " x ", problem.n,
                  " x ", problem.k);
}

// "<row>" or "<row>/<tile>", checked against the catalog; tile is empty where none is named.
struct Forced {
  const GemmRow* row = nullptr;
  std::string_view tile;
};

Forced parse(std::string_view forced, Backend backend) {
  const std::size_t slash = forced.find('/');
  const std::string_view name = forced.substr(0, slash);
  const GemmRow* const row = find_gemm_row(backend, name);
  const Forced choice = {.row = row != nullptr ? row : find_gemm_row(name),
                         .tile = slash == std::string_view::npos ? std::string_view() : forced.substr(slash + 1)};
  if (choice.row == nullptr) {
    std::string known;
    for (const std::string_view other : gemm_row_names()) known += sentence(known.empty() ? "" : ", ", other);
    throw InputError(sentence("no GEMM row is called \"", name, "\"; the rows are ", known, "."));
  }
  const auto tiles = choice.row->tiles;
  const bool known_tile = std::any_of(tiles.begin(), tiles.end(), [&](Tile tile) { return choice.tile == text(tile); });
  if (slash != std::string_view::npos && !known_tile) {
    std::string known;
    for (const Tile tile : tiles) known += sentence(known.empty() ? "" : ", ", text(tile));
    throw InputError(sentence("the GEMM row ", choice.row->name, " has no tile \"", choice.tile, "\"; its tiles are ", known, "."));
  }
  return choice;
}

std::string refusal_of(const GemmRow& row, const GemmProblem& problem, const DeviceInfo& device, AlignmentPolicy policy) {
  if (row.backend != device.backend) return "it is another back end's.";
  const bool multiples_of_8 = problem.m % 8 == 0 && problem.n % 8 == 0 && problem.k % 8 == 0;
  if (policy == AlignmentPolicy::strict && row.tensor_cores && size_of(problem.operand_dtype) == 2 && !multiples_of_8) {
    return "gemm.alignment_policy = \"strict\" keeps Tensor Cores to M, N and K that are multiples of 8.";
  }
  return row.refuse(problem, device);
}

}  // namespace

GemmPlan choose(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice) {
  const Forced forced = choice.forced.empty() ? Forced{} : parse(choice.forced, device.backend);
  // Rows may round differently, tiles never do: a CPU's row is chosen as for one thread, so that results do not depend on
  // the number of threads; its tile is chosen for the threads there are.
  DeviceInfo row_device = device;
  if (device.backend == Backend::cpu) row_device.sm_count = 1;

  const auto faster = [](const GemmPlan& a, const GemmPlan& b) { return a.predicted_s < b.predicted_s; };
  std::vector<GemmPlan> rows, tiles;  // the best plan of each row on row_device; the plans of the best row on the device
  std::string refusals;
  for (const GemmRow* row : gemm_catalog()) {
    if (forced.row != nullptr ? row != forced.row : row->backend != device.backend || row->reference) continue;
    const std::string refusal = refusal_of(*row, problem, device, choice.alignment_policy);
    if (!refusal.empty()) {
      refusals += sentence(" ", row->name, ": ", refusal);
      continue;
    }
    std::vector<GemmPlan> plans;
    for (const Tile tile : row->tiles) plans.push_back(row->plan(problem, tile, row_device));
    rows.push_back(*std::min_element(plans.begin(), plans.end(), faster));
  }
  TW_CHECK_INPUT(forced.row == nullptr || !rows.empty(), text(problem), " cannot run as \"", choice.forced, "\":", refusals);
  TW_CHECK(!rows.empty(), "no GEMM row runs ", text(problem), ":", refusals);

  const GemmRow& row = *find_gemm_row(device.backend, std::min_element(rows.begin(), rows.end(), faster)->row);
  for (const Tile tile : row.tiles) {
    if (forced.tile.empty() || forced.tile == text(tile)) tiles.push_back(row.plan(problem, tile, device));
  }
  std::stable_sort(tiles.begin(), tiles.end(), faster);
  std::stable_sort(rows.begin(), rows.end(), faster);
  GemmPlan best = tiles.front();
  if (forced.row != nullptr) {
    best.reason = sentence("forced by \"", choice.forced, "\"");
  } else {
    best.reason = sentence("predicted ", microseconds(best.predicted_s));
    if (tiles.size() > 1) best.reason += sentence(", ", text(tiles[1].tile), " would take ", microseconds(tiles[1].predicted_s));
    for (const GemmPlan& other : rows) {
      if (other.row != best.row)
        best.reason += sentence(", ", other.row, " ", one_decimal(other.predicted_s / rows.front().predicted_s), " times as long");
    }
    if (!refusals.empty()) best.reason += sentence("; refused:", refusals);
  }
  return best;
}

}  // namespace tilewave
