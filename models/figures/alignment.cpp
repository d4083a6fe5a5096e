#include "models/figures/alignment.h"

#include "kernels/core/error.h"
#include "models/figures/effects.h"

namespace tilewave {
namespace {

constexpr std::int64_t kSwept = 4096, kOther = 2048, kAround = 16;
constexpr const char *kAny = "any alignment", *kStrict = "strict alignment";

}  // namespace

FigurePoints alignment_points(const AlignmentSweep& sweep, const FigureSetting& setting) {
  FigurePoints figure;
  const std::int64_t middle = setting.sized(kSwept), other = setting.sized(kOther);
  for (std::int64_t size = middle - kAround; size <= middle + kAround; ++size) {
    BlasGemm gemm = {.layout = sweep.layout, .m = other, .n = other, .k = other};
    (sweep.dimension == Dimension::k ? gemm.k : gemm.m) = size;
    const GemmProblem problem = blas_gemm(gemm, setting.precision, PitchPolicy::packed);
    const auto x = static_cast<double>(size);
    if (setting.device.backend == Backend::cuda) figure.points.push_back(strict_point({.series = kStrict, .x = x}, problem));
    figure.points.push_back(chosen_point({.series = kAny, .x = x}, problem));
    add_library_point(figure, {.series = "", .x = x}, problem, setting);
  }
  const bool k = sweep.dimension == Dimension::k;
  figure.how = concat(k ? "M = N = " : "N = K = ", kOther, ", ", k ? "K" : "M", " within ", kAround, " of ", kSwept, ", ",
                      name_of(sweep.layout), ", packed; the guide prints no sizes.", toy_text(setting));
  return figure;
}

std::vector<Effect> alignment_effects(const FigureRecords& records, std::string_view dimension) {
  std::vector<Effect> effects;
  if (records.empty()) return effects;
  const double middle = records.front().x + static_cast<double>(kAround);
  for (const std::string& series : series_of(records)) {
    for (const int beyond : {1, 2, 4}) {
      add_ratio(effects, {.what = concat("time at ", dimension, " = ", middle + beyond, " over that at ", middle, ", ", series),
                          .over = find_record(records, {.series = series, .x = middle + beyond}),
                          .under = find_record(records, {.series = series, .x = middle})});
    }
  }
  return effects;
}

}  // namespace tilewave
