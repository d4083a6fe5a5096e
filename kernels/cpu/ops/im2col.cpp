// im2col and col2im on a CPU; the definitions stand in kernels/ops/im2col.h. A task of im2col has rows of columns, one of col2im rows of
// pixels. Pixels that lie one behind the other without gaps are copied at once.
#include "kernels/ops/im2col.h"

#include <algorithm>

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/math/im2col.h"

namespace tilewave {
namespace {

struct FilterAxes {
  FilterAxis down, across;
};
FilterAxes axes_of(const Images& images, const ConvolutionFilter& f) {
  const Images outputs = convolved(images, f, 1);
  return {.down = {.stride = f.stride_down,
                   .padding = f.padding_down,
                   .dilation = f.dilation_down,
                   .pixels = images.height,
                   .outputs = outputs.height},
          .across = {.stride = f.stride_across,
                     .padding = f.padding_across,
                     .dilation = f.dilation_across,
                     .pixels = images.width,
                     .outputs = outputs.width}};
}

// One row of the filter at an output: `row` has the image's first pixel of that height, and is null outside of the image.
template <class T>
void copy_taps(const Im2colArgs& args, const FilterAxis& across, std::int64_t output, const T* row, T* to) {
  const std::int64_t channels = args.images.channels, taps = args.filter.width, pitch = args.x.ld;
  if (row == nullptr) {
    std::fill_n(to, taps * channels, T(0));
    return;
  }
  const std::int64_t left = pixel_met(across, output, 0);
  if (across.dilation == 1 && pitch == channels) {
    const std::int64_t begin = std::clamp<std::int64_t>(-left, 0, taps), end = std::clamp<std::int64_t>(across.pixels - left, begin, taps);
    std::fill_n(to, begin * channels, T(0));
    std::copy_n(row + (left + begin) * channels, (end - begin) * channels, to + begin * channels);
    std::fill_n(to + end * channels, (taps - end) * channels, T(0));
    return;
  }
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t pixel = left + tap * across.dilation;
    if (pixel < 0 || pixel >= across.pixels) {
      std::fill_n(to + tap * channels, channels, T(0));
    } else {
      std::copy_n(row + pixel * pitch, channels, to + tap * channels);
    }
  }
}

template <class T>
void make_columns(CpuQueue& queue, const Im2colArgs& args) {
  const FilterAxes axes = axes_of(args.images, args.filter);
  const std::int64_t a_row_of_taps = args.filter.width * args.images.channels;
  for_row_ranges(queue, args.columns.rows, args.columns.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t q = row % axes.across.outputs, p = row / axes.across.outputs % axes.down.outputs,
                         image = row / (axes.across.outputs * axes.down.outputs);
      T* const to = args.columns.row<T>(row);
      for (std::int64_t r = 0; r < args.filter.height; ++r) {
        const std::int64_t h = pixel_met(axes.down, p, r);
        const bool inside = h >= 0 && h < args.images.height;
        const T* const from = inside ? args.x.row<T>((image * args.images.height + h) * args.images.width) : nullptr;
        copy_taps(args, axes.across, q, from, to + r * a_row_of_taps);
      }
    }
  });
}

// What one pixel gathers.
template <class T>
void gather(const Col2imArgs& args, const FilterAxes& axes, std::int64_t pixel) {
  const std::int64_t width = args.images.width, height = args.images.height, channels = args.images.channels;
  const std::int64_t w = pixel % width, h = pixel / width % height, image = pixel / (width * height);
  T* const dx = args.dx.row<T>(pixel);
  if (!args.accumulate) std::fill_n(dx, channels, T(0));
  for (std::int64_t r = 0; r < args.filter.height; ++r) {
    const std::int64_t p = output_meeting(axes.down, h, r);
    if (p < 0) continue;
    for (std::int64_t s = 0; s < args.filter.width; ++s) {
      const std::int64_t q = output_meeting(axes.across, w, s);
      if (q < 0) continue;
      const std::int64_t row = (image * axes.down.outputs + p) * axes.across.outputs + q;
      const T* const from = args.dcolumns.row<T>(row) + (r * args.filter.width + s) * channels;
#pragma GCC ivdep
      for (std::int64_t c = 0; c < channels; ++c) dx[c] += from[c];
    }
  }
}

}  // namespace

void run(CpuQueue& queue, const Im2colArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "im2col", [&]<class T>(T) { make_columns<T>(queue, args); });
}

void run(CpuQueue& queue, const Col2imArgs& args) {
  check(args);
  const FilterAxes axes = axes_of(args.images, args.filter);
  with_cpu_float(args.dcolumns.dtype, "col2im", [&]<class T>(T) {
    const std::int64_t a_pixel = args.filter.taps() * args.images.channels;
    for_row_ranges(queue, args.dx.rows, a_pixel, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t pixel = begin; pixel < end; ++pixel) gather<T>(args, axes, pixel);
    });
  });
}

}  // namespace tilewave
