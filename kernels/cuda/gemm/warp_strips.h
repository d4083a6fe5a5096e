// A warp's strips: 16 rows of 128 bytes in shared memory, swizzled as the copy engine swizzles boxes, that what has D's shape passes
// through on its way to and from memory. Side inputs come in by the engine ahead of need; results go out by it, from the strip where
// their side input was or from the next one.
#pragma once

#include "kernels/cuda/core/pairs.h"
#include "kernels/cuda/prim/bulk_copy.h"
#include "kernels/cuda/prim/mbarrier.h"
#include "kernels/cuda/prim/mma.h"
#include "kernels/cuda/prim/stmatrix.h"

namespace tilewave {

// A matrix that lies like D.
struct LikeD {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
  DType dtype = DType::f32;
  int mapped_cols = 0;  // so many of its columns the copy engine can store; none where base or pitch is no multiple of 16 bytes
};

// A thread's share of 16 rows by 64 columns, as wgmma hands it out: z[4 g + 2 h] and the next are columns 2 (lane % 4) + 8 g and the
// next of row lane / 4 + 8 h.
inline constexpr int kShare = 32;
inline constexpr int kStripRows = 16, kShareColumns = 64, kStripBytes = kStripRows * 128;

__device__ __forceinline__ float load_element(const std::byte* data, DType dtype, std::int64_t at) {
  if (dtype == DType::f32) return reinterpret_cast<const float*>(data)[at];
  const unsigned short bits = reinterpret_cast<const unsigned short*>(data)[at];
  return dtype == DType::bf16 ? unpack<bf16>(bits).x : unpack<f16>(bits).x;
}
__device__ __forceinline__ void store_element(std::byte* data, DType dtype, std::int64_t at, float value) {
  if (dtype == DType::f32) {
    reinterpret_cast<float*>(data)[at] = value;
  } else {
    reinterpret_cast<unsigned short*>(data)[at] =
        static_cast<unsigned short>(dtype == DType::bf16 ? pack<bf16>(value, 0.0f) : pack<f16>(value, 0.0f));
  }
}

// Where in D a share lies.
struct ShareAt {
  int row = 0, col = 0;
};

// The two rows of a share that a thread has sums of, h = 0 and 1: as wgmma hands them out, or neighbours, where wgmma was given rows in
// that order.
enum class SumRows { eight_apart, neighbours };
template <SumRows kRows>
__device__ __forceinline__ int sum_row(int lane, int h) {
  return kRows == SumRows::eight_apart ? lane / 4 + 8 * h : lane / 4 * 2 + h;
}

template <int kStrips, SumRows kRows = SumRows::eight_apart>
struct WarpStrips {
  std::byte* first = nullptr;   // [kStrips, 16 rows, 128 bytes]
  Mbarrier* arrived = nullptr;  // [kStrips]: the side input is there
  int lane = 0;
  int turn = 0;
  unsigned phases = 0;  // a bit a strip

  // Asks for the strip's part of a side input, once whatever left the strip has been read.
  __device__ __forceinline__ void ask(const CUtensorMap& map, int strip, int row, int col) {
    if (lane == 0) {
      wait_boxes_read<0>();
      mbarrier_arrive_expecting(arrived[strip], kStripBytes);
      load_box(first + strip * kStripBytes, map, arrived[strip], col, row);
    }
  }
  __device__ __forceinline__ std::byte* take(int strip) {
    mbarrier_wait(arrived[strip], phases >> strip & 1);
    phases ^= 1u << strip;
    return first + strip * kStripBytes;
  }

  __device__ __forceinline__ int row_of(int h) const { return sum_row<kRows>(lane, h); }

  // Until whatever left the strips has been read.
  __device__ __forceinline__ void settle() const {
    if (lane == 0) wait_boxes_read<0>();
    __syncwarp();
  }
  // The next strip that may be written.
  __device__ __forceinline__ std::byte* next() {
    if (lane == 0) wait_boxes_read<kStrips - 1>();
    __syncwarp();
    std::byte* const strip = first + turn * kStripBytes;
    turn = turn + 1 == kStrips ? 0 : turn + 1;
    return strip;
  }

  // Where this lane points stmatrix and ldmatrix for column groups g and g + 1 of a strip of 16-bit elements.
  __device__ __forceinline__ std::byte* groups(std::byte* strip, int g) const {
    const int row = sum_row<kRows>(lane % 8 * 4, lane % 16 / 8);
    return strip + row * 128 + ((g + lane / 16) ^ row % 8) * 16;
  }

  // Sends a share through the strip, in 16 bits.
  template <class T>
  __device__ __forceinline__ void put(std::byte* strip, const CUtensorMap& map, const ShareAt& at, const float (&z)[kShare]) {
#pragma unroll
    for (int g = 0; g < 8; g += 2) {
      store_matrices(groups(strip, g), pack<T>(z[4 * g], z[4 * g + 1]), pack<T>(z[4 * g + 2], z[4 * g + 3]),
                     pack<T>(z[4 * g + 4], z[4 * g + 5]), pack<T>(z[4 * g + 6], z[4 * g + 7]));
    }
    send(strip, map, at.row, at.col, false);
  }
  // The same in fp32, one half after the other, added to what is there with `add`.
  __device__ __forceinline__ void put(const CUtensorMap& map, const ShareAt& at, const float (&z)[kShare], bool add) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::byte* const strip = next();
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = row_of(h);
        std::byte* const line = strip + row * 128 + lane % 2 * 8;
#pragma unroll
        for (int g = 0; g < 4; ++g) {
          const int i = 16 * half + 4 * g + 2 * h, chunk = ((2 * g + lane % 4 / 2) ^ row % 8) * 16;
          *reinterpret_cast<float2*>(line + chunk) = {z[i], z[i + 1]};
        }
      }
      send(strip, map, at.row, at.col + 32 * half, add);
    }
  }

 private:
  __device__ __forceinline__ void send(const std::byte* strip, const CUtensorMap& map, int row, int col, bool add) {
    fence_shared_for_engines();
    __syncwarp();
    if (lane == 0) {
      if (add) {
        add_box(map, strip, col, row);
      } else {
        store_box(map, strip, col, row);
      }
      commit_boxes();
    }
  }
};

}  // namespace tilewave
