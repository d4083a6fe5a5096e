// How a Transformer's layers are made: their norms, their biases and initial values; and names for what they launch.
// Weights and embeddings are normal with mean 0; biases are 0, norms' weights 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "framework/nn/linear.h"
#include "framework/nn/norm.h"
#include "framework/tensor/context.h"
#include "models/recipe/config.h"

namespace tilewave {

// Of every fully-connected layer: 0.02 at GPT-2's width of 768 and more, wider for narrower models.
inline double weight_deviation(const ModelConfig& config) { return std::max(0.02, 0.45 / std::sqrt(static_cast<double>(config.d_model))); }
// Of token embeddings, which are also the vocabulary projection of a tied model: logits start with a variance of one.
inline double embedding_deviation(const ModelConfig& config) { return 1.0 / std::sqrt(static_cast<double>(config.d_model)); }
inline constexpr double kPositionDeviation = 0.02;

inline NormSpec norm_spec(const ModelConfig& config, std::string name) {
  return {.name = std::move(name),
          .d = config.d_model,
          .kind = config.norm_kind,
          .bias = config.biases == Biases::all,
          .epsilon = config.epsilon};
}

// Whether a layer computes queries, keys or values.
enum class LinearPart : std::uint8_t { queries_keys_values, other };
inline LinearSpec linear_spec(const ModelConfig& config, LinearSpec spec, LinearPart part = LinearPart::other) {
  spec.deviation = weight_deviation(config);
  spec.bias = config.biases == Biases::all || (config.biases == Biases::qkv && part == LinearPart::queries_keys_values);
  return spec;
}

// Runs `function` with its launches under the name of a part of the layer.
template <class Function>
auto named(Context& context, std::string_view name, Function&& function) {
  const LayerScope scope(context, name);
  return function();
}

}  // namespace tilewave
