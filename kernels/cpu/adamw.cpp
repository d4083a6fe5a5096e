// AdamW on a CPU: the rows of all tensors in one loop; the order of operations stands in kernels/adamw.h.
#include "kernels/adamw.h"

#include <cmath>

#include "kernels/contract.h"
#include "kernels/cpu/row_ranges.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"  // NOLINT
#include <hwy/foreach_target.h>                     // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

// The step's scalars, computed in double and rounded once.
template <class T>
struct Coefficients {
  T gradient, beta1, beta2, one_minus_beta1, one_minus_beta2, decayed, rate, root_correction, epsilon;
};

template <class T>
Coefficients<T> coefficients(const AdamWArgs& args, WeightDecay decay) {
  const StepState& state = *args.state;
  const auto step = static_cast<double>(state.step);
  const double decay_rate = decay == WeightDecay::yes ? state.learning_rate * args.weight_decay : 0.0;
  return {.gradient = static_cast<T>(state.clip_factor / state.loss_scale),
          .beta1 = static_cast<T>(args.beta1),
          .beta2 = static_cast<T>(args.beta2),
          .one_minus_beta1 = static_cast<T>(1.0 - args.beta1),
          .one_minus_beta2 = static_cast<T>(1.0 - args.beta2),
          .decayed = static_cast<T>(1.0 - decay_rate),
          .rate = static_cast<T>(state.learning_rate / (1.0 - std::pow(args.beta1, step))),
          .root_correction = static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(args.beta2, step))),
          .epsilon = static_cast<T>(args.epsilon)};
}

template <class T>
void update_row(const AdamWTensor& tensor, const Coefficients<T>& k, std::int64_t r) {
  T* __restrict weight = tensor.master.row<T>(r);
  T* __restrict first = tensor.first_moment.row<T>(r);
  T* __restrict second = tensor.second_moment.row<T>(r);
  const T* __restrict gradient = tensor.gradient.row<T>(r);
  for (std::int64_t c = 0; c < tensor.master.cols; ++c) {
    const T g = gradient[c] * k.gradient;
    const T m = k.beta1 * first[c] + k.one_minus_beta1 * g;
    const T v = k.beta2 * second[c] + k.one_minus_beta2 * g * g;
    first[c] = m;
    second[c] = v;
    weight[c] = weight[c] * k.decayed - k.rate * m / (std::sqrt(v) * k.root_correction + k.epsilon);
  }
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
      throw Error("adamw: a compute copy cannot be i32; it must be a floating-point type.");
  }
}

template <class T>
void update_rows(const AdamWArgs& args, const RowRange& range) {
  const AdamWTensor& tensor = args.tensors[range.matrix];
  const Coefficients<T> k = coefficients<T>(args, tensor.decay);
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
  const Contract contract(AdamWArgs::kOperation);
  TW_CHECK(args.state != nullptr, "adamw needs the step's state: step, learning rate and clip factor are read there.");
  TW_CHECK(args.state->step >= 1, "adamw: step ", args.state->step, " is not an update; they count from 1.");
  for (const AdamWTensor& tensor : args.tensors) {
    const ViewShape shape = shape_of(tensor.master);
    contract.expect("gradient", tensor.gradient, shape);
    contract.expect("first_moment", tensor.first_moment, shape);
    contract.expect("second_moment", tensor.second_moment, shape);
    contract.expect_if_present("compute", tensor.compute, {.rows = shape.rows, .cols = shape.cols, .dtype = tensor.compute.dtype});
  }
  if (args.state->found_nonfinite == 0) HWY_DYNAMIC_DISPATCH(adamw)(queue, args);
}

}  // namespace tilewave
#endif
