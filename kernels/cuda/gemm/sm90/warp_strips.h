// A warp's strips: 16 rows of 128 bytes in shared memory, swizzled as TMA swizzles boxes, that what has D's shape passes
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
  int mapped_cols = 0;  // so many of its columns TMA can store; none where base or pitch is no multiple of 16 bytes
};

// A thread's share of 16 rows by 64 columns, as wgmma hands it out: z[4 g + 2 h] and the next are columns 2 (lane % 4) + 8 g and the
// next of row lane / 4 + 8 h.
inline constexpr int kSubtileValues = 32;
inline constexpr int kSubtileRows = 16, kSubtileColumns = 64, kStagingBytes = kSubtileRows * 128;

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
struct SubtileAt {
  int row = 0, col = 0;
};

// The two rows of a share that a thread has sums of, h = 0 and 1: as wgmma hands them out, or neighbours, where wgmma was given rows in
// that order.
enum class AccumulatorRows { eight_apart, neighbours };
template <AccumulatorRows kRows>
__device__ __forceinline__ int accumulator_row(int lane, int h) {
  return kRows == AccumulatorRows::eight_apart ? lane / 4 + 8 * h : lane / 4 * 2 + h;
}

template <int kStagingBuffers, AccumulatorRows kRows = AccumulatorRows::eight_apart>
struct WarpStaging {
  std::byte* first = nullptr;   // [kStagingBuffers, 16 rows, 128 bytes]
  Mbarrier* arrived = nullptr;  // [kStagingBuffers]: the side input is there
  int lane = 0;
  int next_buffer = 0;
  unsigned phases = 0;  // a bit a strip

  // Asks for the strip's part of a side input, once whatever left the strip has been read.
  __device__ __forceinline__ void load_async(const CUtensorMap& map, int buffer, int row, int col) {
    if (lane == 0) {
      tma_store_wait_read<0>();
      mbarrier_arrive_expecting(arrived[buffer], kStagingBytes);
      tma_load(first + buffer * kStagingBytes, map, arrived[buffer], col, row);
    }
  }
  __device__ __forceinline__ std::byte* take(int buffer) {
    mbarrier_wait(arrived[buffer], phases >> buffer & 1);
    phases ^= 1u << buffer;
    return first + buffer * kStagingBytes;
  }

  __device__ __forceinline__ int row_of(int h) const { return accumulator_row<kRows>(lane, h); }

  // Until whatever left the strips has been read.
  __device__ __forceinline__ void settle() const {
    if (lane == 0) tma_store_wait_read<0>();
    __syncwarp();
  }
  // The next strip that may be written.
  __device__ __forceinline__ std::byte* next() {
    if (lane == 0) tma_store_wait_read<kStagingBuffers - 1>();
    __syncwarp();
    std::byte* const buffer = first + next_buffer * kStagingBytes;
    next_buffer = next_buffer + 1 == kStagingBuffers ? 0 : next_buffer + 1;
    return buffer;
  }

  // Where this lane points stmatrix and ldmatrix for column groups g and g + 1 of a strip of 16-bit elements.
  __device__ __forceinline__ std::byte* groups(std::byte* buffer, int g) const {
    const int row = accumulator_row<kRows>(lane % 8 * 4, lane % 16 / 8);
    return buffer + row * 128 + ((g + lane / 16) ^ row % 8) * 16;
  }

  // Sends a share through the strip, in 16 bits.
  template <class T>
  __device__ __forceinline__ void put(std::byte* buffer, const CUtensorMap& map, const SubtileAt& at, const float (&z)[kSubtileValues]) {
#pragma unroll
    for (int g = 0; g < 8; g += 2) {
      store_matrices(groups(buffer, g), pack<T>(z[4 * g], z[4 * g + 1]), pack<T>(z[4 * g + 2], z[4 * g + 3]),
                     pack<T>(z[4 * g + 4], z[4 * g + 5]), pack<T>(z[4 * g + 6], z[4 * g + 7]));
    }
    send(buffer, map, at.row, at.col, false);
  }
  // The same in fp32, one half after the other, added to what is there with `add`.
  __device__ __forceinline__ void put(const CUtensorMap& map, const SubtileAt& at, const float (&z)[kSubtileValues], bool add) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::byte* const buffer = next();
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = row_of(h);
        std::byte* const line = buffer + row * 128 + lane % 2 * 8;
#pragma unroll
        for (int g = 0; g < 4; ++g) {
          const int i = 16 * half + 4 * g + 2 * h, chunk = ((2 * g + lane % 4 / 2) ^ row % 8) * 16;
          *reinterpret_cast<float2*>(line + chunk) = {z[i], z[i + 1]};
        }
      }
      send(buffer, map, at.row, at.col + 32 * half, add);
    }
  }

 private:
  __device__ __forceinline__ void send(const std::byte* buffer, const CUtensorMap& map, int row, int col, bool add) {
    fence_proxy_async_shared();
    __syncwarp();
    if (lane == 0) {
      if (add) {
        tma_reduce_add(map, buffer, col, row);
      } else {
        tma_store(map, buffer, col, row);
      }
      tma_store_commit();
    }
  }
};

}  // namespace tilewave
