// A matrix times a vector: memory decides.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kGemvPanels[] = {{.title = "bandwidth", .quantity = Quantity::bandwidth},
                                       {.title = "duration", .quantity = Quantity::time}};

FigurePoints gemv_points(const FigureSetting& setting) {
  FigurePoints figure;
  const auto add = [&](std::int64_t rows, std::int64_t cols) {
    const GemmProblem problem =
        blas_gemm({.m = setting.sized(rows), .n = 1, .k = setting.sized(cols)}, Precision::fp32, PitchPolicy::packed);
    const Place place = {.series = "tilewave", .x = 1e-6 * static_cast<double>(problem.bytes())};
    figure.points.push_back(chosen_point(place, problem));
    add_library_point(figure, {.series = "", .x = place.x}, problem, setting);
  };
  for (const std::int64_t size : {512, 1024, 2048, 4096}) add(size, size);
  add(4096, 8192);  // the worklog's
  for (const std::int64_t size : {8192, 16384, 32768}) add(size, size);
  figure.how =
      concat("fp32, square from 512 to 32768, and the worklog's 4096x8192; what the GEMM engine makes of N = 1.", toy_text(setting));
  return figure;
}

std::vector<Effect> gemv_effects(const FigureRecords& records) {
  std::vector<Effect> effects;
  for (const FigureRecord& one : records) {
    if (one.m == 0 || 2 * one.m != one.k || std::isnan(one.floor_s)) continue;
    effects.push_back({.what = concat("roofline time over the time of ", one.m, 'x', one.k, ", ", one.series),
                       .predicted = one.floor_s / one.predicted_s,
                       .measured = one.floor_s / one.measured_s,
                       .low = one.floor_s / one.upper_quartile_s,
                       .high = one.floor_s / one.lower_quartile_s,
                       .unit = "%"});
  }
  return effects;
}

}  // namespace

const Figure kGemvFigure = {
    .name = "gemv",
    .references = "the matrix-vector worklog; Matrix Multiplication Background, section 2",
    .shows = "a matrix times a vector, fp32: bandwidth and time over bytes",
    .claim =
        "A matrix-vector product does less than a FLOP per byte, so that bandwidth is all. cuBLAS reaches 78 % of it on "
        "a small GPU, a naive kernel 15 %.",
    .without = "the ladder of kernels of its own",
    .axis = "MB read and written",
    .scale = AxisScale::log,
    .panels = kGemvPanels,
    .points = gemv_points,
    .effects = gemv_effects};

}  // namespace tilewave
