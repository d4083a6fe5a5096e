#include "models/vision/picture_tensors.h"

#include <vector>

#include "framework/data/packing.h"
#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"

namespace tilewave {

PictureTensors make_picture_tensors(Context& context, const Pixels& pixels, std::int64_t patches) {
  TW_CHECK(patches > 0, "a picture of ", patches, " patches shows nothing; it has one at least.");
  const Images& images = pixels.images;
  PictureTensors batch{.pixels = pixels,
                       .labels = context.persistent({1, images.count}, DType::i32),
                       .position_ids = context.persistent({1, images.count * patches}, DType::i32),
                       .segments = context.persistent({images.count, 4}, DType::i32)};
  std::vector<std::int32_t> positions(static_cast<std::size_t>(images.count * patches));
  for (std::size_t row = 0; row < positions.size(); ++row)
    positions[row] = static_cast<std::int32_t>(row % static_cast<std::size_t>(patches));
  write_ids(context, batch.position_ids, positions);
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(images.count), static_cast<std::int32_t>(patches));
  const PackedSequences pictures{.lengths = lengths};
  write_ids(context, batch.segments, attention_segments(pictures, pictures, images.count));
  return batch;
}

Segments picture_segments(const PictureTensors& batch) {
  const std::int64_t rows = batch.position_ids.cols(), patches = rows / batch.pixels.images.count;
  return {.rows = batch.segments,
          .longest = patches,
          .sums = SegmentSums{.queries = rows, .pairs = rows * patches},
          .position_ids = batch.position_ids};
}

void upload_pictures(Context& context, std::span<const std::uint8_t> shades, std::span<const std::int32_t> labels,
                     const PictureTensors& batch) {
  write_ids(context, batch.labels, labels);
  upload_pixels(context, shades, batch.pixels);
}

}  // namespace tilewave
