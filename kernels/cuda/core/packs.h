// Rows in packs: neighbouring columns that one thread loads, computes and stores together. A pack is logical columns
// [W p, W p + W) whatever the addresses are; Access says how they are moved: 16 bytes at once where every base and pitch allows
// it, else 8 where a pack starts on them, else element by element. So the same thread owns the same columns on every path, and no sum
// depends on a pitch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "kernels/cuda/core/elements.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

template <class T>
inline constexpr int kPackWidth = static_cast<int>(16 / sizeof(T));

// Elements lie in words, so that what is loaded 16 bytes at a time stays so until it is looked at.
template <class T, int kWidth = kPackWidth<T>>
struct Pack {
  static constexpr int kWords = kWidth * static_cast<int>(sizeof(T)) / 4;
  std::uint32_t words[kWords];

  __device__ __forceinline__ T get(int i) const {
    if constexpr (sizeof(T) == 2) {
      T element;
      element.bits = static_cast<std::uint16_t>(words[i / 2] >> (i % 2 * 16));
      return element;
    } else if constexpr (sizeof(T) == 4) {
      return __uint_as_float(words[i]);
    } else {
      return __hiloint2double(static_cast<int>(words[2 * i + 1]), static_cast<int>(words[2 * i]));
    }
  }
  __device__ __forceinline__ void set(int i, T element) {
    if constexpr (sizeof(T) == 2) {
      words[i / 2] = i % 2 == 0 ? (words[i / 2] & 0xffff0000u) | element.bits
                                : (words[i / 2] & 0x0000ffffu) | static_cast<std::uint32_t>(element.bits) << 16;
    } else if constexpr (sizeof(T) == 4) {
      words[i] = __float_as_uint(element);
    } else {
      words[2 * i] = static_cast<std::uint32_t>(__double2loint(element));
      words[2 * i + 1] = static_cast<std::uint32_t>(__double2hiint(element));
    }
  }
};

// Rounded to T, two 16-bit elements by one instruction.
template <class T, int kWidth>
__device__ __forceinline__ Pack<T, kWidth> pack_of(const Arithmetic<T> (&values)[kWidth]) {
  Pack<T, kWidth> pack;
  if constexpr (std::is_same_v<T, bf16>) {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(values[i], values[i + 1]);
      memcpy(&pack.words[i / 2], &pair, sizeof(pair));
    }
  } else if constexpr (std::is_same_v<T, f16>) {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const __half2 pair = __floats2half2_rn(values[i], values[i + 1]);
      memcpy(&pack.words[i / 2], &pair, sizeof(pair));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) pack.set(i, values[i]);
  }
  return pack;
}

// The widest type that a pack is whole words of.
template <int kWords>
using Words = std::conditional_t<kWords % 4 == 0, uint4, std::conditional_t<kWords % 2 == 0, uint2, unsigned>>;

enum class PackAccess : std::uint8_t { whole, wide, narrow };  // whole: wide, and no row ends within a pack

template <PackAccess kAccess, int kWidth>
__device__ __forceinline__ bool moves_whole(std::int64_t column, std::int64_t cols) {
  return kAccess == PackAccess::whole || (kAccess == PackAccess::wide && column + kWidth <= cols);
}

// Whether a pack of 16 bytes that does not move whole moves in two halves: rows of a vocabulary of 33,708 start on 8 bytes. A wide pack
// that does not move whole ends its row; code for halves it cannot take would cost its kernel registers.
template <PackAccess kAccess, class Moved>
inline constexpr bool kMayMoveInHalves = kAccess == PackAccess::narrow && sizeof(Moved) == 16;
__device__ __forceinline__ bool moves_in_halves(const void* at, int width, std::int64_t left) {
  return width <= left && reinterpret_cast<std::uintptr_t>(at) % 8 == 0;
}

// Whether the caches keep a pack for others: what nothing reads again while it could still be there goes through and leaves first.
enum class Reuse : std::uint8_t { soon, none };

// Elements from `cols` on are zero.
template <PackAccess kAccess, int kWidth, Reuse kReuse = Reuse::soon, class T>
__device__ __forceinline__ Pack<T, kWidth> load_pack(const T* row, std::int64_t column, std::int64_t cols) {
  Pack<T, kWidth> pack;
  if (moves_whole<kAccess, kWidth>(column, cols)) {
    using W = Words<Pack<T, kWidth>::kWords>;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(pack) / sizeof(W)); ++i) {
      const W* const from = reinterpret_cast<const W*>(row + column) + i;
      const W words = kReuse == Reuse::none ? __ldcs(from) : *from;
      memcpy(pack.words + i * (sizeof(W) / 4), &words, sizeof(W));
    }
    return pack;
  }
  if constexpr (kMayMoveInHalves<kAccess, Pack<T, kWidth>>) {
    if (moves_in_halves(row + column, kWidth, cols - column)) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint2 words = reinterpret_cast<const uint2*>(row + column)[half];
        memcpy(pack.words + 2 * half, &words, sizeof(words));
      }
      return pack;
    }
  }
  pack = {};
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    if (column + i < cols) pack.set(i, row[column + i]);
  }
  return pack;
}

template <PackAccess kAccess, Reuse kReuse = Reuse::soon, int kWidth, class T>
__device__ __forceinline__ void store_pack(T* row, std::int64_t column, std::int64_t cols, const Pack<T, kWidth>& pack) {
  if (moves_whole<kAccess, kWidth>(column, cols)) {
    using W = Words<Pack<T, kWidth>::kWords>;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(pack) / sizeof(W)); ++i) {
      W words;
      memcpy(&words, pack.words + i * (sizeof(W) / 4), sizeof(W));
      W* const to = reinterpret_cast<W*>(row + column) + i;
      if constexpr (kReuse == Reuse::none) {
        __stcs(to, words);
      } else {
        __stwb(to, words);  // an ordinary store that the compiler does not take apart
      }
    }
    return;
  }
  if constexpr (kMayMoveInHalves<kAccess, Pack<T, kWidth>>) {
    if (moves_in_halves(row + column, kWidth, cols - column)) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint2 words;
        memcpy(&words, pack.words + 2 * half, sizeof(words));
        reinterpret_cast<uint2*>(row + column)[half] = words;
      }
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    if (column + i < cols) row[column + i] = pack.get(i);
  }
}

// Whether packs of `width` elements can be moved whole: bases, and pitches where there is more than one row. Absent matrices ask
// for nothing.
inline PackAccess access_of(int width, std::initializer_list<ConstMatrixView> views) {
  for (const ConstMatrixView& view : views) {
    const std::int64_t bytes = std::min<std::int64_t>(16, width * size_of(view.dtype));
    const bool base_fits = reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(bytes) == 0;
    const bool pitch_fits = view.rows <= 1 || view.ld * size_of(view.dtype) % bytes == 0;
    if (view && !(base_fits && pitch_fits)) return PackAccess::narrow;
  }
  return PackAccess::wide;
}

// Calls fn with the access as a constant.
template <class Fn>
void with_access(PackAccess access, Fn&& fn) {
  if (access == PackAccess::wide) {
    fn(std::integral_constant<PackAccess, PackAccess::wide>{});
  } else {
    fn(std::integral_constant<PackAccess, PackAccess::narrow>{});
  }
}

// For rows of so many columns: a pack that ends a row makes all accesses narrow.
constexpr PackAccess whole_access(PackAccess access, std::int64_t cols, int width) {
  return access == PackAccess::wide && cols % width == 0 ? PackAccess::whole : PackAccess::narrow;
}
template <class Fn>
void with_whole_access(PackAccess access, std::int64_t cols, int width, Fn&& fn) {
  if (whole_access(access, cols, width) == PackAccess::whole) {
    fn(std::integral_constant<PackAccess, PackAccess::whole>{});
  } else {
    fn(std::integral_constant<PackAccess, PackAccess::narrow>{});
  }
}

// n / d for 0 <= n < 2^63 by one multiplication (Granlund and Montgomery, "Division by invariant integers using multiplication",
// PLDI 1994).
class PackDivisor {
 public:
  PackDivisor() = default;
  explicit PackDivisor(std::int64_t d) : divisor_(d) {
    while ((std::int64_t{1} << shift_) < d) ++shift_;
    __extension__ using Wide = unsigned __int128;
    if (d > 1) multiplier_ = static_cast<std::uint64_t>((Wide{1} << (63 + shift_)) / static_cast<Wide>(d)) + 1;
  }
  __device__ __forceinline__ std::int64_t quotient(std::int64_t n) const {
    return divisor_ == 1 ? n : static_cast<std::int64_t>(__umul64hi(multiplier_, static_cast<std::uint64_t>(n)) >> (shift_ - 1));
  }
  __device__ __forceinline__ std::int64_t value() const { return divisor_; }

 private:
  std::int64_t divisor_ = 1;
  std::uint64_t multiplier_ = 0;
  int shift_ = 0;
};

// What an operation goes over that cares for neither rows nor columns: matrices of one shape, which are one long row where none has
// a gap between its rows.
struct Extent {
  std::int64_t rows = 0, cols = 0;
  PackAccess access = PackAccess::wide;
};
inline Extent extent_of(int width, std::initializer_list<ConstMatrixView> views) {
  const ConstMatrixView& y = *views.begin();
  const bool packed = std::all_of(views.begin(), views.end(), [&](const ConstMatrixView& view) { return !view || view.ld == y.cols; });
  if (!packed) return {.rows = y.rows, .cols = y.cols, .access = access_of(width, views)};
  PackAccess access = PackAccess::wide;
  for (ConstMatrixView view : views) {
    view.rows = 1;
    if (access_of(width, {view}) == PackAccess::narrow) access = PackAccess::narrow;
  }
  return {.rows = 1, .cols = y.rows * y.cols, .access = access};
}

// Element-wise work. A Body has kWidth, the columns of a row, a type Operands, and load and store at a place; each place is one
// thread's alone.
struct Place {
  std::int64_t row = 0, column = 0;
};

inline constexpr int kElementwiseThreads = 256;
// Packs a thread loads before it stores the first.
template <PackAccess kAccess>
inline constexpr int kElementwiseBatch = kAccess == PackAccess::wide ? 2 : 1;

template <PackAccess kAccess, class Body>
__global__ void __launch_bounds__(kElementwiseThreads)
    for_each_pack(const Body body, const PackDivisor packs_a_row, const std::int64_t packs) {
  constexpr int kBatch = kElementwiseBatch<kAccess>;
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kBatch * kElementwiseThreads) + threadIdx.x;
  typename Body::Operands operands[kBatch];
  Place places[kBatch];
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    const std::int64_t pack = first + i * kElementwiseThreads;
    places[i].row = packs_a_row.quotient(pack);
    places[i].column = (pack - places[i].row * packs_a_row.value()) * Body::kWidth;
    if (pack < packs) operands[i] = body.template load<kAccess>(places[i]);
  }
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    if (first + i * kElementwiseThreads < packs) body.template store<kAccess>(places[i], operands[i]);
  }
}

template <class Body>
void launch_elementwise(CudaQueue& queue, const char* name, const Body& body, std::int64_t rows, PackAccess access) {
  const std::int64_t packs_a_row = ceil_div(body.cols, Body::kWidth), packs = rows * packs_a_row;
  if (packs == 0) return;
  with_access(access, [&](auto kAccess) {
    const auto blocks = static_cast<unsigned>(ceil_div(packs, kElementwiseBatch<kAccess()> * kElementwiseThreads));
    for_each_pack<kAccess()><<<blocks, kElementwiseThreads, 0, stream_of(queue)>>>(body, PackDivisor(packs_a_row), packs);
  });
  TW_CUDA_LAUNCHED(name);
}

}  // namespace tilewave
