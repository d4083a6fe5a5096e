// im2col and col2im: a thread has a pack of channels, of one element of a filter at some neighbouring outputs in im2col, of one pixel in
// col2im. What neighbouring outputs share comes from the caches.
#include "kernels/cuda/core/packs.h"
#include "kernels/math/im2col.h"
#include "kernels/ops/im2col.h"

namespace tilewave {
namespace {

constexpr int kColumnThreads = 256;
constexpr int kColumnRows = 4;  // outputs of a thread, whose loads are on their way together

struct FilterPlaces {
  FilterAxis down, across;
  std::int64_t filter_height, filter_width, channels;

  FilterPlaces(const Images& images, const ConvolutionFilter& f, const Images& outputs)
      : down{f.stride_down, f.padding_down, f.dilation_down, images.height, outputs.height},
        across{f.stride_across, f.padding_across, f.dilation_across, images.width, outputs.width},
        filter_height(f.height),
        filter_width(f.width),
        channels(images.channels) {}
};

// Works have what one thread does: part `part` of the rows that are its own, of which `group` is the number.
template <class T, PackAccess kAccess>
struct MakeColumns {
  static constexpr int kWidth = kPackWidth<T>;
  static constexpr int kRows = kColumnRows;
  Im2colArgs args;
  FilterPlaces places;
  PackDivisor packs_a_tap, filter_width, outputs_across, outputs_down;

  __device__ __forceinline__ void operator()(std::int64_t group, std::int64_t part) const {
    const std::int64_t first_row = group * kRows;
    const std::int64_t tap = packs_a_tap.quotient(part), column = (part - tap * packs_a_tap.value()) * kWidth;
    const std::int64_t r = filter_width.quotient(tap), s = tap - r * filter_width.value();
    const std::int64_t line = outputs_across.quotient(first_row);
    std::int64_t q = first_row - line * outputs_across.value();
    std::int64_t image = outputs_down.quotient(line), p = line - image * outputs_down.value();
    Pack<T> packs[kRows] = {};
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::int64_t h = pixel_met(places.down, p, r), w = pixel_met(places.across, q, s);
      const bool is_pixel = h >= 0 && h < places.down.pixels && w >= 0 && w < places.across.pixels;
      if (is_pixel && first_row + i < args.columns.rows) {
        const T* const x = args.x.row<T>((image * places.down.pixels + h) * places.across.pixels + w);
        packs[i] = load_pack<kAccess, kWidth>(x, column, places.channels);
      }
      if (++q < places.across.outputs) continue;
      q = 0;
      if (++p < places.down.outputs) continue;
      p = 0;
      ++image;
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (first_row + i >= args.columns.rows) break;
      store_pack<kAccess>(args.columns.row<T>(first_row + i) + tap * places.channels, column, places.channels, packs[i]);
    }
  }
};

template <class T, PackAccess kAccess>
struct GatherPixels {
  using A = Arithmetic<T>;
  static constexpr int kWidth = kPackWidth<T>;
  static constexpr int kRows = 1;
  Col2imArgs args;
  FilterPlaces places;
  PackDivisor width, height, stride_down, stride_across;

  __device__ __forceinline__ void operator()(std::int64_t pixel, std::int64_t part) const {
    const std::int64_t column = part * kWidth;
    const std::int64_t line = width.quotient(pixel), w = pixel - line * width.value();
    const std::int64_t image = height.quotient(line), h = line - image * height.value();
    T* const dx = args.dx.row<T>(pixel);
    A sums[kWidth] = {};
    if (args.accumulate) add(load_pack<kAccess, kWidth>(static_cast<const T*>(dx), column, places.channels), sums);
    for (std::int64_t r = 0; r < places.filter_height; ++r) {
      const std::int64_t p = output_meeting(places.down, h, r, [&](std::int64_t n) { return stride_down.quotient(n); });
      if (p < 0) continue;
#pragma unroll 3
      for (std::int64_t s = 0; s < places.filter_width; ++s) {
        const std::int64_t q = output_meeting(places.across, w, s, [&](std::int64_t n) { return stride_across.quotient(n); });
        if (q < 0) continue;
        const std::int64_t row = (image * places.down.outputs + p) * places.across.outputs + q;
        const T* const from = args.dcolumns.row<T>(row) + (r * places.filter_width + s) * places.channels;
        add(load_pack<kAccess, kWidth>(from, column, places.channels), sums);
      }
    }
    store_pack<kAccess>(dx, column, places.channels, pack_of<T>(sums));
  }

 private:
  __device__ __forceinline__ static void add(const Pack<T>& pack, A (&sums)[kWidth]) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sums[i] += tilewave::load(pack.get(i));
  }
};

template <class Work>
__global__ void __launch_bounds__(kColumnThreads) each_part(const Work work, const PackDivisor parts, const std::int64_t all) {
  const std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kColumnThreads) + threadIdx.x;
  if (index >= all) return;
  const std::int64_t group = parts.quotient(index);
  work(group, index - group * parts.value());
}

template <class Work>
void launch_parts(CudaQueue& queue, const char* name, const Work& work, std::int64_t rows, std::int64_t parts) {
  const std::int64_t all = ceil_div(rows, Work::kRows) * parts;
  each_part<Work>
      <<<static_cast<unsigned>(ceil_div(all, kColumnThreads)), kColumnThreads, 0, stream_of(queue)>>>(work, PackDivisor(parts), all);
  TW_CUDA_LAUNCHED(name);
}

// Rows of the matrix of columns have elements of the filter behind one another, which start on a pack where channels are whole ones.
template <class Fn>
void with_channel_access(const Images& images, int width, std::initializer_list<ConstMatrixView> views, const Fn& fn) {
  with_whole_access(access_of(width, views), images.channels, width, fn);
}

}  // namespace

void run(CudaQueue& queue, const Im2colArgs& args) {
  check(args);
  const Images outputs = convolved(args.images, args.filter, 1);
  with_float(args.x.dtype, "im2col", [&]<class T>(T) {
    constexpr int kWidth = kPackWidth<T>;
    with_channel_access(args.images, kWidth, {args.x, args.columns}, [&](auto access) {
      const std::int64_t packs = ceil_div(args.images.channels, kWidth);
      const MakeColumns<T, access()> work{.args = args,
                                          .places = FilterPlaces(args.images, args.filter, outputs),
                                          .packs_a_tap = PackDivisor(packs),
                                          .filter_width = PackDivisor(args.filter.width),
                                          .outputs_across = PackDivisor(outputs.width),
                                          .outputs_down = PackDivisor(outputs.height)};
      launch_parts(queue, "im2col", work, args.columns.rows, args.filter.taps() * packs);
    });
  });
}

void run(CudaQueue& queue, const Col2imArgs& args) {
  check(args);
  const Images outputs = convolved(args.images, args.filter, 1);
  with_float(args.dx.dtype, "col2im", [&]<class T>(T) {
    constexpr int kWidth = kPackWidth<T>;
    with_channel_access(args.images, kWidth, {args.dcolumns, args.dx}, [&](auto access) {
      const GatherPixels<T, access()> work{.args = args,
                                           .places = FilterPlaces(args.images, args.filter, outputs),
                                           .width = PackDivisor(args.images.width),
                                           .height = PackDivisor(args.images.height),
                                           .stride_down = PackDivisor(args.filter.stride_down),
                                           .stride_across = PackDivisor(args.filter.stride_across)};
      launch_parts(queue, "col2im", work, args.dx.rows, ceil_div(args.images.channels, kWidth));
    });
  });
}

}  // namespace tilewave
