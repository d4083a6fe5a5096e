#include "models/pictures/pixels.h"

#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"
#include "kernels/ops/normalize_pixels.h"

namespace tilewave {
namespace {

Pixels made_of(Context& context, const SeenPictures& seen, std::int64_t count, Tensor (Context::*tensor)(Shape, DType)) {
  TW_CHECK(count > 0, "a batch of ", count, " pictures cannot be made; it has a picture at least.");
  const Images images = images_of(seen.shape, count);
  const std::vector<float> table = shade_table(seen.normalization, images.channels);
  const std::int64_t shades = images.rows() * images.cols();
  // A pixel has few channels: rows without a gap, whatever the pitch of others is.
  const Tensor flat = (context.*tensor)({1, shades}, context.precision().compute);
  Pixels pixels{.images = images,
                .shades = (context.*tensor)({1, words_of_shades(shades)}, DType::i32),
                .table = (context.*tensor)({images.channels, kShades}, DType::f32),
                .values = flat.as_rows(0, {images.rows(), images.cols()}, images.cols())};
  write_rows(context, pixels.table, table.data());
  return pixels;
}

}  // namespace

Pixels make_pixels(Context& context, const SeenPictures& seen, std::int64_t count) {
  return made_of(context, seen, count, &Context::persistent);
}

Pixels make_step_pixels(Context& context, const SeenPictures& seen, std::int64_t count) {
  return made_of(context, seen, count, &Context::tensor);
}

void upload_pixels(Context& context, std::span<const std::uint8_t> shades, const Pixels& pixels) {
  const Images& images = pixels.images;
  const std::int64_t each = images.pixels() * images.channels, given = std::ssize(shades);
  TW_CHECK(given > 0 && given % each == 0 && given / each <= images.count, given, " shades are no pictures of ", images.height, " x ",
           images.width, " pixels of ", images.channels, " channels; a batch takes 1 to ", images.count, " of them.");
  if (context.tracing()) return;
  copy_to_device(context.queue(), pixels.shades.data(), shades.data(), given);
  context.launch(NormalizePixelsArgs{.shades = pixels.shades.view(),
                                     .table = pixels.table.view(),
                                     .y = pixels.values.view(),
                                     .real_rows = given / each * images.pixels()});
}

}  // namespace tilewave
