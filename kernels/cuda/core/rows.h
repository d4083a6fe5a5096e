// Reductions over rows: a row belongs to a group of threads, a warp or a block, thread t of which owns packs t, t + threads, ...
// What a thread has found is folded over the group in a fixed order, so a result depends on the logical columns alone.
#pragma once

#include "kernels/cuda/core/packs.h"
#include "kernels/math/activation.h"

namespace tilewave {

inline constexpr int kWarp = 32;

struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {  // a NaN on one side is passed over
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
  __device__ __forceinline__ double operator()(double a, double b) const { return fmax(a, b); }
};

template <class T, class Combine>
__device__ __forceinline__ T fold_warp(T value, Combine combine) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

// Every thread of the group gets the result. `scratch` has kThreads / 32 elements and may be used again at once.
template <int kThreads, class T, class Combine>
__device__ __forceinline__ T fold_group(T value, T* scratch, Combine combine) {
  value = fold_warp(value, combine);
  if constexpr (kThreads > kWarp) {
    if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = scratch[0];
    for (int warp = 1; warp < kThreads / kWarp; ++warp) value = combine(value, scratch[warp]);
    __syncthreads();
  }
  return value;
}

// fn(value) for the first `count` elements of a pack, which is all but the row's last one's kWidth.
template <class T, int kWidth, class Fn>
__device__ __forceinline__ void each_of_pack(const Pack<T, kWidth>& pack, std::int64_t count, const Fn& fn) {
  if (count >= kWidth) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) fn(load(pack.get(i)));
    return;
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    if (i < count) fn(load(pack.get(i)));
  }
}

// e^x where x is not above 0.
__device__ __forceinline__ float exponential_of_distance(float x) { return power_of_two(x * 1.44269504f); }
__device__ __forceinline__ double exponential_of_distance(double x) { return exp(x); }

// Calls fn(column, pack) for the packs of one row that this thread of the group owns. Up to kPacks of them stay in registers
// from load() on; with kPacks = 0 there can be any number, and each pass reads them again.
template <class T, int kThreads, int kPacks, PackAccess kAccess>
class RowPacks {
 public:
  static constexpr int kWidth = kPackWidth<T>;

  __device__ __forceinline__ RowPacks(const T* row, std::int64_t cols) : row_(row), cols_(cols) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (column_of(k) < cols) kept_[k] = load_pack<kAccess, kWidth>(row, column_of(k), cols);
    }
  }
  template <class Fn>
  __device__ __forceinline__ void each(const Fn& fn) const {
    if constexpr (kPacks > 0) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (column_of(k) < cols_) fn(column_of(k), kept_[k]);
      }
    } else {
      for (std::int64_t column = column_of(0); column < cols_; column += kThreads * kWidth) {
        fn(column, load_pack<kAccess, kWidth>(row_, column, cols_));
      }
    }
  }
  // fn(column, a's pack, b's pack) for two rows of one width.
  template <class Fn>
  static __device__ __forceinline__ void each_pair(const RowPacks& a, const RowPacks& b, const Fn& fn) {
    if constexpr (kPacks > 0) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (column_of(k) < a.cols_) fn(column_of(k), a.kept_[k], b.kept_[k]);
      }
    } else {
      a.each([&](std::int64_t column, const Pack<T>& pack) { fn(column, pack, load_pack<kAccess, kWidth>(b.row_, column, a.cols_)); });
    }
  }
  // fn(value) for each element.
  template <class Fn>
  __device__ __forceinline__ void each_element(const Fn& fn) const {
    each([&](std::int64_t column, const Pack<T>& pack) { each_of_pack(pack, kAccess == PackAccess::whole ? kWidth : cols_ - column, fn); });
  }

 private:
  static __device__ __forceinline__ std::int64_t column_of(int k) { return (k * kThreads + threadIdx.x) * kWidth; }

  const T* row_;
  std::int64_t cols_;
  Pack<T> kept_[kPacks > 0 ? kPacks : 1];
};

// How rows of a number of packs are shared out: threads of a group, packs of a thread.
template <int kThreads, int kPacks>
struct RowShape {
  static constexpr int threads = kThreads, packs = kPacks;
  static constexpr int rows = kThreads == kWarp ? 8 : 1;  // of a block
};

// Calls fn with the RowShape for rows of so many packs.
template <class Fn>
void with_row_shape(std::int64_t packs, Fn&& fn) {
  if (packs <= 128) return fn(RowShape<32, 4>{});
  if (packs <= 512) return fn(RowShape<128, 4>{});
  fn(RowShape<512, 0>{});
}

}  // namespace tilewave
