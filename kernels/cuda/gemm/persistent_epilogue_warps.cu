// Adds to persistent_cooperative: warps of their own for an epilogue. The consumers hand a tile's sums over in 16 bits, in shared memory,
// and begin the next tile; under its products the other warps multiply them by a derivative, a strip of 16 rows by 64 columns at a time,
// 16 bytes a thread straight from and to memory, and ask for what the derivative reads a strip ahead. The sums of a block's last tile
// are finished by the consumers, which have nothing else to do by then. So a product is rounded to 16 bits before the derivative
// multiplies it, as where that is a launch of its own.
#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/gemm/rows/persistent_epilogue_warps.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = epilogue_warps_stages(kTile), kConsumers = 2, kOthers = epilogue_warps_others(kTile);
  static constexpr int kThreads = (kConsumers + kOthers) * kWarpgroup, kEpilogueWarps = 4 * kOthers - 1;  // beside the producer's
  static constexpr int kConsumerRegisters = kOthers == 1 ? 200 : 160, kOtherRegisters = kOthers == 1 ? 104 : 96;

  static constexpr int kBlocks = kN / kBox / kConsumers;                                                    // of 64 rows, each consumer's
  static constexpr int kWarps = 4 * kConsumers, kAcross = kM / kShareColumns, kStrips = kBlocks * kAcross;  // of each of their warps

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte sums[kWarps][kStrips][kStripBytes];  // a consumer's warp's
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
    Mbarrier handed[kWarps], taken[kWarps];
  };
  static_assert(sizeof(SharedStorage) == persistent_epilogue_warps_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kConsumers * kBlocks * kBox == kN, "consumers share the rows of a tile");

  // Where a strip of a consumer's warp lies in the tile.
  __device__ static int row_of(int warp, int strip) { return (warp / 4 * kBlocks + strip / kAcross) * kBox + warp % 4 * kStripRows; }
  __device__ static int col_of(int strip) { return strip % kAcross * kShareColumns; }
};

// A thread's 16 bytes of every fourth row of a strip.
struct Lines {
  static constexpr int kApart = 4, kCount = kStripRows / kApart;
  uint4 words[kCount];

  // fn(line, where it lies in m) for each inside D, of the strip from row and column on.
  template <class Fn>
  __device__ __forceinline__ static void each_inside(const WarpgroupEpilogue& e, const LikeD& m, int row, int col, Fn&& fn) {
    const int lane = static_cast<int>(threadIdx.x % 32), own_row = row + lane / 8, own_col = col + lane % 8 * 8;
    std::byte* const first = m.data + 2 * (own_row * m.ld + own_col);
    const int rows = own_col < e.cols ? e.rows - own_row : 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (kApart * i < rows) fn(i, reinterpret_cast<uint4*>(first + i * (2 * kApart * m.ld)));
    }
  }
  __device__ __forceinline__ void ask(const WarpgroupEpilogue& e, int row, int col) {
    each_inside(e, e.derivative_of, row, col, [&](int i, const uint4* at) { words[i] = __ldcs(at); });
  }
  __device__ __forceinline__ void read(const std::byte* strip) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row = lane / 8 + kApart * i;
      words[i] = *reinterpret_cast<const uint4*>(strip + row * 128 + (lane % 8 ^ row % 8) * 16);
    }
  }
  __device__ __forceinline__ void store(const WarpgroupEpilogue& e, int row, int col) const {
    each_inside(e, e.d, row, col, [&](int i, uint4* at) { *at = words[i]; });
  }
};

// Two packed sums by the derivatives of two packed inputs.
template <class T, Activation kActivation>
__device__ __forceinline__ unsigned times_derivatives(unsigned sums, unsigned inputs) {
  const float2 z = unpack<T>(sums);
  if constexpr (std::is_same_v<T, bf16> && kActivation == Activation::gelu_tanh) {
    const float2 both = unpack<T>(within_16(inputs));
    float x[] = {both.x, both.y};
    gelu_tanh_derivative_to_8_bits(x);
    return pack<T>(z.x * x[0], z.y * x[1]);
  } else {
    const float2 x = unpack<T>(inputs);
    return pack<T>(z.x * activation_derivative_to<T>(kActivation, x.x), z.y * activation_derivative_to<T>(kActivation, x.y));
  }
}
template <class T, Activation kActivation>
__device__ __forceinline__ void multiply_by_derivatives(Lines& sums, const Lines& inputs) {
#pragma unroll
  for (int i = 0; i < Lines::kCount; ++i) {
    uint4& w = sums.words[i];
    const uint4& x = inputs.words[i];
    w = {times_derivatives<T, kActivation>(w.x, x.x), times_derivatives<T, kActivation>(w.y, x.y),
         times_derivatives<T, kActivation>(w.z, x.z), times_derivatives<T, kActivation>(w.w, x.w)};
  }
}

// The strips of a block's tiles but the last one's, tile after tile, one consumer's warp after another's: every kEpilogueWarps'th.
template <class C>
struct StripWalk {
  const WarpgroupGemm& gemm;
  int index = static_cast<int>(blockIdx.x);  // of the tile
  int strip;                                 // of all of its
  int tile_row = 0, tile_col = 0;
  unsigned parity = 0;  // changes from tile to tile

  __device__ __forceinline__ StripWalk(const WarpgroupGemm& of, int first) : gemm(of), strip(first) { aim(); }
  __device__ __forceinline__ bool live() const { return index + static_cast<int>(gridDim.x) < gemm.raster.tiles; }
  __device__ __forceinline__ int warp() const { return strip / C::kStrips; }
  __device__ __forceinline__ int row() const { return tile_row + C::row_of(warp(), strip % C::kStrips); }
  __device__ __forceinline__ int col() const { return tile_col + C::col_of(strip % C::kStrips); }
  __device__ __forceinline__ void advance() {
    strip += C::kEpilogueWarps;
    if (strip < C::kWarps * C::kStrips) return;
    strip -= C::kWarps * C::kStrips;
    index += static_cast<int>(gridDim.x);
    parity ^= 1;
    aim();
  }

 private:
  __device__ __forceinline__ void aim() {
    const TileAt tile = gemm.raster(index);
    tile_row = tile.n * static_cast<int>(C::kTile.n);
    tile_col = tile.m * static_cast<int>(C::kTile.m);
  }
};

// One of the epilogue's warps, the first'th.
template <class C, class T, Activation kActivation>
__device__ __forceinline__ void finish_tiles(typename C::SharedStorage& shared, const WarpgroupGemm& gemm, int first) {
  const WarpgroupEpilogue& e = gemm.epilogue;
  StripWalk<C> at(gemm, first);
  Lines next;
  if (at.live()) next.ask(e, at.row(), at.col());
#pragma unroll 1
  while (at.live()) {
    const int warp = at.warp(), row = at.row(), col = at.col();
    mbarrier_wait(shared.handed[warp], at.parity);
    Lines sums;
    sums.read(shared.sums[warp][at.strip % C::kStrips]);
    const Lines inputs = next;
    at.advance();
    if (at.live()) next.ask(e, at.row(), at.col());
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(shared.taken[warp]);
    multiply_by_derivatives<T, kActivation>(sums, inputs);
    sums.store(e, row, col);
  }
}
// A consumer's warp: its own strips of the block's last tile.
template <class C, class T, Activation kActivation>
__device__ __forceinline__ void finish_last(const std::byte (&strips)[C::kStrips][kStripBytes], const WarpgroupEpilogue& e, int warp,
                                            int tile_row, int tile_col) {
  Lines inputs, sums;
  const auto ask = [&](int strip) { inputs.ask(e, tile_row + C::row_of(warp, strip), tile_col + C::col_of(strip)); };
  ask(0);
#pragma unroll 1
  for (int strip = 0; strip < C::kStrips; ++strip) {
    sums.read(strips[strip]);
    multiply_by_derivatives<T, kActivation>(sums, inputs);
    if (strip + 1 < C::kStrips) ask(strip + 1);
    sums.store(e, tile_row + C::row_of(warp, strip), tile_col + C::col_of(strip));
  }
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_epilogue_warps(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<typename C::SharedStorage>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);
  using T = typename P::T;
  const WarpgroupEpilogue& e = gemm.epilogue;

  // Prologue.
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    prefetch_map(gemm.rows);
    prefetch_map(gemm.cols);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, C::kConsumers);
    mbarrier_init(shared.handed, 1);
    mbarrier_init(shared.taken, C::kStrips);
    mbarrier_init_fence();
  }
  __syncthreads();
  wait_for_previous_kernel();

  const int role = warpgroup_rank(), lane = static_cast<int>(threadIdx.x % 32);
  if (role == 0 || role > C::kConsumers) {
    give_up_registers<C::kOtherRegisters>();
    if (elect_lane_of(0)) {  // The producer.
      RingPosition<C::kStages> at;
      for (int index = first; index < gemm.raster.tiles; index += step) {
        const TileAt tile = gemm.raster(index);
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          load_stage(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, tile.n * kTileN, tile.m * kTileM);
        }
      }
    }
    if (threadIdx.x >= 32) {  // The epilogue.
      const int warp = static_cast<int>(threadIdx.x) / 32, own = (role == 0 ? warp : warp - C::kWarps) - 1;
      with_activation(e.derivative, [&]<Activation kActivation>() { finish_tiles<C, T, kActivation>(shared, gemm, own); });
    }
  } else {  // A consumer.
    take_registers<C::kConsumerRegisters>();
    const int consumer = role - 1, own = static_cast<int>(threadIdx.x) / 32 - 4;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    RingPosition<C::kStages> at;
    unsigned free = 1;  // parity of the phase in which what was handed over last is taken
    for (int index = first; index < gemm.raster.tiles; index += step) {
      // Main loop.
      float sums[C::kBlocks][kTileM / 2];  // [64, tile m] of each
      int previous = 0;
      for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
        mbarrier_wait(shared.full[at.stage], at.parity);
        multiply(P{}, shared.stages[at.stage], consumer * C::kBlocks, block > 0, sums);
        wgmma_wait<1>();
        if (leads && block > 0) mbarrier_arrive(shared.empty[previous]);
        previous = at.stage;
      }
      wgmma_wait<0>();
      if (leads) mbarrier_arrive(shared.empty[previous]);

      // Hands its sums over.
      mbarrier_wait(shared.taken[own], free);
      free ^= 1;
#pragma unroll
      for (int strip = 0; strip < C::kStrips; ++strip) {
        const float* const z = sums[strip / C::kAcross] + strip % C::kAcross * kShare;
#pragma unroll
        for (int g = 0; g < 8; g += 2) {
          store_matrices(shared.sums[own][strip] + lane % 16 * 128 + ((g + lane / 16) ^ lane % 8) * 16, pack<T>(z[4 * g], z[4 * g + 1]),
                         pack<T>(z[4 * g + 2], z[4 * g + 3]), pack<T>(z[4 * g + 4], z[4 * g + 5]), pack<T>(z[4 * g + 6], z[4 * g + 7]));
        }
      }
      __syncwarp();
      if (lane == 0) mbarrier_arrive(shared.handed[own]);
    }

    // Epilogue of the last.
    const TileAt last = gemm.raster(first + (gemm.raster.tiles - 1 - first) / step * step);
    with_activation(e.derivative, [&]<Activation kActivation>() {
      finish_last<C, T, kActivation>(shared.sums[own], e, own, last.n * kTileN, last.m * kTileM);
    });
  }
}

template <class T>
void launch_tiles(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan) {
  const auto launch = [&]<int kM, int kN>() {
    if (plan.tile != Tile{kM, kN}) return;
    using C = Config<kM, kN>;
    launch_clusters(queue, "persistent_epilogue_warps", persistent_epilogue_warps<C, Product<T, Fastest::k, Fastest::other, false>>, gemm,
                    plan.blocks, C::kThreads, sizeof(typename C::SharedStorage));
  };
  launch.template operator()<256, 128>();
  launch.template operator()<128, 256>();
  launch.template operator()<128, 128>();
}

}  // namespace

void launch_persistent_epilogue_warps(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const WarpgroupGemm gemm = warpgroup_gemm(args, plan);
  if (gemm.operand_dtype == DType::bf16) {
    launch_tiles<bf16>(queue, gemm, plan);
  } else {
    launch_tiles<f16>(queue, gemm, plan);
  }
}

}  // namespace tilewave
