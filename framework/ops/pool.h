// Pooling of images, as torch.nn.functional.max_pool2d and avg_pool2d. Windows and images stand in kernels/ops/pool.h.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/ops/pool.h"

namespace tilewave {

struct PoolInputs {
  Variable x;     // [N H W, C], or [N C, H W] in nchw
  Images images;  // x's
  PoolWindow window;
  PadCount count_pad = PadCount::included;  // of averages
};

// Of shape pooled(images, window).
Variable max_pool(Context& context, const PoolInputs& inputs);
Variable average_pool(Context& context, const PoolInputs& inputs);

}  // namespace tilewave
