// Layer normalisation of each row, as torch.nn.functional.layer_norm with weight, bias and epsilon 1e-5.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

struct LayerNormInputs {
  Variable x;            // [tokens, d]
  Variable gamma, beta;  // [1, d]
};

Variable layer_norm(Context& context, const LayerNormInputs& inputs);  // [tokens, d]

}  // namespace tilewave
