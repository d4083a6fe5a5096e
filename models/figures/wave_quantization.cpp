// N beyond a whole number of waves.
#include <algorithm>

#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"
#include "models/figures/whole_waves.h"
#include "models/planning/gemm_answer.h"

namespace tilewave {
namespace {

constexpr std::int64_t kWaves = 4, kWaveStep = 8;

// Printed: every 8. Else half columns, and the first 8 of each column, where a wave may begin.
std::vector<std::int64_t> wave_columns(const FigureSetting& setting, Tile tile, std::int64_t last) {
  std::vector<std::int64_t> columns;
  const std::int64_t half = tile.n / 2;
  for (std::int64_t n = kWaveStep; n <= last; n += kWaveStep) {
    const bool whole = n % half == 0, first = n > tile.n && n % tile.n == kWaveStep;
    if (setting.printed() || whole || first) columns.push_back(n);
  }
  return columns;
}

FigurePoints wave_quantization_points(const FigureSetting& setting) {
  const std::int64_t k = setting.sized(4096);
  const auto problem_of = [&](std::int64_t m, std::int64_t n) {
    return blas_gemm({.m = m, .n = n, .k = k}, setting.precision, PitchPolicy::packed);
  };
  const HeldTile held = held_tile(problem_of(2304, 6144), setting.device);
  const bool volta = sized_for_volta(setting);
  const WaveShape wave = wave_shape(held.slots);
  const std::int64_t m = setting.printed() ? (volta ? 1280 : 2304) : wave.down * held.tile.m;
  const std::int64_t period = columns_of_whole_waves(held.slots, ceil_div(m, held.tile.m)) * held.tile.n;
  const std::int64_t last = setting.printed() ? std::max<std::int64_t>(volta ? 8448 : 6400, period + 2 * held.tile.n)
                                              : kWaves * wave.across * held.tile.n + 2 * held.tile.n;
  const std::vector<std::int64_t> columns = wave_columns(setting, held.tile, last);

  FigurePoints figure;
  const bool streams = std::ranges::any_of(gemm_candidates(problem_of(m, columns.back()), setting.device),
                                           [](const GemmPlan& plan) { return plan.composition.schedule == GemmSchedule::stream_k; });
  for (const std::int64_t n : columns) {
    const GemmProblem problem = problem_of(m, n);
    FigurePoint point = add_held_and_free(figure, held, problem);
    if (streams) {
      point.series = "stream-K";
      point.choice = {.forced = "stream_k"};
      figure.points.push_back(point);
    }
    add_library_point(figure, {.series = "", .x = static_cast<double>(n)}, problem, setting);
  }
  for (std::int64_t n = period; n < last; n += period) {
    figure.marks.push_back({.label = "the last wave is full", .at = static_cast<double>(n)});
  }
  const std::string held_text = concat("tiles of ", held.tile.m, 'x', held.tile.n, " held, K never split, ", held.slots, " at a time");
  figure.how = setting.printed() ? concat("The guide's M = ", m, ", K = 4096, N in steps of 8; ", held_text, '.')
                                 : concat("M = ", m, " is ", wave.down, " tiles, of which ", wave.across,
                                          " columns are a wave (N = ", wave.across * held.tile.n, "), K = ", k, ", N to past ", kWaves,
                                          " waves: half columns, and 8 past "
                                          "each column; ",
                                          held_text, ". --as-printed takes the guide's M = ", volta ? 1280 : 2304, '.');
  return figure;
}

std::vector<Effect> wave_quantization_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const std::string& series : series_of(records)) {
    const std::vector<const FigureRecord*> all = records_of(records, series);
    const std::vector<const FigureRecord*> held = records_of(records, records.front().series);
    const auto first = std::ranges::find_if(held, [](const FigureRecord* one) { return one->tiles > 0 && one->tail_tiles == 0; });
    if (first == held.end()) continue;
    const FigureRecord* whole = *first;  // the last one of as many tiles
    for (const FigureRecord* one : held) {
      if (one->tiles == whole->tiles) whole = one;
    }
    const double full = whole->x;
    const auto after = std::ranges::find_if(all, [&](const FigureRecord* one) { return one->x > full; });
    if (after == all.end()) continue;
    const FigureRecord* const before = find_record(records, {.series = series, .x = full});
    add_ratio(effects, {.what = concat("time at N = ", (*after)->n, " over that at ", full, ", where the first wave is full, ", series),
                        .over = *after,
                        .under = before});
    if (series != records.front().series) continue;
    effects.push_back({.what = concat("tiles at N = ", full), .predicted = static_cast<double>(whole->tiles), .unit = ""});
    effects.push_back({.what = concat("tiles at N = ", (*after)->n), .predicted = static_cast<double>((*after)->tiles), .unit = ""});
    effects.push_back(
        {.what = concat("of the tail wave at N = ", (*after)->n, " used"), .predicted = (*after)->tail_fraction, .unit = "%"});
  }
  return effects;
}

}  // namespace

const Figure kWaveQuantizationFigure = {
    .name = "wave_quantization",
    .references = "Matrix Multiplication Background, figure 8; Deep Learning Performance, figure 11",
    .shows = "throughput, time and tiles over N: the last wave leaves SMs idle",
    .claim =
        "One tile per SM at a time: where the number of tiles passes a whole number of waves, one more wave runs for a few tiles. On "
        "an A100 N = 1544 takes about twice the time of 1536, and a tail of 9 tiles uses 8.33 % of the SMs.",
    .axis = "N",
    .panels = kQuantizationPanels,
    .points = wave_quantization_points,
    .effects = wave_quantization_effects};

}  // namespace tilewave
