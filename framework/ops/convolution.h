// Convolution of images in nhwc, as torch.nn.functional.conv2d of one group: y = activation(x * weight + b), a GEMM over all that an output
// is the product of. That matrix is x's own memory where it lies so (1x1 at stride 1, some patches), else im2col makes it; the backward
// pass makes it again, and col2im sums what the pixels of x get. Of 16-bit types each of these terms is rounded before it is summed.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/core/convolution.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

struct ConvolutionInputs {
  Variable x;       // [N H W, C]
  Variable weight;  // [K, R S C]
  Variable bias;    // [1, K], or absent
  Images images;    // x's
  ConvolutionFilter filter;
  Activation activation = Activation::none;
};

Variable convolution(Context& context, const ConvolutionInputs& inputs);  // [N P Q, K], convolved(images, filter, K)

}  // namespace tilewave
