// How transposed_ping_pong finishes what it computes of sums: its consumers take turns at a block's buffers, each of which 64 of M by so
// many of N go through. A part of a tile is computed before what the part before it put into shared memory is sent: shared memory is
// busy with products, and both ways through it take their time.
#pragma once

#include "kernels/cuda/gemm/transposed.h"

namespace tilewave {

template <class C>
struct EpilogueInParts : TransposedEpilogue<C> {
  using Base = TransposedEpilogue<C>;
  using Base::Base;
  using typename Base::Sums;
  static constexpr int kTileN = static_cast<int>(C::kTile.n), kLines = C::kColumnsAtOnce, kGroups = kLines / 16, kParts = C::kParts;
  static_assert(kTileN % kLines == 0, "a part lies in one block of 64 of M");
  using Buffers = std::byte[C::kBuffers][kLines * 128];

  // An activation's results, and its inputs where they are stored, by way of pairs of buffers in turn.
  template <class T>
  __device__ __forceinline__ void finish_activated(T, Buffers& buffers, const Sums& sums) const {
    constexpr int kPairs = C::kBuffers / 2;
    static_assert(kPairs > 2);
    const int warp = warp_rank() % 4;
    const auto send = [&](int part) {
      fence_shared_for_engines();
      wait_boxes_read<kPairs - 2>();  // the next part has a place
      sync();
      if (warp == 0) send_part(e.d_map, buffers[part % kPairs * 2], part);
      if (warp == 1 && saves()) send_part(e.saved_input_map, buffers[part % kPairs * 2 + 1], part);
    };
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
        if (part > 0) send(part - 1);
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          put(groups(buffers[part % kPairs * 2], 2 * g), results[g]);
          if (saves()) put(groups(buffers[part % kPairs * 2 + 1], 2 * g), inputs[g]);
        }
      }
      send(kParts - 1);
    });
    wait_boxes_read<0>();
  }

  // Sums by what a side input says, which comes into the buffers in turn, from `at` on, and leaves as the result from where it came. The
  // next part's is read before this one's result is put down.
  template <class T>
  __device__ __forceinline__ void finish_sided(T, Buffers& buffers, Mbarrier (&full)[C::kBuffers], Mbarrier (&empty)[C::kBuffers],
                                               RingPosition<C::kBuffers>& at, const Sums& sums) const {
    constexpr int kLeaving = C::kBuffers / 5;  // of which it is not known yet whether they have left
    static_assert(C::kBuffers > kLeaving + 1);
    const bool sends = warp_rank() % 4 == 0;
    RingPosition<C::kBuffers> left = at, leaving = at;
    const auto release = [&] {
      if (sends && elect_lane()) mbarrier_arrive(empty[left.stage]);
      left.advance();
    };
    const auto send = [&](int part) {
      fence_shared_for_engines();
      sync();
      if (sends) send_part(e.d_map, buffers[leaving.stage], part);
      leaving.advance();
      wait_boxes_read<kLeaving>();
      if (part >= kLeaving) release();
    };
    this->template with_side<T>([&]<class Form>(Form) {
      unsigned results[kGroups][4], inputs[kGroups][4];
      const auto get = [&] {
        mbarrier_wait(full[at.stage], at.parity);
#pragma unroll
        for (int g = 0; g < kGroups; ++g) ldmatrix_transposed(inputs[g], shared_address(groups(buffers[at.stage], 2 * g)));
      };
      get();
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          float z[8];
          take_sums<Form::kSide == Side::added>(sums, part * kGroups + g, z);
          Base::template combine<Form>(z, inputs[g]);
          Base::template pack_all<T>(results[g], z);
        }
        std::byte* const lines = buffers[at.stage];
        at.advance();
        if (part + 1 < kParts) get();
        if (part > 0) send(part - 1);
#pragma unroll
        for (int g = 0; g < kGroups; ++g) put(groups(lines, 2 * g), results[g]);
      }
      send(kParts - 1);
    });
    wait_boxes_read<0>();
    for (int part = 0; part < kLeaving; ++part) release();
  }

 private:
  using Base::e;
  using Base::groups;
  using Base::put;
  using Base::saves;
  using Base::sync;

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
  // By one lane of a warp.
  __device__ __forceinline__ void send_part(const CUtensorMap& map, const std::byte* lines, int part) const {
    if (!elect_lane()) return;
    store_box(map, lines, this->m + part * kLines / kTileN * kBox, this->n + part * kLines % kTileN);
    commit_boxes();
  }
};

}  // namespace tilewave
