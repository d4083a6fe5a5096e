// AdamW on a CPU: the rows of all tensors in one loop; the order of operations stands in kernels/ops/adamw.h.
#include "kernels/ops/adamw.h"

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/simd_targets.h"
#include "kernels/math/adamw.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/adamw.cpp"  // NOLINT
#include <hwy/foreach_target.h>                         // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

template <class T>
void update_row(const AdamWTensor& tensor, const AdamWCoefficients<T>& k, std::int64_t r) {
  T* __restrict weight = tensor.master.row<T>(r);
  T* __restrict first = tensor.first_moment.row<T>(r);
  T* __restrict second = tensor.second_moment.row<T>(r);
  const T* __restrict gradient = tensor.gradient.row<T>(r);
  for (std::int64_t c = 0; c < tensor.master.cols; ++c) adamw_update(k, gradient[c], weight[c], first[c], second[c]);
}

template <class T, class Rounded>
void round_row(const AdamWTensor& tensor, std::int64_t r) {
  const T* weight = tensor.master.row<T>(r);
  Rounded* compute = tensor.compute.row<Rounded>(r);
  for (std::int64_t c = 0; c < tensor.master.cols; ++c) compute[c] = static_cast<Rounded>(weight[c]);
}

template <class T>
void write_compute_row(const AdamWTensor& tensor, std::int64_t r) {
  switch (tensor.compute.dtype) {
    case DType::f64:
      return round_row<T, double>(tensor, r);
    case DType::f32:
      return round_row<T, float>(tensor, r);
    case DType::bf16:
      return round_row<T, bf16>(tensor, r);
    case DType::f16:
      return round_row<T, f16>(tensor, r);
    case DType::i32:
      return;  // check() refuses it
  }
}

template <class T>
void update_rows(const AdamWArgs& args, const RowRange& range) {
  const AdamWTensor& tensor = args.tensors[range.matrix];
  AdamWCoefficients<T> k = adamw_coefficients<T>(
      {.beta1 = args.beta1, .beta2 = args.beta2, .epsilon = args.epsilon, .weight_decay = args.weight_decay}, *args.state);
  if (tensor.decay == WeightDecay::no) k.kept = T(1);
  for (std::int64_t r = range.begin; r < range.end; ++r) {
    update_row(tensor, k, r);
    if (tensor.compute) write_compute_row<T>(tensor, r);
  }
}

void adamw(CpuQueue& queue, const AdamWArgs& args) {
  const auto ranges = row_ranges(args.tensors, [](const AdamWTensor& tensor) { return tensor.master; });
  queue.threads->parallel_for(static_cast<std::int64_t>(ranges.size()), [&](std::int64_t index, int) {
    const RowRange& range = ranges[static_cast<std::size_t>(index)];
    with_cpu_float(args.tensors[range.matrix].master.dtype, "adamw", [&]<class T>(T) { update_rows<T>(args, range); });
  });
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(adamw);

void run(CpuQueue& queue, const AdamWArgs& args) {
  check(args);
  TW_CHECK(args.state->step >= 1, "adamw: step ", args.state->step, " is not an update; they count from 1.");
  if (args.state->found_nonfinite == 0) HWY_DYNAMIC_DISPATCH(adamw)(queue, args);
}

}  // namespace tilewave
#endif
