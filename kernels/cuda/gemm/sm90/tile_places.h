// Which tile a block takes where one wave is enough. What the SMs of one GPC ask for at about the same time L2 is asked for once, so the
// tiles that have operands in common should run in one GPC. A block cannot choose its SM, but it can choose its tile: that of the SM it
// finds itself on. Where every SM has one block, as ever when the GPU is this launch's alone, that is all; where another kernel holds
// some of them, a block finds that its tile was taken by one that ran here before it, and takes any that is left.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cuda/core/sm_order.h"
#include "kernels/cuda/gemm/sm90/warpgroup_gemm.h"

namespace tilewave {

inline constexpr int kMaxSms = 144;  // of a GH100
inline constexpr int kMaxWords = (kMaxSms + 31) / 32, kFlags = kMaxWords + 1;

// A launch's: a tile for each SM, or none.
struct TileAssignment {
  int tiles = 0;              // their numbers are less, and this one stands for none
  unsigned* taken = nullptr;  // a bit a tile, and then how many blocks have made their choice: flags of the stream
  std::array<std::uint8_t, kMaxSms> of_sm{};

  __device__ __forceinline__ static unsigned bit_of(int tile) { return 1u << tile % 32; }
  // Asks for it: the bits of its word before, its own too where somebody came first.
  __device__ __forceinline__ unsigned take(int tile) const { return atomicOr(taken + tile / 32, bit_of(tile)); }
  // The tiles that nobody has taken, a bit each; read all at once.
  struct Left {
    unsigned words[kMaxWords];

    __device__ __forceinline__ bool any() const {
      unsigned some = 0;
#pragma unroll
      for (const unsigned word : words) some |= word;
      return some != 0;
    }
  };
  __device__ __forceinline__ Left left() const {
    Left result;
#pragma unroll
    for (int word = 0; word < kMaxWords; ++word) {
      const int here = min(max(tiles - 32 * word, 0), 32);
      const unsigned all = here == 32 ? ~0u : (1u << here) - 1;
      result.words[word] = all & ~*const_cast<const volatile unsigned*>(taken + word);
    }
    return result;
  }
  // One of those, if there is one.
  __device__ __forceinline__ int take_any(const Left& those) const {
#pragma unroll
    for (int word = 0; word < kMaxWords; ++word) {
      for (unsigned free = those.words[word]; free != 0; free &= free - 1) {
        const int tile = 32 * word + __ffs(static_cast<int>(free)) - 1;
        if ((take(tile) & bit_of(tile)) == 0) return tile;
      }
    }
    return tiles;
  }
  // For a block whose SM has no tile: those whose SMs have come first, be they a few microseconds late.
  __device__ __forceinline__ int take_any_left() const {
    constexpr std::int64_t kCycles = 10'000;
    const std::int64_t start = clock64();
    Left those = left();
    while (those.any() && clock64() - start < kCycles) those = left();
    return take_any(those);
  }
  // Once a block, after its choice: the last one clears the flags.
  __device__ __forceinline__ void release() const {
    __threadfence();
    if (atomicAdd(taken + kMaxWords, 1u) + 1 != gridDim.x) return;
#pragma unroll
    for (int word = 0; word < kFlags; ++word) taken[word] = 0;
  }
};

// What a kernel is given whose tiles have places.
struct AssignedGemm : WarpgroupGemm {
  TileAssignment assignment;
};
template <class Gemm>
concept HasAssignment = requires(const Gemm& gemm) {
  gemm.assignment;
};

// In shared memory: the block's tile, once it is known.
struct OwnTile {
  Mbarrier known;
  int tile;

  // The producer's warp, after the kernel before has ended, whose flags are the same. One lane asks for the first stages of a tile
  // with begin(tile), which come while the tile is asked for, and forgets them with undo().
  template <class Begin, class Undo>
  __device__ __forceinline__ int choose(const TileAssignment& assignment, Begin&& begin, Undo&& undo) {
    const int first = of_warp(assignment.of_sm[sm_number()]);
    if (elect_lane()) {
      int chosen = first;
      bool has_begun = false;
      if (first < assignment.tiles) {
        unsigned before = assignment.take(first);
        begin(first);
        asm volatile("" : "+r"(before));  // nobody looks at it before the loads are on their way
        has_begun = (before & TileAssignment::bit_of(first)) == 0;
        if (!has_begun) {
          undo();
          chosen = assignment.take_any(assignment.left());
        }
      } else {
        chosen = assignment.take_any_left();
      }
      if (!has_begun && chosen < assignment.tiles) begin(chosen);
      tile = chosen;
      mbarrier_arrive(known);
    }
    __syncwarp();
    return of_warp(tile);
  }
  // Anybody else: the tile, or places.tiles for none.
  __device__ __forceinline__ int wait() {
    mbarrier_wait(known, 0);
    return tile;
  }
};

// A block's: of its place, or as blocks are numbered.
template <class Gemm, class Shared>
__device__ __forceinline__ int own_tile_number(Shared& shared, const Gemm&) {
  if constexpr (HasAssignment<Gemm>) return of_warp(shared.own.wait());
  return static_cast<int>(blockIdx.x);
}
template <class Gemm>
__device__ __forceinline__ bool is_no_tile(const Gemm& gemm, int number) {
  if constexpr (HasAssignment<Gemm>) return number == gemm.assignment.tiles;
  return false;
}
// For a warp that knows the block's tile.
template <class Gemm>
__device__ __forceinline__ void release_assignment(const Gemm& gemm) {
  if constexpr (HasAssignment<Gemm>) {
    if (elect_lane()) gemm.assignment.release();
    __syncwarp();
  }
}

// What TMA has brought, or will have, to stages that nobody has read: once it is there, as if it had never been asked for.
template <std::size_t kStages>
__device__ __forceinline__ void forget_stages(Mbarrier (&full)[kStages], int stages) {
  for (int stage = 0; stage < stages; ++stage) {
    mbarrier_wait(full[stage], 0);
    mbarrier_invalidate(full[stage]);
    mbarrier_init(full[stage], 1);
  }
  mbarrier_init_fence();
}

// Where the plan's tiles go: two to a TPC, the TPCs without any evenly among the others.
inline TileAssignment assign_tiles(const CudaQueue& queue, const GemmPlan& plan) {
  const std::int64_t tiles = plan.tiling.tiles;
  TileAssignment assignment = {.tiles = static_cast<int>(tiles)};
  const std::vector<int>& sms = queue.stream->sms;
  const auto count = static_cast<std::int64_t>(sms.size());
  if (plan.raster.kind != RasterKind::patches || count < tiles || count > kMaxSms) return assignment;
  assignment.taken = flags_of(queue, kFlags);
  const std::vector<int> order = gpc_order(plan.tiling, plan.tile);
  const std::int64_t pairs = ceil_div(tiles, 2), tpcs = ceil_div(count, 2);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t pair = i / 2 * pairs / tpcs, next = (i / 2 + 1) * pairs / tpcs, at = 2 * pair + i % 2;
    const std::int64_t tile = next > pair && at < tiles ? order[static_cast<std::size_t>(at)] : tiles;
    assignment.of_sm[static_cast<std::size_t>(sms[static_cast<std::size_t>(i)])] = static_cast<std::uint8_t>(tile);
  }
  return assignment;
}

// What assign_tiles says, for a kernel: where `taken` is null tiles have no places, and gemm is what to launch.
inline AssignedGemm assigned_gemm(const CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan) {
  AssignedGemm assigned = {gemm, assign_tiles(queue, plan)};
  assigned.raster = Raster::of(gemm.tiles_m, gemm.tiles_n, gemm.tiles_m);  // as gpc_order numbers them
  return assigned;
}

inline std::int64_t blocks_of(const CudaQueue&, const WarpgroupGemm& gemm) { return std::int64_t{gemm.clusters} * gemm.cluster; }
inline std::int64_t blocks_of(const CudaQueue& queue, const AssignedGemm&) { return device_of(queue).sm_count; }

}  // namespace tilewave
