// The launches that a convolution's passes are made of, for who has tensors and no graph: a matrix of all that outputs are products of, and
// GEMMs over it.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/core/convolution.h"

namespace tilewave {

struct ConvolvedImages {
  Images images;  // x's
  ConvolutionFilter filter;
};

// [N P Q, R S C]: x's own memory where it lies so (columns_in_place), else what im2col makes of it.
Tensor convolution_columns(Context& context, const Tensor& x, const ConvolvedImages& of);

// dx [N H W, C] of dz [N P Q, K] and the weight [K, R S C]: dcolumns = dz W, and dx sums them.
void launch_convolution_dgrad(Context& context, const Tensor& weight, const Tensor& dz, const GradientSlot::Target& dx,
                              const ConvolvedImages& of);

}  // namespace tilewave
