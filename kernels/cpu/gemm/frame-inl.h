// A GEMM as the CPU's kernels see it: vectors run along i, the fastest dimension of D, and an n-major D swaps the roles of
// A and B; and the epilogue over neighbours in one row of D. Compiled once for each of Highway's targets.
#if defined(TILEWAVE_KERNELS_CPU_GEMM_FRAME_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TILEWAVE_KERNELS_CPU_GEMM_FRAME_INL_H_
#undef TILEWAVE_KERNELS_CPU_GEMM_FRAME_INL_H_
#else
#define TILEWAVE_KERNELS_CPU_GEMM_FRAME_INL_H_  // NOLINT: toggles for Highway
#endif

#include <algorithm>
#include <hwy/highway.h>

#include "kernels/gemm.h"
#include "kernels/math/activation.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

// One operand as rows along i (or j), whatever its major was.
template <class T>
struct Operand {
  const T* data = nullptr;
  std::int64_t row_stride = 0, k_stride = 0;  // one of them is 1
};

template <class T>
struct Frame {
  explicit Frame(const GemmArgs& arguments) : args(arguments), swapped(args.d_major == Major::n), i(args.d.cols), j(args.d.rows) {
    const auto operand = [](const ConstMatrixView& view, Major major) {
      const std::int64_t ld = view.ld;
      return Operand<T>{.data = view.row<T>(0), .row_stride = major == Major::k ? ld : 1, .k_stride = major == Major::k ? 1 : ld};
    };
    const Operand<T> a = operand(args.a, args.a_major), b = operand(args.b, args.b_major);
    along_i = swapped ? b : a;
    along_j = swapped ? a : b;
    k = args.a_major == Major::k ? args.a.cols : args.a.rows;
  }

  const GemmArgs& args;
  bool swapped;
  std::int64_t i, j, k = 0;
  Operand<T> along_i, along_j;
};

// A call of memmove costs more than so few elements.
template <class T>
void copy_row(const T* HWY_RESTRICT from, std::int64_t count, T* HWY_RESTRICT to) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  constexpr std::int64_t lanes = hwy::HWY_NAMESPACE::MaxLanes(d);
  std::int64_t x = 0;
  for (; x + lanes <= count; x += lanes) hwy::HWY_NAMESPACE::StoreU(hwy::HWY_NAMESPACE::LoadU(d, from + x), d, to + x);
  if (x < count) std::copy(from + x, from + count, to + x);
}

template <Activation kActivation, class T>
void apply_activation(std::int64_t count, T* HWY_RESTRICT z) {
  for (std::int64_t x = 0; x < count; ++x) z[x] = activate(kActivation, z[x]);
}
template <Activation kActivation, class T>
void apply_derivative(const T* HWY_RESTRICT of, std::int64_t count, T* HWY_RESTRICT z) {
  for (std::int64_t x = 0; x < count; ++x) z[x] *= activation_derivative(kActivation, of[x]);
}

// The formula of kernels/gemm.h over `count` neighbours in one row of D; z holds their sums.
template <class T>
void finish_row(const Frame<T>& frame, std::int64_t i, std::int64_t j, std::int64_t count, T* HWY_RESTRICT z) {
  const GemmArgs& args = frame.args;
  if (args.bias && frame.swapped) {
    const T bias = args.bias.row<T>(0)[j];
    for (std::int64_t x = 0; x < count; ++x) z[x] += bias;
  } else if (args.bias) {
    const T* HWY_RESTRICT bias = args.bias.row<T>(0) + i;
    for (std::int64_t x = 0; x < count; ++x) z[x] += bias[x];
  }
  if (args.saved_input) copy_row(z, count, args.saved_input.row<T>(j) + i);
  switch (args.activation) {
    case Activation::none:
      break;
    case Activation::relu:
      apply_activation<Activation::relu>(count, z);
      break;
    case Activation::gelu_tanh:
      apply_activation<Activation::gelu_tanh>(count, z);
      break;
    case Activation::gelu_erf:
      apply_activation<Activation::gelu_erf>(count, z);
      break;
  }
  const T* derivative_of = args.derivative_of ? args.derivative_of.row<T>(j) + i : nullptr;
  switch (args.derivative) {
    case Activation::none:
      break;
    case Activation::relu:
      apply_derivative<Activation::relu>(derivative_of, count, z);
      break;
    case Activation::gelu_tanh:
      apply_derivative<Activation::gelu_tanh>(derivative_of, count, z);
      break;
    case Activation::gelu_erf:
      apply_derivative<Activation::gelu_erf>(derivative_of, count, z);
      break;
  }
  if (args.residual) {
    const T* HWY_RESTRICT residual = args.residual.row<T>(j) + i;
    for (std::int64_t x = 0; x < count; ++x) z[x] += residual[x];
  }
  T* HWY_RESTRICT d = args.d.row<T>(j) + i;
  if (args.accumulate) {
    for (std::int64_t x = 0; x < count; ++x) d[x] += z[x];
  } else {
    copy_row(z, count, d);
  }
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
