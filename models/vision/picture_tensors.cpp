#include "models/vision/picture_tensors.h"

#include <vector>

#include "framework/data/packing.h"
#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"

namespace tilewave {

PictureTensors make_picture_tensors(Context& context, const Images& images, std::int64_t patches) {
  TW_CHECK(images.count > 0 && images.layout == ImageLayout::nhwc && patches > 0, "a batch of ", images.count, " pictures of ", patches,
           " patches in ", name_of(images.layout), " cannot be made; it has a picture at least, in nhwc.");
  PictureTensors batch{.images = images,
                       .pixels = context.persistent({images.rows(), images.cols()}, context.precision().compute),
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
  const std::int64_t rows = batch.position_ids.cols(), patches = rows / batch.images.count;
  return {.rows = batch.segments,
          .longest = patches,
          .sums = SegmentSums{.queries = rows, .pairs = rows * patches},
          .position_ids = batch.position_ids};
}

void upload_pictures(Context& context, std::span<const float> pixels, std::span<const std::int32_t> labels, const PictureTensors& batch) {
  const std::int64_t channels = batch.pixels.cols();
  TW_CHECK(std::ssize(pixels) == batch.pixels.shape().elements(), pixels.size(), " values are no batch of pixels of shape ",
           batch.pixels.shape(), ".");
  write_ids(context, batch.labels, labels);
  write_elements(context, batch.pixels, [&](std::int64_t row, std::int64_t channel) {
    return static_cast<double>(pixels[static_cast<std::size_t>(row * channels + channel)]);
  });
}

}  // namespace tilewave
