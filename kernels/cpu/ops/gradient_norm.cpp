// The global gradient norm on a CPU: rows are summed by threads, the sums of rows and of tensors added in order by the caller.
#include "kernels/ops/gradient_norm.h"

#include <numeric>
#include <vector>

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/simd_targets.h"
#include "kernels/math/gradient_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/gradient_norm.cpp"  // NOLINT
#include <hwy/foreach_target.h>                                 // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

double squares_of(CpuQueue& queue, std::span<const MatrixView> gradients) {
  std::vector<std::vector<double>> row_sums;
  for (const MatrixView& gradient : gradients) row_sums.emplace_back(static_cast<std::size_t>(gradient.rows));
  const auto ranges = row_ranges(gradients, [](const MatrixView& gradient) { return gradient; });
  queue.threads->parallel_for(static_cast<std::int64_t>(ranges.size()), [&](std::int64_t index, int) {
    const RowRange& range = ranges[static_cast<std::size_t>(index)];
    const MatrixView& gradient = gradients[range.matrix];
    with_cpu_float(gradient.dtype, "gradient_norm", [&]<class T>(T) {
      for (std::int64_t r = range.begin; r < range.end; ++r) {
        const T* row = gradient.row<T>(r);
        row_sums[range.matrix][static_cast<std::size_t>(r)] =
            sum_of<double>(gradient.cols, [=](std::int64_t c) { return static_cast<double>(row[c]) * static_cast<double>(row[c]); });
      }
    });
  });
  double total = 0.0;
  for (const auto& sums : row_sums) total += std::accumulate(sums.begin(), sums.end(), 0.0);
  return total;
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(squares_of);

void run(CpuQueue& queue, const GradientNormArgs& args) {
  check(args);
  finish_gradient_norm(HWY_DYNAMIC_DISPATCH(squares_of)(queue, args.gradients), args.clip_norm, args.scaling, *args.state);
}

void run(CpuQueue& queue, const SumOfSquaresArgs& args) {
  check(args);
  args.state->sum_of_squares = HWY_DYNAMIC_DISPATCH(squares_of)(queue, args.gradients);
}

void run(CpuQueue&, const NormOfSquaresArgs& args) {
  check(args);
  finish_gradient_norm(args.state->sum_of_squares, args.clip_norm, args.scaling, *args.state);
}

}  // namespace tilewave
#endif
