// Pooling: a thread has one pixel, of the result in the forward pass and of x in the backward one, and of it a pack of channels where they
// lie side by side, else one channel. What neighbouring windows share comes from the caches.
#include "kernels/cuda/core/packs.h"
#include "kernels/math/pool.h"
#include "kernels/ops/pool.h"

namespace tilewave {
namespace {

constexpr int kPoolThreads = 256;

// Numbers of a thread's channels at one pixel.
template <class A, int kWidth>
struct PixelValues {
  A of[kWidth];
};

// A pixel of a plane: of an image's channels from `column` on, or of one channel.
struct PlanePixel {
  std::int64_t plane;
  int down, across;
  std::int64_t column;
};

// How images of one size lie in a matrix.
template <ImageLayout kLayout, PackAccess kAccess, int kWidth>
struct ImagePlaces {
  int width = 0;
  std::int64_t pixels = 0, channels = 0;

  explicit ImagePlaces(const Images& images) : width(static_cast<int>(images.width)), pixels(images.pixels()), channels(images.channels) {}

  template <class T, class View>
  __device__ __forceinline__ T* row(const View& view, std::int64_t plane, int down, int across) const {
    const std::int64_t pixel = static_cast<std::int64_t>(down) * width + across;
    return kLayout == ImageLayout::nhwc ? view.template row<T>(plane * pixels + pixel) : view.template row<T>(plane) + pixel;
  }
  template <class T>
  __device__ __forceinline__ PixelValues<Arithmetic<T>, kWidth> load(const T* row, std::int64_t column) const {
    PixelValues<Arithmetic<T>, kWidth> values;
    if constexpr (kWidth == 1) {
      values.of[0] = tilewave::load(row[0]);
    } else {
      const Pack<T> pack = load_pack<kAccess, kWidth>(row, column, channels);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values.of[i] = tilewave::load(pack.get(i));
    }
    return values;
  }
  template <class T>
  __device__ __forceinline__ void store(T* row, std::int64_t column, const PixelValues<Arithmetic<T>, kWidth>& values) const {
    if constexpr (kWidth == 1) {
      row[0] = tilewave::store<T>(values.of[0]);
    } else {
      store_pack<kAccess>(row, column, channels, pack_of<T>(values.of));
    }
  }
  // fn(i) for those of a pack that are channels.
  template <class Fn>
  __device__ __forceinline__ void each(std::int64_t column, const Fn& fn) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (kWidth == 1 || column + i < channels) fn(i);
    }
  }
};

__device__ __forceinline__ PoolSpan window_down(const PoolWindow& w, int at, std::int64_t height) {
  return pixels_of_window(at, w.height, w.stride_down, w.padding_down, height);
}
__device__ __forceinline__ PoolSpan window_across(const PoolWindow& w, int at, std::int64_t width) {
  return pixels_of_window(at, w.width, w.stride_across, w.padding_across, width);
}

// Works have what one thread does at one pixel.
template <class T, ImageLayout kLayout, PackAccess kAccess, int kWidth>
struct TakeLargest {
  using A = Arithmetic<T>;
  using Places = ImagePlaces<kLayout, kAccess, kWidth>;
  MaxPoolArgs args;
  Places from, to;

  __device__ __forceinline__ void operator()(const PlanePixel& at) const {
    const PoolSpan down = window_down(args.window, at.down, args.images.height),
                   across = window_across(args.window, at.across, args.images.width);
    PixelValues<A, kWidth> largest;
    std::int32_t indices[kWidth];
    for (int i = static_cast<int>(down.begin); i < down.end; ++i) {
      for (int j = static_cast<int>(across.begin); j < across.end; ++j) {
        const bool first = i == down.begin && j == across.begin;
        const PixelValues<A, kWidth> x = from.load(from.template row<const T>(args.x, at.plane, i, j), at.column);
#pragma unroll
        for (int c = 0; c < kWidth; ++c) {
          if (!first && !exceeds(x.of[c], largest.of[c])) continue;
          largest.of[c] = x.of[c];
          indices[c] = i * from.width + j;
        }
      }
    }
    to.store(to.template row<T>(args.y, at.plane, at.down, at.across), at.column, largest);
    if (!args.indices) return;
    std::int32_t* const index = to.template row<std::int32_t>(args.indices, at.plane, at.down, at.across) + at.column;
    to.each(at.column, [&](int i) { index[i] = indices[i]; });
  }
};

// Works of the backward pass: what each window that a pixel is in adds to it.
template <class T, ImageLayout kLayout, PackAccess kAccess, int kWidth, class Args>
struct SpreadBack {
  using A = Arithmetic<T>;
  using Places = ImagePlaces<kLayout, kAccess, kWidth>;
  Args args;
  Places from, to;  // dx's and dy's
  std::int64_t windows_down, windows_across;

  __device__ __forceinline__ void operator()(const PlanePixel& at) const {
    const PoolWindow& w = args.window;
    const PoolSpan down = windows_of_pixel(at.down, w.height, w.stride_down, w.padding_down, windows_down),
                   across = windows_of_pixel(at.across, w.width, w.stride_across, w.padding_across, windows_across);
    T* const dx = from.template row<T>(args.dx, at.plane, at.down, at.across);
    PixelValues<A, kWidth> sum{};
    if (args.accumulate) sum = from.load(static_cast<const T*>(dx), at.column);
    for (int i = static_cast<int>(down.begin); i < down.end; ++i) {
      for (int j = static_cast<int>(across.begin); j < across.end; ++j) {
        const PixelValues<A, kWidth> dy = to.load(to.template row<const T>(args.dy, at.plane, i, j), at.column);
        add(at, i, j, dy, sum);
      }
    }
    from.store(dx, at.column, sum);
  }

 private:
  __device__ __forceinline__ void add(const PlanePixel& at, int i, int j, const PixelValues<A, kWidth>& dy,
                                      PixelValues<A, kWidth>& sum) const {
    if constexpr (std::is_same_v<Args, MaxPoolBackwardArgs>) {
      const std::int32_t mine = at.down * from.width + at.across;
      const std::int32_t* const index = to.template row<const std::int32_t>(args.indices, at.plane, i, j) + at.column;
      to.each(at.column, [&](int c) { sum.of[c] += index[c] == mine ? dy.of[c] : A(0); });
    } else {
      const PoolSpan down = window_down(args.window, i, args.images.height), across = window_across(args.window, j, args.images.width);
      const A pixels = static_cast<A>(averaged_pixels(args.window, down, across, args.count_pad));
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sum.of[c] += dy.of[c] / pixels;
    }
  }
};

template <class T, ImageLayout kLayout, PackAccess kAccess, int kWidth>
struct TakeAverage {
  using A = Arithmetic<T>;
  using Places = ImagePlaces<kLayout, kAccess, kWidth>;
  AveragePoolArgs args;
  Places from, to;

  __device__ __forceinline__ void operator()(const PlanePixel& at) const {
    const PoolSpan down = window_down(args.window, at.down, args.images.height),
                   across = window_across(args.window, at.across, args.images.width);
    PixelValues<A, kWidth> sum{};
    for (int i = static_cast<int>(down.begin); i < down.end; ++i) {
      for (int j = static_cast<int>(across.begin); j < across.end; ++j) {
        const PixelValues<A, kWidth> x = from.load(from.template row<const T>(args.x, at.plane, i, j), at.column);
#pragma unroll
        for (int c = 0; c < kWidth; ++c) sum.of[c] += x.of[c];
      }
    }
    const A pixels = static_cast<A>(averaged_pixels(args.window, down, across, args.count_pad));
#pragma unroll
    for (int c = 0; c < kWidth; ++c) sum.of[c] /= pixels;
    to.store(to.template row<T>(args.y, at.plane, at.down, at.across), at.column, sum);
  }
};

// The place of each thread among `parts` of pixels: packs of channels fastest where they lie side by side.
struct PoolParts {
  PackDivisor packs_a_pixel, pixels, width;
  std::int64_t all;
};

template <class Work, int kWidth>
__global__ void __launch_bounds__(kPoolThreads) pool_pixels(const Work work, const PoolParts parts) {
  const std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kPoolThreads) + threadIdx.x;
  if (index >= parts.all) return;
  const std::int64_t row = parts.packs_a_pixel.quotient(index), pack = index - row * parts.packs_a_pixel.value();
  const std::int64_t plane = parts.pixels.quotient(row), pixel = row - plane * parts.pixels.value();
  const std::int64_t down = parts.width.quotient(pixel);
  work({.plane = plane,
        .down = static_cast<int>(down),
        .across = static_cast<int>(pixel - down * parts.width.value()),
        .column = pack * kWidth});
}

// One thread for each pixel of these images, and pack of its channels.
template <int kWidth, class Work>
void launch_pool(CudaQueue& queue, const char* name, const Work& work, const Images& images) {
  const bool wide = images.layout == ImageLayout::nhwc;
  const std::int64_t packs = wide ? ceil_div(images.channels, kWidth) : 1, planes = wide ? images.count : images.count * images.channels;
  const PoolParts parts{.packs_a_pixel = PackDivisor(packs),
                        .pixels = PackDivisor(images.pixels()),
                        .width = PackDivisor(images.width),
                        .all = planes * images.pixels() * packs};
  pool_pixels<Work, kWidth><<<static_cast<unsigned>(ceil_div(parts.all, kPoolThreads)), kPoolThreads, 0, stream_of(queue)>>>(work, parts);
  TW_CUDA_LAUNCHED(name);
}

// Calls fn with layout, access and width as constants.
template <class T, class Fn>
void with_image_access(const Images& images, std::initializer_list<ConstMatrixView> views, const Fn& fn) {
  if (images.layout == ImageLayout::nchw) {
    return fn(std::integral_constant<ImageLayout, ImageLayout::nchw>{}, std::integral_constant<PackAccess, PackAccess::narrow>{},
              std::integral_constant<int, 1>{});
  }
  constexpr int kWidth = kPackWidth<T>;
  with_access(access_of(kWidth, views), [&](auto access) {
    fn(std::integral_constant<ImageLayout, ImageLayout::nhwc>{}, access, std::integral_constant<int, kWidth>{});
  });
}

template <template <class, ImageLayout, PackAccess, int> class Take, class Args>
void run_forward(CudaQueue& queue, const Args& args, const char* name) {
  check(args);
  const Images result = pooled(args.images, args.window);
  with_float(args.x.dtype, name, [&]<class T>(T) {
    with_image_access<T>(args.images, {args.x, args.y}, [&](auto layout, auto access, auto width) {
      using Work = Take<T, layout(), access(), width()>;
      using Places = typename Work::Places;
      launch_pool<width()>(queue, name, Work{.args = args, .from = Places(args.images), .to = Places(result)}, result);
    });
  });
}

template <class Args>
void run_backward(CudaQueue& queue, const Args& args, const char* name) {
  check(args);
  const Images result = pooled(args.images, args.window);
  with_float(args.dy.dtype, name, [&]<class T>(T) {
    with_image_access<T>(args.images, {args.dy, args.dx}, [&](auto layout, auto access, auto width) {
      using Work = SpreadBack<T, layout(), access(), width(), Args>;
      using Places = typename Work::Places;
      const Work work{
          .args = args, .from = Places(args.images), .to = Places(result), .windows_down = result.height, .windows_across = result.width};
      launch_pool<width()>(queue, name, work, args.images);
    });
  });
}

}  // namespace

void run(CudaQueue& queue, const MaxPoolArgs& args) { run_forward<TakeLargest>(queue, args, "max_pool"); }
void run(CudaQueue& queue, const AveragePoolArgs& args) { run_forward<TakeAverage>(queue, args, "average_pool"); }
void run(CudaQueue& queue, const MaxPoolBackwardArgs& args) { run_backward(queue, args, "max_pool_backward"); }
void run(CudaQueue& queue, const AveragePoolBackwardArgs& args) { run_backward(queue, args, "average_pool_backward"); }

}  // namespace tilewave
