// A Transformer's feed-forward layer as one operation, so that the activation's derivative rides on the dgrad GEMM between its
// two fully-connected layers:  y = activation(x U^T + u) D^T + d + residual.
#pragma once

#include "framework/autograd/variable.h"
#include "framework/tensor/layout.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

struct FeedForwardInputs {
  Variable x;                       // [tokens, d_model]
  Variable up_weight, up_bias;      // [d_ff, d_model], [1, d_ff]
  Variable down_weight, down_bias;  // [d_model, d_ff], [1, d_model]
  Variable residual;                // [tokens, d_model], or absent
  Activation activation = Activation::relu;
  ActivationLayout hidden_layout = ActivationLayout::token_major;
};

Variable feed_forward(Context& context, const FeedForwardInputs& inputs);  // [tokens, d_model]

}  // namespace tilewave
