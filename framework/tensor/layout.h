// How a matrix of activations lies in memory: a token's features side by side, as everywhere between operations, or a feature's
// tokens side by side, as the hidden activation of a feed-forward layer may: there tokens are the fastest-varying dimension.
#pragma once

#include <cstdint>

#include "framework/tensor/shape.h"

namespace tilewave {

enum class ActivationLayout : std::uint8_t { token_major, feature_major };

// Rows and columns in memory of `tokens` tokens with `features` features each.
constexpr Shape shape_of(std::int64_t tokens, std::int64_t features, ActivationLayout layout) {
  return layout == ActivationLayout::token_major ? Shape{tokens, features} : Shape{features, tokens};
}

}  // namespace tilewave
