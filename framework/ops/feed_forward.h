// A Transformer's feed-forward layer as one operation, so that the activation's derivative rides on the dgrad GEMM between its
// two fully-connected layers where an epilogue has it:  y = activation(x U^T + u) D^T + d + residual.
// With swiglu U is the gate's rows and then the up projection's, one GEMM:  y = (silu(x G^T + g) (x U^T + u)) D^T + d + residual.
#pragma once

#include "framework/autograd/variable.h"
#include "framework/ops/feed_forward_activation.h"
#include "framework/tensor/layout.h"

namespace tilewave {

struct FeedForwardInputs {
  Variable x;                       // [tokens, d_model]
  Variable up_weight, up_bias;      // [d_ff, d_model] or [2 d_ff, d_model]; one row of as many columns, or absent
  Variable down_weight, down_bias;  // [d_model, d_ff]; [1, d_model], or absent
  Variable residual;                // [tokens, d_model], or absent
  FeedForwardActivation activation = FeedForwardActivation::relu;
  ActivationLayout hidden_layout = ActivationLayout::token_major;
};

Variable feed_forward(Context& context, const FeedForwardInputs& inputs);  // [tokens, d_model]

}  // namespace tilewave
