// How transposed_ping_pong finishes what it computes of sums: part by part, 64 of M by 32 of N, each through a slot of shared memory that
// the consumers fill in turn and a warp beside the loading ones sends from. So the warps of a consumer meet nowhere. A part is computed
// before what the part before it put down is told of: shared memory is busy with products, and both ways through it take their time.
#pragma once

#include "kernels/cuda/gemm/transposed.h"

namespace tilewave {

// The slots' barriers: a side input has come, a part's result is put down by all warps, what it left has been read.
template <int kSlots>
struct SlotBarriers {
  Mbarrier side_full[kSlots], done[kSlots], empty[kSlots];
};

template <class C>
struct EpilogueInParts : TransposedEpilogue<C> {
  using Base = TransposedEpilogue<C>;
  using Base::Base;
  using typename Base::Sums;
  static constexpr int kTileN = static_cast<int>(C::kTile.n), kLines = C::kColumnsAtOnce, kGroups = kLines / 16, kParts = C::kParts;
  static constexpr int kSlots = C::kSlots;
  static_assert(kTileN % kLines == 0, "a part lies in one block of 64 of M");
  static_assert(kParts % kSlots == 0, "every tile begins with the first slot");
  static_assert(kSlots > 2, "the next part's slot is waited for before the one before is told of");
  using Slots = std::byte[kSlots][C::kBuffersOfSlot][kLines * 128];
  using Barriers = SlotBarriers<kSlots>;

  // An activation's results, and its inputs where they are stored. `round` is the slots' with which the tile begins.
  template <class T>
  __device__ __forceinline__ void finish_activated(T, Slots& slots, Barriers& barriers, int round, const Sums& sums) const {
    with_activation(e.activation, [&]<Activation kWhich>() {
      unsigned results[kGroups][4], inputs[kGroups][4];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          float z[8];
          take_sums<true>(sums, part * kGroups + g, z);
          Base::template pack_all<T>(inputs[g], z);
          Base::template activate_all<T, kWhich>(z);
          Base::template pack_all<T>(results[g], z);
        }
        const int slot = part % kSlots;
        mbarrier_wait(barriers.empty[slot], parity_of(round, part) ^ 1);
        if (part > 0) {
          fence_shared_for_engines();
          tell(barriers.done[(part - 1) % kSlots]);
        }
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          put(groups(slots[slot][0], 2 * g), results[g]);
          if (saves()) put(groups(slots[slot][1], 2 * g), inputs[g]);
        }
      }
    });
    fence_shared_for_engines();
    tell(barriers.done[kSlots - 1]);
  }

  // Sums by what a side input says, which comes into the slots and leaves as the result from where it came.
  template <class T>
  __device__ __forceinline__ void finish_sided(T, Slots& slots, Barriers& barriers, int round, const Sums& sums) const {
    this->template with_side<T>([&]<class Form>(Form) {
      unsigned results[kGroups][4], inputs[kGroups][4];
      const auto get = [&](int part) {
        const int slot = part % kSlots;
        mbarrier_wait(barriers.side_full[slot], parity_of(round, part));
        if (part > 1) fence_shared_for_engines();  // for what was put down before; behind what is read here it would wait for that too
#pragma unroll
        for (int g = 0; g < kGroups; ++g) ldmatrix_transposed(inputs[g], shared_address(groups(slots[slot][0], 2 * g)));
      };
      get(0);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          float z[8];
          take_sums<Form::kSide == Side::added>(sums, part * kGroups + g, z);
          Base::template combine<Form>(z, inputs[g]);
          Base::template pack_all<T>(results[g], z);
        }
        if (part + 1 < kParts) {
          get(part + 1);
        } else {
          fence_shared_for_engines();
        }
        if (part > 0) tell(barriers.done[(part - 1) % kSlots]);
#pragma unroll
        for (int g = 0; g < kGroups; ++g) put(groups(slots[part % kSlots][0], 2 * g), results[g]);
      }
    });
    fence_shared_for_engines();
    tell(barriers.done[kSlots - 1]);
  }

 private:
  using Base::e;
  using Base::groups;
  using Base::put;
  using Base::saves;

  __device__ __forceinline__ static unsigned parity_of(int round, int part) { return static_cast<unsigned>(round + part / kSlots) & 1u; }
  // By a warp all of whose lanes have come.
  __device__ __forceinline__ static void tell(Mbarrier& barrier) {
    __syncwarp();
    if (elect_lane()) mbarrier_arrive(barrier);
  }
  // A thread's sums of 16 columns of N, which a block has kTileN / 16 of, perhaps with their bias; computed no sooner than they are used.
  template <bool kBiased>
  __device__ __forceinline__ void take_sums(const Sums& sums, int index, float (&z)[8]) const {
    const int block = index / (kTileN / 16), first = index % (kTileN / 16) * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      z[i] = sums[block][first + i];
      asm volatile("" : "+f"(z[i]));
      if constexpr (kBiased) z[i] += this->bias[block][i / 2 % 2];
    }
  }
};

}  // namespace tilewave
