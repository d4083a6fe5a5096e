// A matrix times a vector: memory decides.
#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kGemvPanels[] = {{.title = "bandwidth", .quantity = Quantity::bandwidth},
                                       {.title = "duration", .quantity = Quantity::time}};

// The ladder, by its kernels' names in the catalog.
constexpr struct {
  std::string_view kernel, series;
} kRungs[] = {{"gemv_thread_rows", "a thread a row"},
              {"gemv_warp_rows", "a warp a row"},
              {"gemv_block_rows", "a CTA a row"},
              {"gemv_dot", "16-byte words, several rows a warp"}};

FigurePoint forced_point(const Place& place, const GemmProblem& problem, std::string_view kernel) {
  FigurePoint point = chosen_point(place, problem);
  point.choice.forced = kernel;
  return point;
}

FigurePoints gemv_points(const FigureSetting& setting) {
  const bool has_rungs = setting.device.backend == Backend::cuda && setting.device.capability >= kMinCudaCapability;
  FigurePoints figure;
  const auto add = [&](std::int64_t rows, std::int64_t cols) {
    const GemmProblem problem =
        blas_gemm({.m = setting.sized(rows), .n = 1, .k = setting.sized(cols)}, Precision::fp32, PitchPolicy::packed);
    const double x = 1e-6 * static_cast<double>(problem.bytes());
    if (!has_rungs) {
      figure.points.push_back(chosen_point({.series = "tilewave", .x = x}, problem));
      return;
    }
    for (const auto& [kernel, series] : kRungs) figure.points.push_back(forced_point({std::string(series), x}, problem, kernel));
    if (!setting.library) return;
    figure.points.push_back(forced_point({.series = "cuBLAS gemv", .x = x}, problem, "cublas_gemv"));
    figure.points.back().library = true;
  };
  for (const std::int64_t size : {512, 1024, 2048, 4096}) add(size, size);
  add(4096, 8192);  // the worklog's
  for (const std::int64_t size : {8192, 16384, 32768}) add(size, size);
  figure.how =
      concat("fp32, square from 512 to 32768, and the worklog's 4096x8192; ",
             has_rungs ? "each rung of the ladder, of which the last is the one that is chosen." : "what the GEMM engine makes of N = 1.",
             toy_text(setting));
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
    .shows = "a matrix times a vector, fp32, rung by rung: bandwidth and time over bytes",
    .claim =
        "A matrix-vector product does less than a FLOP per byte, so that bandwidth is all. cuBLAS reaches 78 % of it on "
        "a small GPU, a naive kernel 15 %.",
    .axis = "MB read and written",
    .scale = AxisScale::log,
    .panels = kGemvPanels,
    .points = gemv_points,
    .effects = gemv_effects};

}  // namespace tilewave
