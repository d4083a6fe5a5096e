// The barriers of a ring of stages, between who loads and who multiplies: a stage is full when its bytes have come, and empty when all
// that read it have said so. A RingPosition says which round of the ring is meant.
#pragma once

#include "kernels/cuda/prim/mbarrier.h"
#include "kernels/cuda/prim/wgmma.h"

namespace tilewave {

struct NoStep {
  __device__ __forceinline__ void operator()(int) const {}
};

template <int kStages>
struct Ring {
  using Position = RingPosition<kStages>;

  Mbarrier full[kStages];
  Mbarrier empty[kStages];

  // By one thread, before mbarrier_init_fence. So many arrive when a stage is read.
  __device__ __forceinline__ void init(unsigned readers) {
    mbarrier_init(full, 1);
    mbarrier_init(empty, readers);
  }

  // Who loads waits until what the stage held in the round before has been read, and lets its bytes arrive at full[stage].
  __device__ __forceinline__ void wait_empty(const Position& at) { mbarrier_wait(empty[at.stage], at.parity ^ 1); }
  __device__ __forceinline__ void wait_full(const Position& at) { mbarrier_wait(full[at.stage], at.parity); }

  // By each reader, in one thread, or in the one of several that leads.
  __device__ __forceinline__ void release(int stage) { mbarrier_arrive(empty[stage]); }
  __device__ __forceinline__ void release_by(bool leads, int stage) {
    if (leads) release(stage);
  }
  // To every block of a cluster that writes into this one: by as many threads of each reader.
  __device__ __forceinline__ void release_to_cluster(int stage, int cluster, int thread) {
    if (thread < cluster) mbarrier_arrive_at(empty[stage], thread);
  }

  // The loop of the thread that loads, over k_tiles from `begin` to `end`: load(k_tile), once the stage is empty.
  template <class Load>
  __device__ __forceinline__ void load_k_tiles(Position& at, int begin, int end, Load&& load) {
    for (int k_tile = begin; k_tile < end; ++k_tile, at.advance()) {
      wait_empty(at);
      load(k_tile);
    }
  }

  // The main loop of who multiplies, over k_tiles from `begin` to `end`: before(k_tile), then, once the stage is full, issue(k_tile), which
  // starts its products; the stage before is released when its own are through, and after(k_tile) comes behind that. Returns the last
  // stage, whose products may still run: the caller waits for them and releases it.
  template <class Issue, class Release, class Before = NoStep, class After = NoStep>
  __device__ __forceinline__ int multiply_k_tiles(Position& at, int begin, int end, Issue&& issue, Release&& release, Before&& before = {},
                                                  After&& after = {}) {
    int previous = 0;
    for (int k_tile = begin; k_tile < end; ++k_tile, at.advance()) {
      before(k_tile);
      wait_full(at);
      issue(k_tile);
      wgmma_wait<1>();
      if (k_tile > begin) release(previous);
      previous = at.stage;
      after(k_tile);
    }
    return previous;
  }

  // What the thread that loads waits for at last in a pair: until both blocks have multiplied all that it loaded, and released it. Then
  // nobody loads into its block any more or arrives at its barriers, and it may leave. Other threads need not meet for that: a barrier of
  // the cluster behind their stores would wait until these are through to L2.
  __device__ __forceinline__ void wait_for_readers(int cluster, Position at) {
    if (cluster == 1) return;
    for (int stage = 0; stage < kStages; ++stage, at.advance()) wait_empty(at);
  }
};

}  // namespace tilewave
