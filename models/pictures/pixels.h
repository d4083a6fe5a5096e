// A batch's pictures in device memory, of fixed shape, so that every step of a run reads the same addresses. They come over as bytes, and
// become values there, in the queue, before what reads them.
#pragma once

#include <cstdint>
#include <span>

#include "framework/data/pictures.h"
#include "framework/tensor/context.h"
#include "kernels/core/images.h"

namespace tilewave {

inline Images images_of(const PictureShape& shape, std::int64_t count) {
  return {.count = count, .channels = shape.channels, .height = shape.height, .width = shape.width};
}

struct Pixels {
  Images images;
  Tensor shades;  // [1, N H W C / 4, rounded up] i32: the host's bytes, four in a word
  Tensor table;   // [C, 256] fp32: what each shade of a channel becomes
  Tensor values;  // [N H W, C], of the type that the context computes in
};

// For so many pictures: persistent memory, and memory of the step under way.
Pixels make_pixels(Context& context, const SeenPictures& seen, std::int64_t count);
Pixels make_step_pixels(Context& context, const SeenPictures& seen, std::int64_t count);

// Of one picture or more, and of no more than there is room for: [pictures H W, C]. The values of pictures that are missing are zero.
void upload_pixels(Context& context, std::span<const std::uint8_t> shades, const Pixels& pixels);

}  // namespace tilewave
