// Layer normalisation of each row, as torch.nn.functional.layer_norm with weight and bias.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/ops/layer_norm.h"

namespace tilewave {

struct LayerNormInputs {
  Variable x;            // [tokens, d]
  Variable gamma, beta;  // [1, d]
  double epsilon = kLayerNormEpsilon;
};

Variable layer_norm(Context& context, const LayerNormInputs& inputs);  // [tokens, d]

}  // namespace tilewave
