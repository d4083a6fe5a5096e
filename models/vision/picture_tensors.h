// A batch of pictures in device memory: tensors of fixed shapes, so that every step of a run reads the same addresses. Positions and
// attention's segments are those of whole pictures in order, whatever the pictures are; they are written once.
#pragma once

#include <cstdint>
#include <span>

#include "framework/tensor/context.h"
#include "models/pictures/pixels.h"
#include "models/transformer/batch_tensors.h"

namespace tilewave {

struct PictureTensors {
  Pixels pixels;
  Tensor labels;        // [1, N]; negative: counts nothing
  Tensor position_ids;  // [1, N x patches]
  Tensor segments;      // [N, 4]: a picture's patches attend to each other
};

// For the pictures whose pixels these are, each cut into so many patches.
PictureTensors make_picture_tensors(Context& context, const Pixels& pixels, std::int64_t patches);

// Segments as attention takes them.
Segments picture_segments(const PictureTensors& batch);

// A shade for each value of a picture, and N labels.
void upload_pictures(Context& context, std::span<const std::uint8_t> shades, std::span<const std::int32_t> labels,
                     const PictureTensors& batch);

}  // namespace tilewave
