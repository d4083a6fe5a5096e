// Fully-connected layer: y = activation(x W^T + b) + residual, one GEMM with all of it in the epilogue.
// Its backward pass is the guide's other two GEMMs (dgrad and wgrad; the bias gradient rides on wgrad).
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

struct LinearInputs {
  Variable x;         // [tokens, in]
  Variable weight;    // [out, in]
  Variable bias;      // [1, out], or absent
  Variable residual;  // [tokens, out], or absent
  Activation activation = Activation::none;
};

Variable linear(Context& context, const LinearInputs& inputs);  // [tokens, out]

}  // namespace tilewave
