// What the first warpgroup of persistent_data_parallel and persistent_ping_pong does, and in part the producers of one_wave_swap_ab,
// one_wave_sliced_k and one_wave_paired_k: one thread loads tile after tile, a stage at a time, and where fp32 sums are to be added to D in
// L2, a warp beside it sees to it that D is there by then, which otherwise comes from memory while everybody waits. The loading thread
// itself has no time for it: its stages would come late.
#pragma once

#include "kernels/cuda/gemm/sm90/kernel.h"
#include "kernels/cuda/prim/wait.h"

namespace tilewave {

// In shared memory: how many k_tiles have been asked for, of all tiles together.
struct LoadsBegun {
  int blocks;

  __device__ __forceinline__ void set(int to) { *const_cast<volatile int*>(&blocks) = to; }
  __device__ __forceinline__ void wait_for(int least) const {
    const auto enough = [&] {
      if (*const_cast<const volatile int*>(&blocks) >= least) return true;
      __nanosleep(100);
      return false;
    };
    wait_until(enough, {.what = "the number of loads begun", .where = shared_address(this), .value = static_cast<unsigned>(least)});
  }
};

// One thread's. C is a kernel's configuration.
template <class C>
__device__ __forceinline__ void load_tiles(typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  const unsigned rank = cluster_rank();
  Loader<C> loader{shared};
  int begun = 0;
  for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
    const TileAt tile = own_tile(gemm, tile_index);
    loader(0, gemm.k_tiles, [&](int k_tile, auto& stage, Mbarrier& full) {
      load_stage_of_cluster(stage, gemm, full, k_tile * kBox, tile.n * C::kTileN, tile.m * C::kTileM, rank);
      shared.loads.set(++begun);
    });
  }
  shared.ring.wait_for_readers(gemm.cluster, loader.at);
}

// A warp's: 32 rows of D from `first` on, a tile's columns from `col` on.
template <int kTileM>
__device__ __forceinline__ void prefetch_d_rows(const WarpgroupGemm& gemm, int first, int col) {
  const LikeD& d = gemm.epilogue.d;
  const int bytes = min(kTileM, d.mapped_cols - col) * static_cast<int>(sizeof(float)) / 16 * 16;
  const int row = first + static_cast<int>(threadIdx.x % 32);
  if (row < gemm.epilogue.rows && bytes > 0) tma_prefetch_1d(d.data + (row * d.ld + col) * static_cast<std::int64_t>(sizeof(float)), bytes);
}

// Likewise all rows of a tile, 32 at a time, between an eighth and three quarters of its loads, so many, which `before` others come before,
// or late among many: what comes much earlier has left L2 again by the time it is added to, and is read from memory twice.
template <int kTileM, int kTileN>
__device__ __forceinline__ void prefetch_d_tile(const LoadsBegun& loads, const WarpgroupGemm& gemm, int row, int col, int before,
                                                int blocks) {
  constexpr int kMaxAfterFirst = 44, kMaxAfterLast = 12;  // loads
  const int first = max(blocks / 8, blocks - kMaxAfterFirst), last = max(blocks * 3 / 4, blocks - kMaxAfterLast);
  for (int rows = 0; rows < kTileN; rows += 32) {
    loads.wait_for(before + first + (last - first) * rows / kTileN);
    prefetch_d_rows<kTileM>(gemm, row + rows, col);
  }
}

// The same of every tile that the block takes.
template <class C>
__device__ __forceinline__ void prefetch_d_tiles(const typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  int before = 0;  // this tile's loads
  for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters, before += gemm.k_tiles) {
    const TileAt tile = own_tile(gemm, tile_index);
    prefetch_d_tile<C::kTileM, C::kTileN>(shared.loads, gemm, tile.n * C::kTileN, tile.m * C::kTileM, before, gemm.k_tiles);
  }
}

// The whole warpgroup's.
template <class C>
__device__ __forceinline__ void feed_tiles(typename C::SharedStorage& shared, const WarpgroupGemm& gemm) {
  const WarpgroupEpilogue& epilogue = gemm.epilogue;
  const int warp = warp_rank();
  if (warp == 0) {
    if (elect_lane()) load_tiles<C>(shared, gemm);
  } else if (warp == 1 && epilogue.stores_accumulators && epilogue.accumulate) {  // in 16 bits D would be a side input
    wait_for_previous_kernel();
    prefetch_d_tiles<C>(shared, gemm);
  }
}

}  // namespace tilewave
