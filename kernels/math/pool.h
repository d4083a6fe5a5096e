// Which pixels a window of pooling has, and which windows a pixel is in, once for host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/core/host_device.h"
#include "kernels/ops/pool.h"

namespace tilewave {

// Pixels, or windows, from `begin` to `end`, one after another.
struct PoolSpan {
  std::int64_t begin, end;
};

TW_HOST_DEVICE inline PoolSpan pixels_of_window(std::int64_t at, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                                                std::int64_t size) {
  const std::int64_t begin = at * stride - padding, end = begin + kernel;
  return {begin < 0 ? 0 : begin, end < size ? end : size};
}
// Those with at stride - padding <= pixel < at stride - padding + kernel.
TW_HOST_DEVICE inline PoolSpan windows_of_pixel(std::int64_t pixel, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                                                std::int64_t windows) {
  const std::int64_t from_edge = pixel + padding, begin = from_edge < kernel ? 0 : (from_edge - kernel) / stride + 1,
                     end = from_edge / stride + 1;
  return {begin, end < windows ? end : windows};
}

// The pixels that an average is divided by.
TW_HOST_DEVICE inline std::int64_t averaged_pixels(const PoolWindow& window, PoolSpan down, PoolSpan across, PadCount count) {
  return count == PadCount::included ? window.height * window.width : (down.end - down.begin) * (across.end - across.begin);
}

// Whether a value takes the place of the largest so far.
template <class T>
TW_HOST_DEVICE inline bool exceeds(T value, T largest) {
  return value > largest || std::isnan(value);
}

}  // namespace tilewave
