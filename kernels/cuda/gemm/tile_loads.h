// What the first warpgroup does in blocks that stay: one thread loads tile after tile, a stage at a time, and where fp32 sums are to be
// added to D in L2, a warp beside it sees to it that D is there by then. That came from memory while everybody waited: 34 us instead of
// 31 for 4096 x 1024 outputs of 2,048 tokens. The loading thread itself has no time for it, and the stages come late.
#pragma once

#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/cuda/prim/wait.h"

namespace tilewave {

// Which tiles a cluster's block takes: the rank'th of `cluster`, one above the other, of every `step`th turn of the raster.
struct Turns {
  int rank = 0, first = 0, step = 1;
};
__device__ __forceinline__ Turns turns_of_block(const WarpgroupGemm& gemm) {
  return {.rank = static_cast<int>(cluster_rank()),
          .first = static_cast<int>(blockIdx.x) / gemm.cluster,
          .step = static_cast<int>(gridDim.x) / gemm.cluster};
}

// In shared memory: how many blocks of K have been asked for, of all tiles together.
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
__device__ __forceinline__ void load_tiles(typename C::SharedStorage& shared, const WarpgroupGemm& gemm, const Turns& turns) {
  RingPosition<C::kStages> at;
  int begun = 0;
  for (int index = turns.first; index < gemm.raster.tiles; index += turns.step) {
    const TileAt tile = gemm.raster(index);
    const int row = (tile.n * gemm.cluster + turns.rank) * static_cast<int>(C::kTile.n), col = tile.m * static_cast<int>(C::kTile.m);
    for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
      mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
      if (gemm.cluster == 1) {
        load_stage(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, row, col);
      } else {
        load_shared_stage(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, row, col, turns.rank);
      }
      shared.loads.set(++begun);
    }
  }
}

// A warp's: 32 rows of a tile of D at a time, between an eighth and three quarters of the tile's loads.
template <class C>
__device__ __forceinline__ void bring_tiles_of_d(const typename C::SharedStorage& shared, const WarpgroupGemm& gemm, const Turns& turns) {
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n), kRows = 32;
  const LikeD& d = gemm.epilogue.d;
  int before = 0;  // this tile's loads
  for (int index = turns.first; index < gemm.raster.tiles; index += turns.step, before += gemm.blocks_k) {
    const TileAt tile = gemm.raster(index);
    const int first_row = (tile.n * gemm.cluster + turns.rank) * kTileN, col = tile.m * kTileM;
    const int bytes = min(kTileM, d.mapped_cols - col) * static_cast<int>(sizeof(float)) / 16 * 16;
    for (int rows = 0; rows < kTileN; rows += kRows) {
      shared.loads.wait_for(before + gemm.blocks_k / 8 + gemm.blocks_k * 5 / 8 * rows / kTileN);
      const int row = first_row + rows + static_cast<int>(threadIdx.x % kRows);
      if (row < gemm.epilogue.rows && bytes > 0)
        bring_line_to_l2(d.data + (row * d.ld + col) * static_cast<std::int64_t>(sizeof(float)), bytes);
    }
  }
}

// The whole warpgroup's.
template <class C>
__device__ __forceinline__ void feed_tiles(typename C::SharedStorage& shared, const WarpgroupGemm& gemm, const Turns& turns) {
  const WarpgroupEpilogue& epilogue = gemm.epilogue;
  if (threadIdx.x == 0) {
    load_tiles<C>(shared, gemm, turns);
  } else if (threadIdx.x / 32 == 1 && epilogue.stores_sums && epilogue.accumulate) {  // in 16 bits D would be a side input
    bring_tiles_of_d<C>(shared, gemm, turns);
  }
}

}  // namespace tilewave
