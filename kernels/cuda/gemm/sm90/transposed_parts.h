// How persistent_ping_pong_swap_ab finishes what it computes of sums: part by part, 64 of M by 32 of N, each through a slot of shared
// memory that the consumers fill in turn and a warp beside the loading ones sends from. So the warps of a consumer meet nowhere. A part is
// computed before what the part before it put down is told of: shared memory is busy with products, and both ways through it take their
// time.
#pragma once

#include "kernels/cuda/gemm/sm90/transposed.h"

namespace tilewave {

// The slots' barriers: a side input has come, a part's result is put down by all warps, what it left has been read.
template <int kStagingBuffers>
struct StagingBarriers {
  Mbarrier side_full[kStagingBuffers], done[kStagingBuffers], empty[kStagingBuffers];

  __device__ __forceinline__ void init() {
    mbarrier_init(side_full, 1);
    mbarrier_init(done, kWarpgroup / 32);
    mbarrier_init(empty, 1);
  }
};

template <class C>
struct SubtileEpilogue : SwapAbEpilogue<C> {
  using Base = SwapAbEpilogue<C>;
  using Base::Base;
  using typename Base::Accumulators;
  static constexpr int kTileN = static_cast<int>(C::kTile.n), kLines = C::kColumnsAtOnce, kGroups = kLines / 16, kSubtiles = C::kSubtiles;
  static constexpr int kStagingBuffers = C::kStagingBuffers;
  static_assert(kTileN % kLines == 0, "a part lies in one block of 64 of M");
  static_assert(kSubtiles % kStagingBuffers == 0, "every tile begins with the first slot");
  static_assert(kStagingBuffers > 2, "the next part's slot is waited for before the one before is told of");
  using StagingBuffers = std::byte[kStagingBuffers][C::kOutputsPerBuffer][kLines * 128];
  using Barriers = StagingBarriers<kStagingBuffers>;

  // An activation's results, and its inputs where they are stored. `round` is the slots' with which the tile begins.
  template <class T>
  __device__ __forceinline__ void finish_activated(T, StagingBuffers& staging, Barriers& barriers, int round,
                                                   const Accumulators& accumulators) const {
    with_activation(e.activation, [&]<Activation kWhich>() {
      unsigned results[kGroups][4], inputs[kGroups][4];
#pragma unroll
      for (int subtile = 0; subtile < kSubtiles; ++subtile) {
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          float z[8];
          take_accumulators<true>(accumulators, subtile * kGroups + g, z);
          Base::template pack_all<T>(inputs[g], z);
          Base::template activate_all<T, kWhich>(z);
          Base::template pack_all<T>(results[g], z);
        }
        const int buffer = subtile % kStagingBuffers;
        mbarrier_wait(barriers.empty[buffer], parity_of(round, subtile) ^ 1);
        if (subtile > 0) {
          fence_proxy_async_shared();
          signal(barriers.done[(subtile - 1) % kStagingBuffers]);
        }
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          put(groups(staging[buffer][0], 2 * g), results[g]);
          if (saves()) put(groups(staging[buffer][1], 2 * g), inputs[g]);
        }
      }
    });
    fence_proxy_async_shared();
    signal(barriers.done[kStagingBuffers - 1]);
  }

  // Sums by what a side input says, which comes into the slots and leaves as the result from where it came.
  template <class T>
  __device__ __forceinline__ void finish_sided(T, StagingBuffers& staging, Barriers& barriers, int round,
                                               const Accumulators& accumulators) const {
    this->template with_side<T>([&]<class Form>(Form) {
      unsigned results[kGroups][4], inputs[kGroups][4];
      const auto get = [&](int subtile) {
        const int buffer = subtile % kStagingBuffers;
        mbarrier_wait(barriers.side_full[buffer], parity_of(round, subtile));
        if (subtile > 1) fence_proxy_async_shared();  // for what was put down before; behind what is read here it would wait for that too
#pragma unroll
        for (int g = 0; g < kGroups; ++g) ldmatrix_transposed(inputs[g], shared_address(groups(staging[buffer][0], 2 * g)));
      };
      get(0);
#pragma unroll
      for (int subtile = 0; subtile < kSubtiles; ++subtile) {
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          float z[8];
          take_accumulators<Form::kSideInput == SideInput::added>(accumulators, subtile * kGroups + g, z);
          this->template combine<Form>(z, inputs[g]);
          Base::template pack_all<T>(results[g], z);
        }
        if (subtile + 1 < kSubtiles) {
          get(subtile + 1);
        } else {
          fence_proxy_async_shared();
        }
        if (subtile > 0) signal(barriers.done[(subtile - 1) % kStagingBuffers]);
#pragma unroll
        for (int g = 0; g < kGroups; ++g) put(groups(staging[subtile % kStagingBuffers][0], 2 * g), results[g]);
      }
    });
    fence_proxy_async_shared();
    signal(barriers.done[kStagingBuffers - 1]);
  }

 private:
  using Base::e;
  using Base::groups;
  using Base::put;
  using Base::saves;

  __device__ __forceinline__ static unsigned parity_of(int round, int subtile) {
    return static_cast<unsigned>(round + subtile / kStagingBuffers) & 1u;
  }
  // By a warp all of whose lanes have come.
  __device__ __forceinline__ static void signal(Mbarrier& barrier) {
    __syncwarp();
    if (elect_lane()) mbarrier_arrive(barrier);
  }
  // A thread's sums of 16 columns of N, which a block has kTileN / 16 of, perhaps with their bias; computed no sooner than they are used.
  template <bool kBiased>
  __device__ __forceinline__ void take_accumulators(const Accumulators& accumulators, int index, float (&z)[8]) const {
    const int mma_tile = index / (kTileN / 16), first = index % (kTileN / 16) * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      z[i] = accumulators[mma_tile][first + i];
      asm volatile("" : "+f"(z[i]));
      if constexpr (kBiased) z[i] += this->bias[mma_tile][i / 2 % 2];
    }
  }
};

}  // namespace tilewave
