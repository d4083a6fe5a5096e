// How a sublayer stands in a Transformer's layer:
//   pre:  y = x + dropout(f(norm(x)))      post:  y = norm(x + dropout(f(x)))
#pragma once

#include "framework/nn/norm.h"
#include "framework/ops/dropout.h"
#include "models/recipe/config.h"

namespace tilewave {

// Rates of the forward pass under way; both zero outside training.
struct DropoutRates {
  double hidden = 0.0;     // of embeddings and of every sublayer's output
  double attention = 0.0;  // of attention probabilities
};

// `function(input, residual)` adds the residual itself where it is given one: without dropout it rides in the epilogue of the
// sublayer's last GEMM.
template <class Function>
Variable sublayer(Context& context, const NormLayer& norm, Norm placement, double rate, const Variable& x, Function&& function) {
  const Variable input = placement == Norm::pre ? norm.forward(context, x) : x;  // [tokens, d_model]
  const Variable y = rate == 0.0 ? function(input, x)                            // [tokens, d_model]
                                 : dropout(context, {.x = function(input, Variable()), .residual = x, .probability = rate});
  return placement == Norm::post ? norm.forward(context, y) : y;
}

}  // namespace tilewave
