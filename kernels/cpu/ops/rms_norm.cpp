// RMS normalisation on a CPU; the formulas stand in kernels/ops/rms_norm.h. Groups are numbered row by row, and taken in chunks: one chunk
// is one thread's, and its part of dgamma one row of `partial`, of which a CPU needs a few.
#include "kernels/ops/rms_norm.h"

#include <cmath>

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/rms_norm.cpp"  // NOLINT
#include <hwy/foreach_target.h>                            // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

// Where the groups of a matrix are.
struct RmsGroups {
  std::int64_t d = 0, a_row = 0;

  template <class T, class View>
  T* at(const View& view, std::int64_t group) const {
    return view.template row<T>(group / a_row) + group % a_row * d;
  }
};
template <class Args>
RmsGroups rms_groups(const Args& args) {
  return {.d = args.gamma.cols, .a_row = args.x.cols / args.gamma.cols};
}

template <class T>
void normalize_groups(const RmsNormArgs& args, std::int64_t begin, std::int64_t end) {
  const RmsGroups groups = rms_groups(args);
  const std::int64_t d = groups.d;
  const T* gamma = args.gamma.row<T>(0);
  for (std::int64_t group = begin; group < end; ++group) {
    const T* x = groups.at<const T>(args.x, group);
    T* y = groups.at<T>(args.y, group);
    const T mean_square = sum_of<T>(d, [=](std::int64_t c) { return x[c] * x[c]; }) / static_cast<T>(d);
    const T rstd = T(1) / std::sqrt(mean_square + static_cast<T>(args.epsilon));
#pragma GCC ivdep
    for (std::int64_t c = 0; c < d; ++c) y[c] = x[c] * rstd * gamma[c];
    args.rstd.row<T>(group / groups.a_row)[group % groups.a_row] = rstd;
  }
}

std::int64_t rms_chunk(const RmsNormBackwardArgs& args) {
  return std::max(rms_norm_chunk(args.x.rows * rms_groups(args).a_row), rows_per_range(args.gamma.cols));
}
std::int64_t rms_chunks(const RmsNormBackwardArgs& args) { return ceil_div(args.x.rows * rms_groups(args).a_row, rms_chunk(args)); }

template <class T>
void normalize_groups_backward(const RmsNormBackwardArgs& args, std::int64_t chunk) {
  const RmsGroups groups = rms_groups(args);
  const std::int64_t d = groups.d;
  const T* gamma = args.gamma.row<T>(0);
  T* dgamma = args.partial.row<T>(chunk);
  std::fill_n(dgamma, d, T(0));
  const std::int64_t step = rms_chunk(args), begin = chunk * step, end = std::min(args.x.rows * groups.a_row, begin + step);
  for (std::int64_t group = begin; group < end; ++group) {
    const T* x = groups.at<const T>(args.x, group);
    const T* dy = groups.at<const T>(args.dy, group);
    T* dx = groups.at<T>(args.dx, group);
    const T rstd = args.rstd.row<T>(group / groups.a_row)[group % groups.a_row];
    const T mean_gh = sum_of<T>(d, [=](std::int64_t c) { return dy[c] * gamma[c] * (x[c] * rstd); }) / static_cast<T>(d);
    const T kept = args.accumulate ? T(1) : T(0);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < d; ++c) {
      const T h = x[c] * rstd, g = dy[c];
      dgamma[c] += g * h;
      const T value = rstd * (g * gamma[c] - h * mean_gh);
      dx[c] = kept != T(0) ? dx[c] + value : value;
    }
  }
}

// dgamma from its partial sums, chunks in order.
template <class T>
void add_rms_chunks(const RmsNormBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  T* sum = args.dgamma.row<T>(0);
  if (!args.accumulate_gamma) std::fill(sum + begin, sum + end, T(0));
  for (std::int64_t chunk = 0; chunk < rms_chunks(args); ++chunk) {
    const T* partial = args.partial.row<T>(chunk);
    for (std::int64_t c = begin; c < end; ++c) sum[c] += partial[c];
  }
}

void rms_norm(CpuQueue& queue, const RmsNormArgs& args) {
  with_cpu_float(args.x.dtype, "rms_norm", [&]<class T>(T) {
    for_row_ranges(queue, args.x.rows * rms_groups(args).a_row, args.gamma.cols,
                   [&](std::int64_t begin, std::int64_t end) { normalize_groups<T>(args, begin, end); });
  });
}

void rms_norm_backward(CpuQueue& queue, const RmsNormBackwardArgs& args) {
  with_cpu_float(args.x.dtype, "rms_norm_backward", [&]<class T>(T) {
    const std::int64_t chunks = rms_chunks(args);
    queue.threads->parallel_for(chunks, [&](std::int64_t chunk, int) { normalize_groups_backward<T>(args, chunk); });
    for_row_ranges(queue, args.gamma.cols, chunks, [&](std::int64_t begin, std::int64_t end) { add_rms_chunks<T>(args, begin, end); });
  });
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(rms_norm);
HWY_EXPORT(rms_norm_backward);

void run(CpuQueue& queue, const RmsNormArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(rms_norm)(queue, args);
}

void run(CpuQueue& queue, const RmsNormBackwardArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(rms_norm_backward)(queue, args);
}

}  // namespace tilewave
#endif
