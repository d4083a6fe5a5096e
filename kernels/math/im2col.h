// Which pixel an element of a filter meets, and which outputs meet a pixel there, along one axis, once for host and device.
#pragma once

#include <cstdint>

#include "kernels/core/host_device.h"

namespace tilewave {

// Of height or of width.
struct FilterAxis {
  std::int64_t stride, padding, dilation;
  std::int64_t pixels, outputs;
};

// The pixel that element `tap` of the filter at `output` meets; outside of [0, pixels) it is padding.
TW_HOST_DEVICE inline std::int64_t pixel_met(const FilterAxis& axis, std::int64_t output, std::int64_t tap) {
  return output * axis.stride - axis.padding + tap * axis.dilation;
}

// The output whose element `tap` meets the pixel; -1 where none does. over_stride(n) is n / axis.stride.
template <class Divide>
TW_HOST_DEVICE inline std::int64_t output_meeting(const FilterAxis& axis, std::int64_t pixel, std::int64_t tap, const Divide& over_stride) {
  const std::int64_t from_first = pixel + axis.padding - tap * axis.dilation;  // pixels from where output 0 has this element
  if (from_first < 0) return -1;
  const std::int64_t output = over_stride(from_first);
  return output * axis.stride == from_first && output < axis.outputs ? output : -1;
}
inline std::int64_t output_meeting(const FilterAxis& axis, std::int64_t pixel, std::int64_t tap) {
  return output_meeting(axis, pixel, tap, [&](std::int64_t n) { return n / axis.stride; });
}

}  // namespace tilewave
