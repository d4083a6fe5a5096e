// A matrix product as data, in the guide's words: D[M, N] = epilogue(A[M, K] x B[K, N]), M = outputs, N = tokens in the
// forward pass. Each operand names which of its two dimensions is the fastest-varying one in memory.
//
//   role     M    N       K       A                  B                    D
//   forward  out  tokens  in      W   [out, in]   k  X  [tokens, in]  k   Y  [tokens, out] m
//   dgrad    in   tokens  out     W   [out, in]   m  dY [tokens, out] k   dX [tokens, in]  m
//   wgrad    in   out     tokens  X   [tokens, in] m dY [tokens, out] n   dW [out, in]     m
// (bracketed: rows and columns as they lie in memory). Source: the guide's fully-connected layers, Table 1.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "kernels/core/dtype.h"
#include "kernels/core/saturating.h"

namespace tilewave {

enum class GemmRole : std::uint8_t { forward, dgrad, wgrad };
enum class Major : std::uint8_t { k, m, n };  // the fastest-varying dimension: A has k or m, B has k or n, D has m or n
enum class MathMode : std::uint8_t { ieee, tf32 };
enum class Activation : std::uint8_t { none, relu, gelu_tanh, gelu_erf };

constexpr std::string_view name_of(GemmRole role) {
  constexpr std::string_view names[] = {"forward", "dgrad", "wgrad"};
  return names[static_cast<int>(role)];
}
constexpr std::string_view name_of(Major major) {
  constexpr std::string_view names[] = {"k", "m", "n"};
  return names[static_cast<int>(major)];
}
constexpr std::string_view name_of(MathMode math) {
  constexpr std::string_view names[] = {"ieee", "tf32"};
  return names[static_cast<int>(math)];
}
constexpr std::string_view name_of(Activation activation) {
  constexpr std::string_view names[] = {"none", "relu", "gelu_tanh", "gelu_erf"};
  return names[static_cast<int>(activation)];
}

// What happens to the sums before they are stored; the formula stands in kernels/gemm/gemm.h.
struct Epilogue {
  bool bias = false;
  Activation activation = Activation::none;
  bool saved_input = false;                  // the activation's input is stored beside D
  Activation derivative = Activation::none;  // D is multiplied by this activation's derivative
  bool residual = false;
  bool bias_gradient = false;  // sums of B over K are stored beside D (wgrad)
  bool output_sums = false;    // sums of D over N are stored beside D (dgrad: the bias gradient of the layer below)
  bool accumulate = false;     // beta = 1: D is added to

  // Passes over a matrix of D's shape: D written, and whatever else is read or written beside it.
  int passes() const {
    return 1 + (saved_input ? 1 : 0) + (derivative != Activation::none ? 1 : 0) + (residual ? 1 : 0) + (accumulate ? 1 : 0);
  }

  friend auto operator<=>(const Epilogue&, const Epilogue&) = default;
};

struct GemmProblem {
  GemmRole role = GemmRole::forward;
  std::int64_t m = 0, n = 0, k = 0;
  Major a_major = Major::k, b_major = Major::k, d_major = Major::m;
  DType operand_dtype = DType::f32;  // of A and B
  DType output_dtype = DType::f32;   // of D
  MathMode math = MathMode::ieee;
  Epilogue epilogue;
  std::int64_t a_pitch = 0, b_pitch = 0, d_pitch = 0;              // elements from one row in memory to the next
  std::int64_t a_alignment = 0, b_alignment = 0, d_alignment = 0;  // bytes, a power of two <= 128: rows start on it; d's, all like D

  std::int64_t flops() const { return saturating_product(2, m, n, k); }
  // The least traffic: A and B read once, D written once, and one more pass over D's shape for each thing of that shape
  // that the epilogue reads or writes.
  std::int64_t bytes() const { return size_of(operand_dtype) * (m * k + k * n) + size_of(output_dtype) * m * n * epilogue.passes(); }

  friend auto operator<=>(const GemmProblem&, const GemmProblem&) = default;
};

// The largest power of two, at most 128 bytes, that both the address and the pitch in bytes are multiples of.
constexpr std::int64_t alignment_of(std::uint64_t address, std::int64_t pitch_bytes) {
  const std::uint64_t bits = address | static_cast<std::uint64_t>(pitch_bytes) | 128u;
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

}  // namespace tilewave
