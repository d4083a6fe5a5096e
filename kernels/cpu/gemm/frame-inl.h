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

#include "kernels/gemm/gemm.h"
#include "kernels/math/activation.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

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

  // Whether D is the sums as they are.
  bool plain() const {
    return args.alpha.is_one() && !args.bias && !args.saved_input && args.activation == Activation::none &&
           args.derivative == Activation::none && !args.residual && !args.accumulate;
  }

  const GemmArgs& args;
  bool swapped;
  std::int64_t i, j, k = 0;
  Operand<T> along_i, along_j;
};

// `count` elements, as many as there are lanes or fewer; the missing ones are zero.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from, std::int64_t count) {
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
#if HWY_TARGET <= HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, from);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  std::copy_n(from, count, lanes);
  return hn::Load(d, lanes);
#endif
}
template <class D, class T>
HWY_INLINE void store_some(D d, hn::Vec<D> vector, T* to, std::int64_t count) {
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(vector, d, to);
#if HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(vector, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#else
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(vector, d, lanes);
  std::copy_n(lanes, count, to);
#endif
}

template <Activation kActivation, class D>
HWY_NOINLINE hn::Vec<D> activate_lanes(D d, hn::Vec<D> x) {
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN hn::TFromD<D> lanes[kLanes];
  hn::Store(x, d, lanes);
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = activate(kActivation, lanes[lane]);
  return hn::Load(d, lanes);
}
template <class D>
HWY_INLINE hn::Vec<D> activate_vector(D d, Activation activation, hn::Vec<D> x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
    case Activation::gelu_tanh:
      return activate_lanes<Activation::gelu_tanh>(d, x);
    case Activation::gelu_erf:
      return activate_lanes<Activation::gelu_erf>(d, x);
  }
  return x;
}

template <Activation kActivation, class D>
HWY_NOINLINE hn::Vec<D> derivative_lanes(D d, hn::Vec<D> x) {
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN hn::TFromD<D> lanes[kLanes];
  hn::Store(x, d, lanes);
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = activation_derivative(kActivation, lanes[lane]);
  return hn::Load(d, lanes);
}
// z times the derivative.
template <class D>
HWY_INLINE hn::Vec<D> times_derivative(D d, Activation activation, hn::Vec<D> z, hn::Vec<D> of) {
  switch (activation) {
    case Activation::none:
      return z;
    case Activation::relu:
      return hn::Mul(z, hn::IfThenElse(hn::Gt(of, hn::Zero(d)), hn::Set(d, 1), hn::Zero(d)));
    case Activation::gelu_tanh:
      return hn::Mul(z, derivative_lanes<Activation::gelu_tanh>(d, of));
    case Activation::gelu_erf:
      return hn::Mul(z, derivative_lanes<Activation::gelu_erf>(d, of));
  }
  return z;
}

// The formula of kernels/gemm/gemm.h down the columns of one vector's outputs, all its lanes or `outputs.count` of them.
enum class Lanes : std::uint8_t { all, some };

template <Lanes kLanes, class T>
HWY_NOINLINE void finish_vector(const GemmArgs& args, const Outputs& outputs, const T* HWY_RESTRICT sums, std::int64_t ld) {
  const hn::ScalableTag<T> d;
  const auto load = [&](const T* from) HWY_ATTR {
    if constexpr (kLanes == Lanes::all) return hn::LoadU(d, from);
    return load_some(d, from, outputs.count);
  };
  const auto store = [&](auto vector, T* to) HWY_ATTR {
    if constexpr (kLanes == Lanes::all) return hn::StoreU(vector, d, to);
    store_some(d, vector, to, outputs.count);
  };
  const bool swapped = args.d_major == Major::n;
  const auto [i, count, j, columns] = outputs;
  const T* bias = args.bias ? args.bias.row<T>(0) : nullptr;
  const auto along_i = bias != nullptr && !swapped ? load(bias + i) : hn::Zero(d);
  T* out = args.d.row<T>(j) + i;
  T* saved = args.saved_input ? args.saved_input.row<T>(j) + i : nullptr;
  const T* of = args.derivative != Activation::none ? args.derivative_of.row<T>(j) + i : nullptr;
  const T* residual = args.residual ? args.residual.row<T>(j) + i : nullptr;
  const bool scales = !args.alpha.is_one();
  const auto alpha = hn::Set(d, args.alpha.load<T>()), beta = hn::Set(d, args.beta.load<T>());
  for (std::int64_t column = 0; column < columns; ++column, sums += ld, out += args.d.ld) {
    auto z = hn::LoadU(d, sums);
    if (scales) z = hn::Mul(z, alpha);
    if (bias != nullptr) z = hn::Add(z, swapped ? hn::Set(d, bias[j + column]) : along_i);
    if (saved != nullptr) store(z, saved + column * args.saved_input.ld);
    z = activate_vector(d, args.activation, z);
    if (of != nullptr) z = times_derivative(d, args.derivative, z, load(of + column * args.derivative_of.ld));
    if (residual != nullptr) z = hn::MulAdd(load(residual + column * args.residual.ld), beta, z);
    if (args.accumulate) z = hn::Add(load(out), z);
    store(z, out);
  }
}

// The formula over a part of D; `sums` holds whole vectors, `ld` elements from one row of D to the next.
template <class T>
void finish(const GemmArgs& args, const Outputs& outputs, const T* HWY_RESTRICT sums, std::int64_t ld) {
  constexpr std::int64_t lanes = hn::MaxLanes(hn::ScalableTag<T>());
  for (std::int64_t x = 0; x < outputs.count; x += lanes) {
    const Outputs vector{.i = outputs.i + x, .count = std::min(lanes, outputs.count - x), .j = outputs.j, .columns = outputs.columns};
    if (vector.count == lanes) {
      finish_vector<Lanes::all>(args, vector, sums + x, ld);
    } else {
      finish_vector<Lanes::some>(args, vector, sums + x, ld);
    }
  }
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
