// Layer normalisation on a CPU; the formulas stand in kernels/ops/layer_norm.h. A row is reduced over its logical columns, rows in
// chunks: one chunk is one thread's, and its parameter gradients one pair of rows of `partial`, of which a CPU needs a few.
#include "kernels/ops/layer_norm.h"

#include <cmath>

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/layer_norm.cpp"  // NOLINT
#include <hwy/foreach_target.h>                              // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

template <class T>
void normalize_rows(const LayerNormArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t d = args.x.cols;
  const T* gamma = args.gamma.row<T>(0);
  const T* beta = args.beta.row<T>(0);
  for (std::int64_t r = begin; r < end; ++r) {
    const T* x = args.x.row<T>(r);
    T* y = args.y.row<T>(r);
    const T mean = sum_of<T>(d, [=](std::int64_t c) { return x[c]; }) / static_cast<T>(d);
    const T variance = sum_of<T>(d, [=](std::int64_t c) { return (x[c] - mean) * (x[c] - mean); }) / static_cast<T>(d);
    const T rstd = T(1) / std::sqrt(variance + static_cast<T>(args.epsilon));
#pragma GCC ivdep
    for (std::int64_t c = 0; c < d; ++c) y[c] = (x[c] - mean) * rstd * gamma[c] + beta[c];
    *args.mean.row<T>(r) = mean;
    *args.rstd.row<T>(r) = rstd;
  }
}

std::int64_t chunk_rows(const LayerNormBackwardArgs& args) {
  return std::max(layer_norm_row_chunk(args.x.rows), rows_per_range(args.x.cols));
}

template <class T>
void normalize_rows_backward(const LayerNormBackwardArgs& args, std::int64_t chunk) {
  const std::int64_t d = args.x.cols;
  const T* gamma = args.gamma.row<T>(0);
  T* dgamma = args.partial.row<T>(2 * chunk);
  T* dbeta = args.partial.row<T>(2 * chunk + 1);
  std::fill_n(dgamma, d, T(0));
  std::fill_n(dbeta, d, T(0));
  const std::int64_t step = chunk_rows(args), begin = chunk * step, end = std::min(args.x.rows, begin + step);
  for (std::int64_t r = begin; r < end; ++r) {
    const T* x = args.x.row<T>(r);
    const T* dy = args.dy.row<T>(r);
    T* dx = args.dx.row<T>(r);
    const T mean = *args.mean.row<T>(r), rstd = *args.rstd.row<T>(r);
    const T mean_g = sum_of<T>(d, [=](std::int64_t c) { return dy[c] * gamma[c]; }) / static_cast<T>(d);
    const T mean_gh = sum_of<T>(d, [=](std::int64_t c) { return dy[c] * gamma[c] * ((x[c] - mean) * rstd); }) / static_cast<T>(d);
    const T kept = args.accumulate ? T(1) : T(0);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < d; ++c) {
      const T h = (x[c] - mean) * rstd, g = dy[c];
      dgamma[c] += g * h;
      dbeta[c] += g;
      const T value = rstd * (g * gamma[c] - mean_g - h * mean_gh);
      dx[c] = kept != T(0) ? dx[c] + value : value;
    }
  }
}

// dgamma and dbeta from their partial sums, chunks in order.
template <class T>
void add_chunks(const LayerNormBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  for (const auto& [gradient, first] : {std::pair{args.dgamma, std::int64_t{0}}, std::pair{args.dbeta, std::int64_t{1}}}) {
    T* sum = gradient.template row<T>(0);
    if (!args.accumulate_parameters) std::fill(sum + begin, sum + end, T(0));
    for (std::int64_t row = first; row < 2 * ceil_div(args.x.rows, chunk_rows(args)); row += 2) {
      const T* partial = args.partial.row<T>(row);
      for (std::int64_t c = begin; c < end; ++c) sum[c] += partial[c];
    }
  }
}

void layer_norm(CpuQueue& queue, const LayerNormArgs& args) {
  with_cpu_float(args.x.dtype, "layer_norm", [&]<class T>(T) {
    for_row_ranges(queue, args.x.rows, args.x.cols, [&](std::int64_t begin, std::int64_t end) { normalize_rows<T>(args, begin, end); });
  });
}

void layer_norm_backward(CpuQueue& queue, const LayerNormBackwardArgs& args) {
  with_cpu_float(args.x.dtype, "layer_norm_backward", [&]<class T>(T) {
    const std::int64_t chunks = ceil_div(args.x.rows, chunk_rows(args));
    queue.threads->parallel_for(chunks, [&](std::int64_t chunk, int) { normalize_rows_backward<T>(args, chunk); });
    for_row_ranges(queue, args.x.cols, 2 * chunks, [&](std::int64_t begin, std::int64_t end) { add_chunks<T>(args, begin, end); });
  });
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(layer_norm);
HWY_EXPORT(layer_norm_backward);

void run(CpuQueue& queue, const LayerNormArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(layer_norm)(queue, args);
}

void run(CpuQueue& queue, const LayerNormBackwardArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(layer_norm_backward)(queue, args);
}

}  // namespace tilewave
#endif
