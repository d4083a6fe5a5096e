// The feed-forward sublayer: norm, up projection with activation, down projection, residual. Parameters: ffn.{norm, up, down}; with swiglu
// up's rows are the gate's and then the up projection's.
#pragma once

#include <string>
#include <vector>

#include "framework/nn/linear.h"
#include "framework/nn/norm.h"
#include "models/recipe/config.h"
#include "models/transformer/sublayer.h"

namespace tilewave {

// Rows of the matrices that the up projection's is: with swiglu the gate's and its own.
std::vector<std::int64_t> up_parts(const ModelConfig& config);

class FeedForward {
 public:
  FeedForward(Parameters& parameters, const std::string& name, const ModelConfig& config);

  Variable forward(Context& context, const Variable& x, const DropoutRates& rates) const;  // [tokens, d_model]

 private:
  NormLayer norm_;
  Linear up_, down_;
  FeedForwardActivation activation_;
  Norm placement_;
};

}  // namespace tilewave
