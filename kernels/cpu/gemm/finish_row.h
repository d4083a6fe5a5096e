// The epilogue of the rows with bf16 operands, whose results are bf16 or f32: one row of D at a time, compiled for AVX-512.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"
#include "kernels/math/activation.h"

namespace tilewave {

// The formula of kernels/gemm/gemm.h for `count` neighbours in one row of D, whose type is T; sums are used up.
template <class T>
__attribute__((target("avx512f,avx512bw,avx512bf16"))) void finish_row(const GemmArgs& args, std::int64_t row, std::int64_t col,
                                                                       std::int64_t count, float* z) {
  const auto each = [&](const ConstMatrixView& view, std::int64_t r, std::int64_t c, const auto& combine) {
    const T* const from = view.row<T>(r) + c;
    for (std::int64_t x = 0; x < count; ++x) z[x] = combine(z[x], static_cast<float>(from[x]));
  };
  const auto sum = [](float a, float b) { return a + b; };
  const auto store = [&](const MatrixView& view) {
    T* const to = view.row<T>(row) + col;
    for (std::int64_t x = 0; x < count; ++x) to[x] = static_cast<T>(z[x]);
  };
  if (!args.alpha.is_one()) {
    const auto alpha = args.alpha.load<float>();
    for (std::int64_t x = 0; x < count; ++x) z[x] *= alpha;
  }
  if (args.bias && args.d_major == Major::m) each(args.bias, 0, col, sum);
  if (args.bias && args.d_major == Major::n) {
    const auto bias = static_cast<float>(args.bias.row<T>(0)[row]);
    for (std::int64_t x = 0; x < count; ++x) z[x] += bias;
  }
  if (args.saved_input) store(args.saved_input);
  if (args.activation != Activation::none) {
    for (std::int64_t x = 0; x < count; ++x) z[x] = activate(args.activation, z[x]);
  }
  if (args.derivative_of)
    each(args.derivative_of, row, col, [&](float a, float of) { return a * activation_derivative(args.derivative, of); });
  if (args.residual) {
    const auto beta = args.beta.load<float>();
    each(args.residual, row, col, [&](float a, float b) { return a + beta * b; });
  }
  if (args.accumulate) each(args.d, row, col, sum);
  store(args.d);
}

}  // namespace tilewave
