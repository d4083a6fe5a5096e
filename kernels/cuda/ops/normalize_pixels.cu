// Pixels by their table on a GPU, a pack at a time. The table is a KiB for each channel, which stays in the caches; shades of a pack are
// one load where they start on a word of its width.
#include "kernels/cuda/core/packs.h"
#include "kernels/ops/normalize_pixels.h"

namespace tilewave {
namespace {

template <class T>
struct NormalizePixels {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    std::uint8_t shades[kWidth];
  };
  NormalizePixelsArgs args;
  std::int64_t cols;  // of what is gone over: y's, or all of y as one row
  std::int64_t real;  // shades that are there
  bool at_once;       // shades of any pack start on a multiple of its width
  PackDivisor channels;

  __device__ __forceinline__ std::int64_t first_of(const Place& at) const { return at.row * cols + at.column; }

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    const std::uint8_t* const shades = static_cast<const std::uint8_t*>(args.shades.data);
    const std::int64_t first = first_of(at);
    Operands operands = {};
    if (at_once && first + kWidth <= real) {
      using Word = std::conditional_t<kWidth == 8, uint2, std::conditional_t<kWidth == 4, unsigned, unsigned short>>;
      static_assert(sizeof(Word) == kWidth, "a pack's shades are one word");
      const Word word = __ldcs(reinterpret_cast<const Word*>(shades + first));
      memcpy(operands.shades, &word, sizeof(word));
      return operands;
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (at.column + i < cols && first + i < real) operands.shades[i] = shades[first + i];
    }
    return operands;
  }

  template <PackAccess kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    const std::int64_t first = first_of(at);
    std::int64_t channel = first - channels.quotient(first) * channels.value();
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const bool is_pixel = at.column + i < cols && first + i < real;
      values[i] = is_pixel ? static_cast<Arithmetic<T>>(__ldg(args.table.row<float>(channel) + operands.shades[i])) : Arithmetic<T>(0);
      if (++channel == channels.value()) channel = 0;
    }
    store_pack<kAccess>(args.y.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

}  // namespace

void run(CudaQueue& queue, const NormalizePixelsArgs& args) {
  check(args);
  with_float(args.y.dtype, "normalize_pixels", [&]<class T>(T) {
    constexpr int kWidth = NormalizePixels<T>::kWidth;
    const Extent extent = extent_of(kWidth, {args.y});
    const bool base_fits = reinterpret_cast<std::uintptr_t>(args.shades.data) % kWidth == 0;
    const NormalizePixels<T> body{.args = args,
                                  .cols = extent.cols,
                                  .real = args.real_rows * args.y.cols,
                                  .at_once = base_fits && (extent.rows == 1 || extent.cols % kWidth == 0),
                                  .channels = PackDivisor(args.y.cols)};
    launch_elementwise(queue, "normalize_pixels", body, extent.rows, extent.access);
  });
}

}  // namespace tilewave
