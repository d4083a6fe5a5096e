// Initial values of a Transformer's parameters, and names for what its layers launch.
// Weights and embeddings are normal with mean 0; biases are 0, LayerNorms 1 and 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "framework/tensor/context.h"
#include "models/recipe/config.h"

namespace tilewave {

// Of every fully-connected layer: 0.02 at GPT-2's width of 768 and more, wider for narrower models.
inline double weight_deviation(const ModelConfig& config) { return std::max(0.02, 0.45 / std::sqrt(static_cast<double>(config.d_model))); }
// Of token embeddings, which are also the vocabulary projection of a tied model: logits start with a variance of one.
inline double embedding_deviation(const ModelConfig& config) { return 1.0 / std::sqrt(static_cast<double>(config.d_model)); }
inline constexpr double kPositionDeviation = 0.02;

// Runs `function` with its launches under the name of a part of the layer.
template <class Function>
auto named(Context& context, std::string_view name, Function&& function) {
  const LayerScope scope(context, name);
  return function();
}

}  // namespace tilewave
