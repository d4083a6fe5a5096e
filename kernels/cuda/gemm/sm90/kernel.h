// The skeleton of a kernel with wgmma, written once: its shared memory, its prologue, and the two parts that its warpgroups take. The first
// warpgroup is the producer, which keeps a ring of stages full and gives up registers; the others are consumers, which take these for their
// accumulators. A kernel says what work there is (schedule.h), how a stage is loaded, and what becomes of the accumulators (an epilogue).
#pragma once

#include "kernels/cuda/gemm/sm90/warpgroup_gemm.h"

namespace tilewave {

// A kernel's configuration begins with this one: its tile, how many warpgroups there are, and each one's registers of the SM's 65,536, in
// eights (setmaxnreg).
template <int kM, int kN, int kConsumerCount = 2, int kProducer = kConsumerCount == 2 ? 40 : 32,
          int kConsumer = kConsumerCount == 2 ? 232 : 160>
struct Cta {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kTileM = kM, kTileN = kN, kSubtiles = kM / kSubtileColumns;  // a warp's, of 16 rows
  static constexpr int kConsumers = kConsumerCount, kWarps = 4 * kConsumers, kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = kProducer, kConsumerRegisters = kConsumer;
  static_assert((kProducerRegisters + kConsumers * kConsumerRegisters) * kWarpgroup <= 65536);
};

// What C::SharedStorage describes.
template <class C>
__device__ __forceinline__ typename C::SharedStorage& shared_storage() {
  extern __shared__ __align__(1024) std::byte storage[];
  return storage_in<typename C::SharedStorage>(storage);
}

// What a prologue does.
enum class Meeting : std::uint8_t { cta, cluster, pair };  // who is there before work begins; a pair, if the launch has any
struct Prologue {
  int readers = 1;            // of a stage, in a CTA: so many release it
  bool shares_loads = false;  // each producer of a cluster writes into all its CTAs, whose readers release to all producers
  bool prefetches_maps = true;
  bool fills_ones = false;
  bool prefetches_k_tiles = true;  // of the first tiles, into L2
  Meeting meets = Meeting::cta;
};

struct NoMoreBarriers {
  __device__ __forceinline__ void operator()() const {}
};

// By all threads of a CTA; init() sets up what barriers a kernel has beside the ring's.
template <class C, Prologue kPrologue, class Gemm, class Init = NoMoreBarriers>
__device__ __forceinline__ void run_prologue(typename C::SharedStorage& shared, const Gemm& gemm, Init&& init = {}) {
  if (threadIdx.x == 0) {
    if constexpr (requires { shared.loads; }) shared.loads.set(0);
    if constexpr (kPrologue.prefetches_maps) gemm.prefetch_maps();
    shared.ring.init(kPrologue.shares_loads ? kPrologue.readers * gemm.cluster : kPrologue.readers);
    init();
    mbarrier_init_fence();
  }
  if constexpr (kPrologue.fills_ones) shared.ones.fill(gemm.operand_dtype);
  if constexpr (kPrologue.prefetches_k_tiles) prefetch_first_k_tiles<C::kThreads>(gemm);
  __syncthreads();
  if constexpr (kPrologue.meets == Meeting::cluster) cluster_sync_relaxed();
  if constexpr (kPrologue.meets == Meeting::pair) {
    if (gemm.cluster > 1) cluster_sync_relaxed();
  }
}

// A consumer's thread: which warpgroup's, its number there, and its warp among the consumers'.
struct ConsumerThread {
  int consumer, thread, warp, lane;

  __device__ __forceinline__ ConsumerThread()
      : consumer(warpgroup_rank() - 1),
        thread(static_cast<int>(threadIdx.x) % kWarpgroup),
        warp(consumer * 4 + thread / 32),
        lane(static_cast<int>(threadIdx.x % 32)) {}
};

// Each thread's part: whether it is the producer's. A consumer goes on when the kernel before has ended; what loads waits for that by
// itself.
template <class C>
__device__ __forceinline__ bool becomes_producer() {
  if (threadIdx.x < kWarpgroup) {
    reg_dealloc<C::kProducerRegisters>();
    return true;
  }
  reg_alloc<C::kConsumerRegisters>();
  wait_for_previous_kernel();
  return false;
}

// What loads of each k_tile, as soon as its stage is empty, in one thread: load(k_tile, stage, full) asks TMA for it.
template <class C>
struct Loader {
  typename C::SharedStorage& shared;
  RingPosition<C::kStages> at{};
  WaitOnce wait_for_operands{};

  template <class Load>
  __device__ __forceinline__ void operator()(int begin, int end, Load&& load) {
    shared.ring.load_k_tiles(at, begin, end, [&](int k_tile) {
      wait_for_operands();
      load(k_tile, shared.stages[at.stage], shared.ring.full[at.stage]);
    });
  }
  // The same of the tile that begins there.
  __device__ __forceinline__ void load_tile(const WarpgroupGemm& gemm, int begin, int end, int row, int col) {
    (*this)(begin, end, [&](int k_tile, auto& stage, Mbarrier& full) { load_stage(stage, gemm, full, k_tile * kBox, row, col); });
  }
};

// Launches kernel<C, ...> as C says.
template <class C, class Kernel, class Gemm>
void launch_kernel(CudaQueue& queue, const char* name, Kernel* kernel, const Gemm& gemm, std::int64_t ctas,
                   CtasRun how = CtasRun::in_clusters) {
  launch_clusters(queue, name, kernel, gemm, ctas, C::kThreads, sizeof(typename C::SharedStorage), how);
}

}  // namespace tilewave
