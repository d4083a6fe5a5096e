// Larger outputs.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

FigurePoints footprint_points(const FigureSetting& setting) {
  FigurePoints figure;
  for (const std::int64_t size : {256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192}) {
    const std::int64_t side = setting.sized(size);
    const GemmProblem problem = blas_gemm({.m = side, .n = side, .k = setting.sized(4096)}, setting.precision, PitchPolicy::packed);
    const auto x = static_cast<double>(side);
    figure.points.push_back(chosen_point({.series = "tilewave", .x = x}, problem));
    add_library_point(figure, {.series = "", .x = x}, problem, setting);
  }
  figure.how = concat("M = N from 256 to 8192, K = 4096, TN, packed.", toy_text(setting));
  return figure;
}

}  // namespace

const Figure kFootprintFigure = {.name = "footprint",
                                 .references = "Matrix Multiplication Background, figure 3; Deep Learning Performance, figure 6",
                                 .shows = "throughput and time over M = N: larger outputs are more efficient",
                                 .claim =
                                     "The larger the output, the higher the throughput: it has enough tiles, and large ones, for all SMs. "
                                     "Time grows more slowly than the output does.",
                                 .axis = "M = N",
                                 .scale = AxisScale::log,
                                 .panels = kRateAndTimePanels,
                                 .points = footprint_points,
                                 .effects = [](const FigureRecords& records) { return last_over_first(records, {.before = "M = N = "}); }};

}  // namespace tilewave
