// Adds to persistent_cooperative: no block waits for another's last tile. While all blocks have a whole tile they take whole ones; the
// K of the tiles that are left is cut into one equal share a block, and a share's end goes on in the next block. A tile's parts are
// added up in the order of K, so the result depends on no timing: fp32 sums that go out as they are straight into D, others in the
// workspace, where the last part finds them. Whole tiles come first, while the blocks are in step. Which parts of which tiles a block
// has is kernels/gemm/rows/stream_k_parts.h's; a wait goes to a block of a lower number only.
#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/cuda/prim/flag.h"
#include "kernels/gemm/rows/stream_k.h"
#include "kernels/gemm/rows/stream_k_parts.h"

namespace tilewave {
namespace {

template <int kM, int kN>
struct Config {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = stream_k_stages(kTile), kStrips = kStreamKStrips, kConsumers = kStreamKConsumers;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    std::byte strips[kStreamKWarps][kStrips * kStripBytes];  // a warp's own
    Ones ones;
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
  };
  static_assert(sizeof(SharedStorage) == stream_k_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kN == kConsumers * kBox, "a consumer takes 64 rows");
};

struct StreamKGemm : WarpgroupGemm {
  StreamKWork work;
  unsigned* done = nullptr;   // [shared tiles][warps]: blocks of K added up, until the last part has seen it
  float4* sums = nullptr;     // [shared tiles][warps][tile m / 8][lanes]: a tile's, as its threads hold them
  float* row_sums = nullptr;  // [shared tiles][tile n]
};

// A part's sums that are on their way to where the next part's block finds them. It is told under the next products, when they will
// have arrived, and before this block waits for others.
struct LeftToOthers {
  unsigned* flag = nullptr;
  unsigned end = 0;

  __device__ __forceinline__ void tell() {
    if (flag != nullptr) set_flag(flag, end);
    flag = nullptr;
  }
};

template <class C, bool kSums, class P>
__global__ void __launch_bounds__(C::kThreads, 1) stream_k(const __grid_constant__ StreamKGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<typename C::SharedStorage>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);
  const WarpgroupEpilogue& epilogue = gemm.epilogue;

  // Prologue.
  if (threadIdx.x == 0) {
    prefetch_map(gemm.rows);
    prefetch_map(gemm.cols);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, C::kConsumers);
    mbarrier_init_fence();
  }
  if constexpr (kSums) shared.ones.fill(gemm.operand_dtype);
  StreamKParts parts(gemm.work, static_cast<int>(blockIdx.x));  // a dozen divisions
  __syncthreads();

  StreamKPart part;
  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    if (elect_lane_of(0)) {
      WaitOnce wait_for_operands;
      while (parts.next(part)) {
        const TileAt tile = gemm.raster(part.tile);
        int block = part.start;
        for (int blocks = part.end - part.begin; blocks > 0; --blocks, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          wait_for_operands();
          load_stage(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, tile.n * kTileN, tile.m * kTileM);
          block = part.after(block);
        }
      }
    }
  } else {  // A consumer.
    take_registers<C::kConsumerRegisters>();
    wait_for_previous_kernel();
    const int warp = static_cast<int>(threadIdx.x) / 32 - 4, lane = static_cast<int>(threadIdx.x) % 32, consumer = warpgroup_rank() - 1;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    WarpStrips<C::kStrips> strips = {.first = shared.strips[warp], .arrived = nullptr, .lane = lane};

    // Of the warp's 16 rows from `row` on, 64 columns at a time: their code stands once, since a register has no index.
    const auto finish_part = [&](const float(&sums)[kTileM / 2], float4* so_far, int row, int col, bool first, bool last) {
      const bool by_engine = epilogue.through_strips && !epilogue.has_side && epilogue.d.mapped_cols == epilogue.cols;
      const bool in_d = by_engine && epilogue.d.dtype == DType::f32;  // where D itself keeps what the parts come to
      for (int share = 0; share < kTileM / kShareColumns; ++share, so_far += kShare / 4 * 32) {
        const int share_col = col + share * kShareColumns;
        if (row >= epilogue.rows || share_col >= epilogue.cols) continue;
        float z[kShare];
#pragma unroll
        for (int of = 0; of < kTileM / kShareColumns; ++of) {
          if (of == share) {
            asm volatile("");  // a branch, not a selection of every candidate
#pragma unroll
            for (int i = 0; i < kShare; ++i) z[i] = sums[of * kShare + i];
          }
        }
        if (in_d) {
          strips.put(epilogue.d_map, {.row = row, .col = share_col}, z, epilogue.accumulate || !first);
          continue;
        }
#pragma unroll
        for (int i = 0; i < kShare && !first; i += 4) {
          const float4 before = so_far[i * 8];
          z[i] += before.x;
          z[i + 1] += before.y;
          z[i + 2] += before.z;
          z[i + 3] += before.w;
        }
        if (!last) {
#pragma unroll
          for (int i = 0; i < kShare; i += 4) so_far[i * 8] = {z[i], z[i + 1], z[i + 2], z[i + 3]};
        } else if (by_engine) {
          strips.template put<typename P::T>(strips.next(), epilogue.d_map, {.row = row, .col = share_col}, z);
        } else {
          finish_elements(epilogue, strips.first, {.row = row, .col = share_col}, z);
        }
      }
    };
    LeftToOthers left;
    while (parts.next(part)) {
      const TileAt tile = gemm.raster(part.tile);
      const int row = tile.n * kTileN + consumer * kBox, col = tile.m * kTileM;
      const bool first = part.begin == 0, last = part.end == gemm.blocks_k;
      unsigned* const done = gemm.done + part.shared * kStreamKWarps + warp;

      const auto run_part = [&](auto product) {
        // Main loop.
        float sums[1][kTileM / 2];  // [64, tile m]
        float row_sums[1][4];       // [64, 8]
        int previous = 0;
        for (int block = part.begin; block < part.end; ++block, at.advance()) {
          mbarrier_wait(shared.full[at.stage], at.parity);
          multiply(product, shared.stages[at.stage], shared.ones, consumer, block > part.begin, sums, row_sums);
          wgmma_wait<1>();
          if (leads && block > part.begin) mbarrier_arrive(shared.empty[previous]);
          previous = at.stage;
          if (block == part.begin + 2) left.tell();
        }
        wgmma_wait<0>();
        if (leads) mbarrier_arrive(shared.empty[previous]);
        left.tell();

        // Epilogue: what the parts before came to is added, and the result stored or left to the parts after.
        if (!first) wait_for_flag(done, static_cast<unsigned>(part.begin));
        if (!first && last) clear_flag(done);
        if constexpr (product.kSumsRows) {
          float* const so_far = gemm.row_sums + part.shared * kTileN + consumer * kBox;
          for_each_row_sum(row_sums[0], [&](int own, float sum) {
            if (!first) sum += so_far[own];
            if (last) {
              store_bias_gradient(epilogue, row + own, sum);
            } else {
              so_far[own] = sum;
            }
          });
        }
        float4* const so_far = gemm.sums + (static_cast<std::int64_t>(part.shared) * kStreamKWarps + warp) * (kTileM / 8) * 32 + lane;
        finish_part(sums[0], so_far, row + warp % 4 * kStripRows, col, first, last);
        if (!last) left = {.flag = done, .end = static_cast<unsigned>(part.end)};
      };
      if (kSums && tile.m == 0) {
        run_part(Product<typename P::T, P::kRows, P::kCols, kSums>{});
      } else {
        run_part(P{});
      }
    }
    left.tell();
    wait_boxes_read<0>();
  }
}

}  // namespace

void launch_stream_k(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const std::int64_t shared = shared_tiles(plan.tiling.tiles, plan.blocks);
  StreamKGemm gemm = {warpgroup_gemm(args, plan)};
  // Rows are summed in the first column. Where that begins every row of the raster, shares of equal time repeat after some tiles.
  const bool one_band = gemm.raster.band == gemm.tiles_m;
  gemm.work = {.tiles = gemm.raster.tiles,
               .shared_tiles = static_cast<int>(shared),
               .blocks_k = gemm.blocks_k,
               .blocks = static_cast<int>(plan.blocks),
               .band = gemm.raster.band,
               .summing_time = args.bias_gradient && one_band ? kStreamKSummingTime : kStreamKTime};
  gemm.done = flags_of(queue, shared * kStreamKWarps);
  gemm.sums = static_cast<float4*>(args.workspace);
  gemm.row_sums = reinterpret_cast<float*>(gemm.sums + shared * plan.tile.m * plan.tile.n / 4);
  const auto launch = [&]<int kM, int kN>() {
    if (plan.tile != Tile{kM, kN}) return;
    using C = Config<kM, kN>;
    with_product_of(gemm, [&]<class P>(P) {
      launch_clusters(queue, "stream_k", args.bias_gradient ? stream_k<C, true, P> : stream_k<C, false, P>, gemm, plan.blocks, C::kThreads,
                      sizeof(typename C::SharedStorage));
    });
  };
  launch.template operator()<256, 128>();
}

}  // namespace tilewave
