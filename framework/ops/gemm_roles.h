// The three GEMMs of a fully-connected layer, from tensors as they lie in memory: nobody above writes majors.
#pragma once

#include <utility>

#include "framework/autograd/variable.h"
#include "framework/tensor/context.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/tensor.h"
#include "kernels/gemm/gemm.h"

namespace tilewave {

// Activations or their gradients: [tokens, features] in memory, or [features, tokens].
struct Activations {
  Tensor tensor;
  ActivationLayout layout = ActivationLayout::token_major;

  Activations(Tensor matrix, ActivationLayout how = ActivationLayout::token_major)  // NOLINT: most lie token-major
      : tensor(std::move(matrix)), layout(how) {}
};

// Y = X W^T. Fill in the epilogue, then launch_gemm.
GemmArgs forward_gemm(const Tensor& weight, const Activations& x, const Activations& y);  // W is [out, in]
// dX = dY W.
GemmArgs dgrad_gemm(const Tensor& weight, const Activations& dy, const Activations& dx);
// dW = dY^T X.
GemmArgs wgrad_gemm(const Activations& x, const Activations& dy, const GradientSlot::Target& dweight);

// Plans the GEMM, gives it its workspace and launches it.
void launch_gemm(Context& context, GemmArgs args);

// The gradients of a weight and of its bias, where they are needed: one wgrad GEMM that sums dY on its way.
void launch_wgrad(Context& context, const Activations& x, const Activations& dy, GradientSlot& weight, GradientSlot& bias);
// The gradient of a layer's input, where it is needed.
void launch_dgrad(Context& context, const Tensor& weight, const Activations& dy, GradientSlot& dx);

}  // namespace tilewave
