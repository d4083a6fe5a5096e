// The feed-forward sublayer: norm, up projection with activation, down projection, residual. Parameters: ffn.{norm, up, down}.
#pragma once

#include <string>

#include "framework/nn/layer_norm.h"
#include "framework/nn/linear.h"
#include "models/recipe/config.h"
#include "models/transformer/sublayer.h"

namespace tilewave {

class FeedForward {
 public:
  FeedForward(Parameters& parameters, const std::string& name, const ModelConfig& config);

  Variable forward(Context& context, const Variable& x, const DropoutRates& rates) const;  // [tokens, d_model]

 private:
  LayerNorm norm_;
  Linear up_, down_;
  Activation activation_;
  Norm placement_;
};

}  // namespace tilewave
