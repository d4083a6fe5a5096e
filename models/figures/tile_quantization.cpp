// N beyond a whole number of tiles.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr std::int64_t kTileQuantizationStep = 8;

FigurePoints tile_quantization_points(const FigureSetting& setting) {
  const std::int64_t k = setting.sized(4096);
  const auto problem_of = [&](std::int64_t m, std::int64_t n) {
    return blas_gemm({.m = m, .n = n, .k = k}, setting.precision, PitchPolicy::packed);
  };
  const HeldTile held = held_tile(problem_of(27648, 512), setting.device);
  const bool volta = sized_for_volta(setting);
  const std::int64_t m = setting.printed() ? (volta ? 20480 : 27648) : held.tile.m * held.slots, last = 4 * held.tile.n;
  FigurePoints figure;
  for (std::int64_t n = kTileQuantizationStep; n <= last; n += kTileQuantizationStep) {
    const GemmProblem problem = problem_of(m, n);
    add_held_and_free(figure, held, problem);
    add_library_point(figure, {.series = "", .x = static_cast<double>(n)}, problem, setting);
  }
  for (std::int64_t n = held.tile.n; n < last; n += held.tile.n) {
    figure.marks.push_back({.label = "a column of tiles is full", .at = static_cast<double>(n)});
  }
  figure.how =
      setting.printed()
          ? concat("The guide's M = ", m, ", K = 4096, N in steps of 8; tiles of ", held.tile.m, 'x', held.tile.n, " held, K never split.")
          : concat("M = ", m, " is a tile for each of the ", held.slots, " that run at a time, K = ", k, ", N in steps of 8; tiles of ",
                   held.tile.m, 'x', held.tile.n, " held, K never split. --as-printed takes the guide's M = ", volta ? 20480 : 27648, ".");
  return figure;
}

std::vector<Effect> tile_quantization_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  if (records.empty()) return effects;
  const std::vector<const FigureRecord*> held = records_of(records, records.front().series);
  // The last N of one column, and the first of two.
  for (std::size_t i = 1; i < held.size(); ++i) {
    const FigureRecord &before = *held[i - 1], &after = *held[i];
    if (after.tiles == before.tiles) continue;
    add_ratio(effects, {.what = concat("FLOP/s at N = ", after.n, " over those at ", before.n, ", held"),
                        .of = RatioOf::rates,
                        .over = &after,
                        .under = &before});
    effects.push_back(
        {.what = concat("of the last column at N = ", after.n, " useful"),
         .predicted = after.useful_fraction * static_cast<double>(after.tiles) / static_cast<double>(after.tiles - before.tiles) -
                      static_cast<double>(before.tiles) / static_cast<double>(after.tiles - before.tiles),
         .unit = "%"});
    return effects;
  }
  return effects;
}

}  // namespace

const Figure kTileQuantizationFigure = {
    .name = "tile_quantization",
    .references = "Matrix Multiplication Background, figure 7; Deep Learning Performance, figure 10",
    .shows = "throughput, time and tiles over N: the last column of tiles is padded",
    .claim =
        "In one held tile time stands still from N = 136 to 256, since both are two columns of tiles. One step of N past a whole "
        "column adds a column of which 8 of 128 are used, 6.25 %, and throughput drops; a library would choose narrower tiles.",
    .axis = "N",
    .panels = kQuantizationPanels,
    .points = tile_quantization_points,
    .effects = tile_quantization_effects};

}  // namespace tilewave
