// Operations on images for benchmarks: batch normalization and pooling. The shape asked for is pixels by channels in either layout; images
// are squares of 32 x 32 pixels, or of the largest smaller power of two whose square divides the pixels.
#pragma once

#include <string_view>

#include "framework/measure/operation_work.h"
#include "kernels/core/images.h"

namespace tilewave {

Images benched_images(Shape pixels_by_channels, ImageLayout layout);

// "batch_norm_nhwc", "batch_norm_nchw", "max_pool_...", "average_pool_...", each also with "_backward" behind it; batch normalization also
// with "_several" behind the layout, in several passes. Pooling is over windows of 3 x 3 at every pixel, as the guide's table 1 has it; the
// largest leave their indices where they will be asked for.
OperationWork prepare_images(Context& context, Shape shape, std::string_view name);

}  // namespace tilewave
