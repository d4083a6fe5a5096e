// Batch normalization of images, as torch.nn.functional.batch_norm with weight and bias. The formulas, and the order of images in a matrix,
// stand in kernels/ops/batch_norm.h and kernels/core/images.h.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/ops/batch_norm.h"

namespace tilewave {

struct BatchNormInputs {
  Variable x;                             // [N H W, C], or [N C, H W] in nchw
  Variable gamma, beta;                   // [1, C]
  Tensor running_mean, running_variance;  // [1, C], of the statistics' type; in training they are moved, and both may be absent
  double momentum = 0.1;
  double epsilon = 1e-5;
  ImageLayout layout = ImageLayout::nhwc;
  BatchNormMode mode = BatchNormMode::training;
  BatchNormPasses passes = BatchNormPasses::one;
};

Variable batch_norm(Context& context, const BatchNormInputs& inputs);  // x's shape

}  // namespace tilewave
