// What the tests of operations on images share: a matrix of images in either layout, by image, channel and pixel.
#pragma once

#include "kernels/core/images.h"
#include "tests/kernels/support.h"

namespace tilewave::testing_support {

struct ImageAt {
  std::int64_t image = 0, channel = 0, pixel = 0;
};

inline std::int64_t row_of(const Images& images, const ImageAt& at) {
  return images.layout == ImageLayout::nhwc ? at.image * images.pixels() + at.pixel : at.image * images.channels + at.channel;
}
inline std::int64_t column_of(const Images& images, const ImageAt& at) {
  return images.layout == ImageLayout::nhwc ? at.channel : at.pixel;
}
template <class T>
T& value_at(Matrix<T>& matrix, const Images& images, const ImageAt& at) {
  return matrix(row_of(images, at), column_of(images, at));
}
template <class T>
const T& value_at(const Matrix<T>& matrix, const Images& images, const ImageAt& at) {
  return matrix(row_of(images, at), column_of(images, at));
}

template <class Fn>
void each_image_value(const Images& images, const Fn& fn) {
  for (std::int64_t image = 0; image < images.count; ++image) {
    for (std::int64_t channel = 0; channel < images.channels; ++channel) {
      for (std::int64_t pixel = 0; pixel < images.pixels(); ++pixel) fn(ImageAt{.image = image, .channel = channel, .pixel = pixel});
    }
  }
}

inline Images with_layout(Images images, ImageLayout layout) {
  images.layout = layout;
  return images;
}

// The same images in the other order.
template <class T>
Matrix<T> reordered(const Matrix<T>& matrix, const Images& from, const Images& to) {
  Matrix<T> result(to.rows(), to.cols());
  each_image_value(from, [&](const ImageAt& at) { value_at(result, to, at) = value_at(matrix, from, at); });
  return result;
}

}  // namespace tilewave::testing_support
