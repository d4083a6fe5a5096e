// Every tile of the device's menu on the same problems.
#include <algorithm>
#include <map>

#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"
#include "models/figures/whole_waves.h"

namespace tilewave {
namespace {

constexpr FigurePanel kTilesPanels[] = {{.title = "throughput, K never split", .quantity = Quantity::rate}};
constexpr std::int64_t kTilesWaves = 4;

std::string tile_text(Tile tile) { return concat(tile.m, 'x', tile.n); }

constexpr double kFarSlower = 10.0;  // than the fastest: oracles, and kernels without Tensor Cores

// The fastest unsplit plan of each tile, large tiles first.
std::vector<GemmPlan> tile_menu(const GemmProblem& problem, const DeviceInfo& device) {
  std::vector<GemmPlan> menu;
  const std::vector<GemmPlan> candidates = gemm_candidates(problem, device, {.split = 1});
  for (const GemmPlan& plan : candidates) {
    const bool known = std::ranges::any_of(menu, [&](const GemmPlan& other) { return other.tile == plan.tile; });
    if (!known && plan.predicted_s <= kFarSlower * candidates.front().predicted_s) menu.push_back(plan);
  }
  std::ranges::stable_sort(menu, [](const GemmPlan& a, const GemmPlan& b) { return a.tile.m * a.tile.n > b.tile.m * b.tile.n; });
  return menu;
}

FigurePoints tiles_points(const FigureSetting& setting) {
  struct Posed {
    std::int64_t m, n, k;
  };
  std::vector<Posed> all = {{6912, 2048, 4096}, {1280, 2040, 4096}};
  for (Posed& one : all) one = {setting.sized(one.m), setting.sized(one.n), setting.sized(one.k)};
  const auto problem_of = [&](const Posed& one) {
    return blas_gemm({.m = one.m, .n = one.n, .k = one.k}, setting.precision, PitchPolicy::packed);
  };
  const HeldTile held = held_tile(problem_of(all.front()), setting.device);
  const Output own = whole_waves(held.tile, held.slots, setting.toy() ? 1 : kTilesWaves);
  all.push_back({own.m, own.n, setting.sized(4096)});

  FigurePoints figure;
  std::vector<std::string> labels;
  for (const Posed& one : all) {
    const GemmProblem problem = problem_of(one);
    const std::string series = concat(one.m, 'x', one.n, 'x', one.k);
    for (const GemmPlan& plan : tile_menu(problem, setting.device)) {
      const std::string label = tile_text(plan.tile);
      auto place = std::ranges::find(labels, label);
      if (place == labels.end()) place = labels.insert(labels.end(), label);
      FigurePoint point = chosen_point({.series = series, .x = static_cast<double>(place - labels.begin()), .label = label}, problem);
      point.choice = {.forced = name_of(plan), .split = 1};
      figure.points.push_back(std::move(point));
    }
  }
  figure.how = concat("The guides' 6912x2048x4096 (whole waves of 108 SMs) and 1280x2040x4096 (of 80), and ", own.m, 'x', own.n, 'x',
                      setting.sized(4096), ", whole waves of ", tile_text(held.tile), " here.", toy_text(setting));
  return figure;
}

std::vector<Effect> tiles_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const std::string& series : series_of(records)) {
    const std::vector<const FigureRecord*> all = records_of(records, series);
    const FigureRecord* const guides = find_record(records, {.series = series, .label = "256x128"});
    const FigureRecord& large = guides != nullptr ? *guides : *all.front();  // records go from large tiles to small ones
    const FigureRecord& small = *all.back();
    add_ratio(effects, {.what = concat("FLOP/s in ", large.label, " over those in ", small.label, ", ", series),
                        .of = RatioOf::rates,
                        .over = &large,
                        .under = &small});
    effects.push_back({.what = concat("waves of ", large.label, ", ", series), .predicted = large.waves, .unit = ""});
  }
  return effects;
}

}  // namespace

const Figure kTilesFigure = {.name = "tiles",
                             .references = "Matrix Multiplication Background, figure 5; Deep Learning Performance, figure 8",
                             .shows = "each tile on the same problems: larger tiles are more efficient",
                             .claim =
                                 "Larger tiles use what they load more often, so they are faster while the output has tiles enough for all "
                                 "SMs: 256x128 and 128x256 before 128x128, and 64x64 last.",
                             .axis = "tile, M x N",
                             .scale = AxisScale::categories,
                             .panels = kTilesPanels,
                             .points = tiles_points,
                             .effects = tiles_effects};

}  // namespace tilewave
