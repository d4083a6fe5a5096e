// Longer dot products.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

FigurePoints depth_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t depth : {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384}) {
    const std::int64_t side = setting.sized(4096), k = setting.sized(depth);
    const GemmProblem problem = blas_gemm({.m = side, .n = side, .k = k}, setting.precision, PitchPolicy::packed);
    const auto x = static_cast<double>(k);
    if (!figure.points.empty() && figure.points.back().x == x) continue;  // toys of two sizes may be one
    figure.points.push_back(chosen_point({.series = "tilewave", .x = x}, problem));
    add_library_point(figure, {.series = "", .x = x}, problem, setting);
  }
  figure.how = concat("M = N = 4096, K from 64 to 16384, TN, packed.", toy_text(setting));
  return figure;
}

}  // namespace

const Figure kDepthFigure = {.name = "depth",
                             .references = "Matrix Multiplication Background, figure 4; Deep Learning Performance, figure 7",
                             .shows = "throughput and time over K: longer dot products are more efficient",
                             .claim =
                                 "Throughput grows with K, even where M = N is large: what it takes to begin and to end a tile is spread "
                                 "over a longer dot product.",
                             .axis = "K",
                             .scale = AxisScale::log,
                             .panels = kRateAndTimePanels,
                             .points = depth_points,
                             .effects = [](const FigureRecords& records) { return last_over_first(records, {.before = "K = "}); }};

}  // namespace tilewave
