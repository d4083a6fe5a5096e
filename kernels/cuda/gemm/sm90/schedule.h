// Which tiles a CTA's consumers take, and who multiplies when. The kernels of persistent.h, persistent_deferred_store.h and their like have
// their CTAs stay: a cluster takes every `clusters`th turn of the raster.
#pragma once

#include "kernels/cuda/gemm/sm90/kernel.h"

namespace tilewave {

template <class Gemm>
__device__ __forceinline__ bool is_last_tile(const Gemm& gemm, int index) {
  return index + gemm.clusters >= gemm.raster.tiles;
}

// The last k_tiles of a tile that no other follows, which the ring holds by then: consumers take them one after the other, so that one
// finishes under the next one's MMAs.
template <int kConsumers, int kOrderedKTiles>
struct InTurn {
  int consumer, waits_at, passes_at;  // k_tiles, or -1

  __device__ __forceinline__ InTurn(int which, bool last, int begin, int end)
      : consumer(which),
        waits_at(last && consumer > 0 ? max(end - kOrderedKTiles, begin) : -1),
        passes_at(last && consumer + 1 < kConsumers ? end - 1 : -1) {}
  // Before a k_tile's MMAs, and once they are issued.
  __device__ __forceinline__ void before(int k_tile) const {
    if (k_tile == waits_at) order_barrier_wait(consumer - 1);
  }
  __device__ __forceinline__ void issued(int k_tile) const {
    if (k_tile == passes_at) order_barrier_arrive(consumer);
  }
};

// The consumers share every tile's rows (cooperative).
template <int kConsumers, int kMmaTiles, int kOrderedKTiles>
struct DataParallel {
  static constexpr int kConsumersPerTile = kConsumers;
  struct SharedStorage {};

  __device__ __forceinline__ static void init(SharedStorage&) {}

  int consumer;
  template <class Gemm, class Position>
  __device__ __forceinline__ DataParallel(SharedStorage&, const ConsumerThread& self, const Gemm&, Position&) : consumer(self.consumer) {}

  // Its tiles' numbers in the raster: every step(gemm)th from first(gemm) on.
  template <class Gemm>
  __device__ __forceinline__ int first(const Gemm& gemm) const {
    return first_tile_index(gemm);
  }
  template <class Gemm>
  __device__ __forceinline__ int step(const Gemm& gemm) const {
    return gemm.clusters;
  }
  // Of a tile's boxes of 64 rows.
  __device__ __forceinline__ int first_box() const { return consumer * kMmaTiles; }
  template <class Gemm>
  __device__ __forceinline__ InTurn<kConsumers, kOrderedKTiles> begin(const Gemm& gemm, int index) {
    return {consumer, is_last_tile(gemm, index), 0, gemm.k_tiles};
  }
  __device__ __forceinline__ void end_issue() {}
  template <class Gemm, class Position>
  __device__ __forceinline__ void end(const Gemm&, Position&) {}
};

// Two consumers have every second tile each, so that one finishes its own while the other multiplies. A consumer skips its partner's
// stages, and begins when the partner has issued its last MMA: a barrier tells two phases apart, no more.
struct PingPong {
  static constexpr int kConsumersPerTile = 1, kConsumers = 2;
  struct SharedStorage {
    Mbarrier order[kConsumers];
  };

  __device__ __forceinline__ static void init(SharedStorage& shared) { mbarrier_init(shared.order, 1); }

  SharedStorage& shared;
  int consumer, thread;
  unsigned parity;

  template <class Gemm, class Position>
  __device__ __forceinline__ PingPong(SharedStorage& storage, const ConsumerThread& self, const Gemm& gemm, Position& at)
      : shared(storage), consumer(self.consumer), thread(self.thread) {
    if (consumer == 1) at.advance(gemm.k_tiles);
    parity = consumer == 0 ? 1 : 0;  // the first to begin waits for nobody
  }

  template <class Gemm>
  __device__ __forceinline__ int first(const Gemm& gemm) const {
    return first_tile_index(gemm) + consumer * gemm.clusters;
  }
  template <class Gemm>
  __device__ __forceinline__ int step(const Gemm& gemm) const {
    return kConsumers * gemm.clusters;
  }
  __device__ __forceinline__ int first_box() const { return 0; }

  struct AtOnce {
    __device__ __forceinline__ void before(int) const {}
    __device__ __forceinline__ void issued(int) const {}
  };
  template <class Gemm>
  __device__ __forceinline__ AtOnce begin(const Gemm&, int) {
    mbarrier_wait(shared.order[consumer], parity);
    parity ^= 1;
    return {};
  }
  __device__ __forceinline__ void end_issue() {
    if (thread == 0) mbarrier_arrive(shared.order[1 - consumer]);
  }
  template <class Gemm, class Position>
  __device__ __forceinline__ void end(const Gemm& gemm, Position& at) {
    at.advance(gemm.k_tiles);  // the partner's
  }
};

}  // namespace tilewave
