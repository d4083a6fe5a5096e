#include "models/pictures/pixels.h"

#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"
#include "kernels/ops/convert.h"

namespace tilewave {

Pixels make_pixels(Context& context, const Images& images) {
  TW_CHECK(images.count > 0 && images.layout == ImageLayout::nhwc, "a batch of ", images.count, " pictures in ", name_of(images.layout),
           " cannot be made; it has a picture at least, in nhwc.");
  const Shape shape{images.rows(), images.cols()};
  const DType type = context.precision().compute;
  return {.images = images,
          .values = context.persistent(shape, type),
          .staged = type == DType::f32 ? Tensor() : context.persistent(shape, DType::f32)};
}

void upload_pixels(Context& context, std::span<const float> values, const Pixels& pixels) {
  TW_CHECK(std::ssize(values) == pixels.values.shape().elements(), values.size(), " values are no batch of pixels of shape ",
           pixels.values.shape(), ".");
  if (context.tracing()) return;
  write_rows(context, pixels.staged ? pixels.staged : pixels.values, values.data());
  if (pixels.staged) context.launch(ConvertArgs{.x = pixels.staged.view(), .y = pixels.values.view()});
}

}  // namespace tilewave
