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

// For so many pictures of one shape, each cut into so many patches.
PictureTensors make_picture_tensors(Context& context, const Images& images, std::int64_t patches);

// Segments as attention takes them.
Segments picture_segments(const PictureTensors& batch);

// Pixels [N H W, C] and a label for each picture.
void upload_pictures(Context& context, std::span<const float> pixels, std::span<const std::int32_t> labels, const PictureTensors& batch);

}  // namespace tilewave
