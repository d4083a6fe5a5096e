// What stands between a feed-forward layer's two fully-connected ones. Those before silu ride in GEMM epilogues; SiLU, sigmoid and tanh
// have a launch of their own, and swiglu is silu(gate) times up, two matrices beside each other.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/gemm/problem.h"

namespace tilewave {

enum class FeedForwardActivation : std::uint8_t { none, relu, gelu_tanh, gelu_erf, silu, swiglu, sigmoid, tanh };

constexpr std::string_view name_of(FeedForwardActivation activation) {
  constexpr std::string_view names[] = {"none", "relu", "gelu_tanh", "gelu_erf", "silu", "swiglu", "sigmoid", "tanh"};
  return names[static_cast<int>(activation)];
}

constexpr bool has_launch(FeedForwardActivation activation) { return activation >= FeedForwardActivation::silu; }

// Those whose derivative their result tells, so that nothing else is saved.
constexpr bool squashes(FeedForwardActivation activation) {
  return activation == FeedForwardActivation::sigmoid || activation == FeedForwardActivation::tanh;
}

// What the GEMMs' epilogues do of it.
constexpr Activation epilogue_of(FeedForwardActivation activation) {
  constexpr Activation epilogues[] = {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf};
  return has_launch(activation) ? Activation::none : epilogues[static_cast<int>(activation)];
}

// Matrices of d_ff features that the first layer computes, side by side.
constexpr std::int64_t up_matrices(FeedForwardActivation activation) { return activation == FeedForwardActivation::swiglu ? 2 : 1; }

}  // namespace tilewave
