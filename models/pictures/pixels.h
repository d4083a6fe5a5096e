// A batch's pictures in device memory, of fixed shape, so that every step of a run reads the same addresses.
#pragma once

#include <cstdint>
#include <span>

#include "framework/io/picture.h"
#include "framework/tensor/context.h"
#include "kernels/core/images.h"

namespace tilewave {

inline Images images_of(const PictureShape& shape, std::int64_t count) {
  return {.count = count, .channels = shape.channels, .height = shape.height, .width = shape.width};
}

struct Pixels {
  Images images;
  Tensor values;  // [N H W, C], of the type that the context computes in
  Tensor staged;  // the same in fp32, as the host has them; absent where that is the type
};

Pixels make_pixels(Context& context, const Images& images);
void upload_pixels(Context& context, std::span<const float> values, const Pixels& pixels);  // [N H W, C]

}  // namespace tilewave
