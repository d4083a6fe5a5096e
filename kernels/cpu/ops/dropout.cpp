// Dropout on a CPU: draws for a block of a row's columns, then the block; the definition stands in kernels/ops/dropout.h.
#include "kernels/ops/dropout.h"

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/dropout.cpp"  // NOLINT
#include <hwy/foreach_target.h>                           // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kBlock = 4 * kLanes;  // columns whose draws are made at once

template <class T>
void drop_rows(const DropoutArgs& args, std::int64_t begin, std::int64_t end) {
  const bool drops = args.probability > 0.0;
  const std::uint32_t threshold = keep_threshold(args.probability);
  const T scale = static_cast<T>(1.0 / (1.0 - args.probability));
  alignas(64) std::uint32_t draws[kBlock] = {};
  for (std::int64_t r = begin; r < end; ++r) {
    for (std::int64_t c0 = 0; c0 < args.y.cols; c0 += kBlock) {
      if (drops) {
        draw({.key = dropout_key(args.state->seed, args.state->step),
              .site = args.state->place.first_site + args.site,
              .row = r + args.state->place.first_row(args.side),
              .column_quad = c0 / 4},
             kLanes, draws);
      }
      const std::int64_t columns = std::min(kBlock, args.y.cols - c0);
      const T* x = args.x.row<T>(r) + c0;
      T* y = args.y.row<T>(r) + c0;
      if (args.residual) {
        const T* residual = args.residual.row<T>(r) + c0;
#pragma GCC ivdep
        for (std::int64_t c = 0; c < columns; ++c) y[c] = residual[c] + (keeps(draws[c], threshold) ? x[c] * scale : T(0));
      } else {
#pragma GCC ivdep
        for (std::int64_t c = 0; c < columns; ++c) y[c] = keeps(draws[c], threshold) ? x[c] * scale : T(0);
      }
    }
  }
}

void dropout(CpuQueue& queue, const DropoutArgs& args) {
  with_cpu_float(args.y.dtype, "dropout", [&]<class T>(T) {
    for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) { drop_rows<T>(args, begin, end); });
  });
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(dropout);

void run(CpuQueue& queue, const DropoutArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(dropout)(queue, args);
}

}  // namespace tilewave
#endif
