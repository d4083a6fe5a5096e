// The three GEMMs of a fully-connected layer, from tensors as they lie in memory: nobody above writes majors.
#pragma once

#include "framework/context.h"
#include "framework/tensor.h"
#include "framework/variable.h"
#include "kernels/gemm.h"

namespace tilewave {

// Y = X W^T. Fill in the epilogue, then launch_gemm.
GemmArgs forward_gemm(const Tensor& weight, const Tensor& x, const Tensor& y);  // [out, in], [tokens, in], [tokens, out]
// dX = dY W.
GemmArgs dgrad_gemm(const Tensor& weight, const Tensor& dy, const GradientSlot::Target& dx);
// dW = dY^T X.
GemmArgs wgrad_gemm(const Tensor& x, const Tensor& dy, const GradientSlot::Target& dweight);

// Plans the GEMM, gives it its workspace and launches it.
void launch_gemm(Context& context, GemmArgs args);

// The gradients of a weight and of its bias, where they are needed: one wgrad GEMM that sums dY on its way.
void launch_wgrad(Context& context, const Tensor& x, const Tensor& dy, GradientSlot& weight, GradientSlot& bias);

}  // namespace tilewave
