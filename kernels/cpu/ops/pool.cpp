// Pooling on a CPU; the definitions stand in kernels/ops/pool.h. A task has rows of output pixels, all channels of each where channels lie
// side by side, else of one channel.
#include "kernels/ops/pool.h"

#include <limits>

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/math/pool.h"

namespace tilewave {
namespace {

// Where a pixel's values are: `channels` of them side by side.
class PixelPlaces {
 public:
  explicit PixelPlaces(const Images& images) : images_(images) {}

  // Planes that are pooled each by itself, and the channels of one.
  std::int64_t planes() const { return images_.count * (wide() ? 1 : images_.channels); }
  std::int64_t channels() const { return wide() ? images_.channels : 1; }
  template <class T, class View>
  T* at(const View& view, std::int64_t plane, std::int64_t down, std::int64_t across) const {
    const std::int64_t pixel = down * images_.width + across;
    return wide() ? view.template row<T>(plane * images_.pixels() + pixel) : view.template row<T>(plane) + pixel;
  }

 private:
  bool wide() const { return images_.layout == ImageLayout::nhwc; }

  const Images& images_;
};

// fn(plane, down, across) for each pixel of images like these, rows of pixels shared out.
template <class Fn>
void each_pixel(CpuQueue& queue, const Images& images, const Fn& fn) {
  const PixelPlaces places(images);
  for_row_ranges(queue, places.planes() * images.height, images.width * places.channels(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t across = 0; across < images.width; ++across) fn(row / images.height, row % images.height, across);
    }
  });
}

struct PoolSpans {
  PoolSpan down, across;
};
PoolSpans window_at(const Images& images, const PoolWindow& window, std::int64_t down, std::int64_t across) {
  return {.down = pixels_of_window(down, window.height, window.stride_down, window.padding_down, images.height),
          .across = pixels_of_window(across, window.width, window.stride_across, window.padding_across, images.width)};
}
PoolSpans windows_over(const Images& result, const PoolWindow& window, std::int64_t down, std::int64_t across) {
  return {.down = windows_of_pixel(down, window.height, window.stride_down, window.padding_down, result.height),
          .across = windows_of_pixel(across, window.width, window.stride_across, window.padding_across, result.width)};
}
template <class Fn>
void each_place(const PoolSpans& spans, const Fn& fn) {
  for (std::int64_t down = spans.down.begin; down < spans.down.end; ++down) {
    for (std::int64_t across = spans.across.begin; across < spans.across.end; ++across) fn(down, across);
  }
}

template <class T>
void take_largest(CpuQueue& queue, const MaxPoolArgs& args) {
  const Images result = pooled(args.images, args.window);
  const PixelPlaces from(args.images), to(result);
  each_pixel(queue, result, [&](std::int64_t plane, std::int64_t down, std::int64_t across) {
    T* y = to.at<T>(args.y, plane, down, across);
    std::int32_t* indices = args.indices ? to.at<std::int32_t>(args.indices, plane, down, across) : nullptr;
    bool first = true;
    each_place(window_at(args.images, args.window, down, across), [&](std::int64_t i, std::int64_t j) {
      const T* x = from.at<const T>(args.x, plane, i, j);
      const auto index = static_cast<std::int32_t>(i * args.images.width + j);
      for (std::int64_t c = 0; c < from.channels(); ++c) {
        if (!first && !exceeds(x[c], y[c])) continue;
        y[c] = x[c];
        if (indices != nullptr) indices[c] = index;
      }
      first = false;
    });
  });
}

template <class T>
void take_average(CpuQueue& queue, const AveragePoolArgs& args) {
  const Images result = pooled(args.images, args.window);
  const PixelPlaces from(args.images), to(result);
  each_pixel(queue, result, [&](std::int64_t plane, std::int64_t down, std::int64_t across) {
    T* y = to.at<T>(args.y, plane, down, across);
    std::fill_n(y, to.channels(), T(0));
    const PoolSpans spans = window_at(args.images, args.window, down, across);
    each_place(spans, [&](std::int64_t i, std::int64_t j) {
      const T* x = from.at<const T>(args.x, plane, i, j);
      for (std::int64_t c = 0; c < from.channels(); ++c) y[c] += x[c];
    });
    const T pixels = static_cast<T>(averaged_pixels(args.window, spans.down, spans.across, args.count_pad));
    for (std::int64_t c = 0; c < to.channels(); ++c) y[c] /= pixels;
  });
}

// A window of a plane, at its pixel of the result.
struct PlacedWindow {
  std::int64_t plane = 0, down = 0, across = 0;
};
// The backward passes: add(dx, the pixel's number in its plane, window) for each pixel and each window that it is in.
template <class T, class Args, class Add>
void spread(CpuQueue& queue, const Args& args, const Images& result, const Add& add) {
  const PixelPlaces from(args.images);
  each_pixel(queue, args.images, [&](std::int64_t plane, std::int64_t down, std::int64_t across) {
    T* dx = from.at<T>(args.dx, plane, down, across);
    if (!args.accumulate) std::fill_n(dx, from.channels(), T(0));
    const auto index = static_cast<std::int32_t>(down * args.images.width + across);
    each_place(windows_over(result, args.window, down, across),
               [&](std::int64_t i, std::int64_t j) { add(dx, index, PlacedWindow{.plane = plane, .down = i, .across = j}); });
  });
}

template <class T>
void spread_to_largest(CpuQueue& queue, const MaxPoolBackwardArgs& args) {
  const Images result = pooled(args.images, args.window);
  const PixelPlaces to(result);
  spread<T>(queue, args, result, [&](T* dx, std::int32_t index, const PlacedWindow& at) {
    const T* dy = to.at<const T>(args.dy, at.plane, at.down, at.across);
    const std::int32_t* indices = to.at<const std::int32_t>(args.indices, at.plane, at.down, at.across);
    for (std::int64_t c = 0; c < to.channels(); ++c) dx[c] += indices[c] == index ? dy[c] : T(0);
  });
}

template <class T>
void spread_average(CpuQueue& queue, const AveragePoolBackwardArgs& args) {
  const Images result = pooled(args.images, args.window);
  const PixelPlaces to(result);
  spread<T>(queue, args, result, [&](T* dx, std::int32_t, const PlacedWindow& at) {
    const T* dy = to.at<const T>(args.dy, at.plane, at.down, at.across);
    const PoolSpans spans = window_at(args.images, args.window, at.down, at.across);
    const T pixels = static_cast<T>(averaged_pixels(args.window, spans.down, spans.across, args.count_pad));
    for (std::int64_t c = 0; c < to.channels(); ++c) dx[c] += dy[c] / pixels;
  });
}

}  // namespace

void run(CpuQueue& queue, const MaxPoolArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "max_pool", [&]<class T>(T) { take_largest<T>(queue, args); });
}

void run(CpuQueue& queue, const MaxPoolBackwardArgs& args) {
  check(args);
  with_cpu_float(args.dy.dtype, "max_pool_backward", [&]<class T>(T) { spread_to_largest<T>(queue, args); });
}

void run(CpuQueue& queue, const AveragePoolArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "average_pool", [&]<class T>(T) { take_average<T>(queue, args); });
}

void run(CpuQueue& queue, const AveragePoolBackwardArgs& args) {
  check(args);
  with_cpu_float(args.dy.dtype, "average_pool_backward", [&]<class T>(T) { spread_average<T>(queue, args); });
}

}  // namespace tilewave
