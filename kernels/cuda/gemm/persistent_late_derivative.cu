// Adds to persistent_late_store what multiplies D elementwise: ReLU's derivative. Its input's part of a tile comes by the copy engine with
// the stages of the next one, as much with each as leaves under its products, so that finishing a part waits for no memory. The last
// tile's comes into the ring once that is empty. What is multiplied are the sums in 16 bits, by 0 or 1, so that nothing is rounded twice.
#include <algorithm>

#include "kernels/cuda/gemm/packed_sums.h"
#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/gemm/rows/persistent_late_derivative.h"
#include "kernels/gemm/with_tile.h"

namespace tilewave {
namespace {

constexpr int kPartColumns = 32, kPartRows = 8;  // of each warp's 16

template <int kM, int kN>
struct LateDerivativeConfig {
  static constexpr Tile kTile = {kM, kN};
  static constexpr int kStages = late_derivative_stages(kTile), kConsumers = kN / kBox, kWarps = 4 * kConsumers;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  static constexpr int kParts = late_derivative_parts(kTile);

  // A part of the derivative's input, [warps, 8 rows, 32 columns].
  struct Part {
    alignas(128) std::byte of_warp[kWarps][kPartRows * kPartColumns * 2];
  };
  static_assert(sizeof(Part) == late_derivative_part_bytes(kTile));

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    Part parts[kStages][kPartsOfStage];
    alignas(1024) Mbarrier full[kStages];
    Mbarrier empty[kStages];
  };
  static_assert(sizeof(SharedStorage) == persistent_late_derivative_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(sizeof(Part) * kParts <= sizeof(OperandStage<kN, kM>) * kStages, "the last tile's input has room in the ring");
};

struct LateDerivativeGemm : WarpgroupGemm {
  // The derivative's input, in boxes of a warp's part, and up to the last whole 16 rows in boxes of all warps'.
  CUtensorMap of_warp, of_warps;
};

// How many parts of a tile have left once `blocks` of `of` stages of the next one have been issued.
__device__ __forceinline__ int parts_left(int parts, int blocks, int of) { return (parts * blocks + of - 1) / of; }

// Asks for part `index` of the tile whose first row and column these are. The engine takes about as long for a small box as for a large
// one.
template <class Part>
__device__ __forceinline__ void load_part(Part& part, const LateDerivativeGemm& gemm, Mbarrier& full, int index, int row, int col) {
  constexpr int kWarps = sizeof(part.of_warp) / sizeof(part.of_warp[0]);
  const int x = col + index / 2 * kPartColumns, y = index % 2 * kPartRows, rows = gemm.epilogue.rows;
  if (rows % kStripRows == 0 || row + kWarps * kStripRows <= rows) {
    load_box_of_eights(part.of_warp[0], gemm.of_warps, full, x, y, row / kStripRows);
  } else {
    for (int warp = 0; warp < kWarps; ++warp) load_box(part.of_warp[warp], gemm.of_warp, full, x, row + warp * kStripRows + y);
  }
}

// Two packed sums by ReLU's derivatives of two packed inputs, which are 0 or 1.
template <class T>
__device__ __forceinline__ unsigned times_relu_derivatives(unsigned sums, unsigned x) {
  using Pair = std::conditional_t<std::is_same_v<T, bf16>, __nv_bfloat162, __half2>;
  const unsigned zeros = 0;
  const Pair derivatives = __hgt2(reinterpret_cast<const Pair&>(x), reinterpret_cast<const Pair&>(zeros));
  const Pair products = __hmul2(reinterpret_cast<const Pair&>(sums), derivatives);
  return reinterpret_cast<const unsigned&>(products);
}

// A consumer's packed sums of one tile, and where they go.
template <class C, class T>
struct LateProducts : PackedWords<static_cast<int>(C::kTile.m), kPartRows> {
  const WarpgroupEpilogue& e;
  int rows = 0, cols = 0;  // of D from this thread's first on, once a quad has transposed
  std::byte* to = nullptr;
  std::int64_t down;  // from there to 8 rows below, in bytes
  int at_part;        // of this thread, in bytes

  __device__ __forceinline__ LateProducts(const WarpgroupEpilogue& epilogue, int warp)
      : e(epilogue),
        down(16 * epilogue.d.ld),
        at_part(warp * static_cast<int>(sizeof(typename C::Part) / C::kWarps) + static_cast<int>(threadIdx.x % 32) * 16) {}

  __device__ __forceinline__ void aim(int warp_row, int tile_col) {
    const int row = warp_row + static_cast<int>(threadIdx.x % 32 / 4), col = tile_col + static_cast<int>(threadIdx.x % 4) * 8;
    rows = e.rows - row;
    cols = e.cols - col;
    to = e.d.data + 2 * (row * e.d.ld + col);
  }

  // Finishes the parts whose turn it is, whose inputs lie one after another, and stores them.
  __device__ __forceinline__ void store_turn(int stages, const typename C::Part* inputs) {
    const std::byte* input = inputs->of_warp[0] + at_part;
    this->for_turn(stages, [&](int g, int h, unsigned(&w)[4]) {
      finish(g, h, w, input);
      input += sizeof(typename C::Part);
    });
  }
  __device__ __forceinline__ void store_all(const typename C::Part* inputs) {
    const std::byte* input = inputs->of_warp[0] + at_part;
    this->for_all([&](int g, int h, unsigned(&w)[4]) {
      finish(g, h, w, input);
      input += sizeof(typename C::Part);
    });
  }

 private:
  __device__ __forceinline__ void finish(int g, int h, unsigned (&w)[4], const std::byte* input) const {
    if (8 * h >= rows || 8 * g >= cols) return;
    const uint4 x = *reinterpret_cast<const uint4*>(input);
    *reinterpret_cast<uint4*>(to + (h * down + 16 * g)) = {times_relu_derivatives<T>(w[0], x.x), times_relu_derivatives<T>(w[1], x.y),
                                                           times_relu_derivatives<T>(w[2], x.z), times_relu_derivatives<T>(w[3], x.w)};
  }
};

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_late_derivative(const __grid_constant__ LateDerivativeGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = storage_in<typename C::SharedStorage>(storage);
  auto* const last_parts = reinterpret_cast<typename C::Part*>(shared.stages);  // where the last tile's input comes
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);

  // Prologue.
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    prefetch_map(gemm.rows);
    prefetch_map(gemm.cols);
    prefetch_map(gemm.of_warps);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, C::kWarps);  // each warp has read its parts
    mbarrier_init_fence();
  }
  bring_first_blocks<C::kThreads>(gemm);
  __syncthreads();

  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    if (elect_lane_of(0)) {
      WaitOnce wait_for_operands;
      int row = 0, col = 0, row_before = 0, col_before = 0;
      for (int index = first; index < gemm.raster.tiles; index += step) {
        const TileAt tile = gemm.raster(index);
        row_before = row;
        col_before = col;
        row = tile.n * kTileN;
        col = tile.m * kTileM;
        int part = index == first ? C::kParts : 0;
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          wait_for_operands();
          const int end = index == first ? part : parts_left(C::kParts, block + 1, gemm.blocks_k);
          if (part < end) mbarrier_expect(shared.full[at.stage], static_cast<unsigned>(sizeof(typename C::Part)) * (end - part));
          load_stage(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, row, col);
          for (int slot = 0; part < end; ++slot, ++part) {
            load_part(shared.parts[at.stage][slot], gemm, shared.full[at.stage], part, row_before, col_before);
          }
        }
      }
      RingPosition<C::kStages> emptied = at;
      for (int stage = 0; stage < C::kStages; ++stage, emptied.advance()) mbarrier_wait(shared.empty[emptied.stage], emptied.parity ^ 1);
      mbarrier_arrive_expecting(shared.full[at.stage], static_cast<unsigned>(sizeof(typename C::Part)) * C::kParts);
      for (int part = 0; part < C::kParts; ++part) load_part(last_parts[part], gemm, shared.full[at.stage], part, row, col);
    }
  } else {  // A consumer.
    take_registers<C::kConsumerRegisters>();
    wait_for_previous_kernel();
    const int consumer = warpgroup_rank() - 1, warp = static_cast<int>(threadIdx.x) / 32 - 4;
    const auto hand_back = [&](int stage) {
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(shared.empty[stage]);
    };
    LateProducts<C, typename P::T> late(gemm.epilogue, warp);
    for (int index = first; index < gemm.raster.tiles; index += step) {
      const TileAt tile = gemm.raster(index);

      // Main loop, and the rest of the tile before.
      float sums[1][kTileM / 2];  // [64, tile m]
      int previous = 0;
      for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
        mbarrier_wait(shared.full[at.stage], at.parity);
        multiply(P{}, shared.stages[at.stage], consumer, block > 0, sums);
        late.store_turn(gemm.blocks_k, shared.parts[at.stage]);
        wgmma_wait<1>();
        if (block > 0) hand_back(previous);
        previous = at.stage;
      }
      late.aim(tile.n * kTileN + warp * kStripRows, tile.m * kTileM);
      wgmma_wait<0>();
      hand_back(previous);

      // Epilogue.
      late.take(typename P::T{}, sums[0]);
    }
    mbarrier_wait(shared.full[at.stage], at.parity);
    late.store_all(last_parts);
  }
}

template <class T>
void launch_tiles(CudaQueue& queue, const LateDerivativeGemm& gemm, const GemmPlan& plan) {
  with_tile<kPersistentLateDerivativeTiles>("persistent_late_derivative", plan.tile, [&]<int kM, int kN>() {
    using C = LateDerivativeConfig<kM, kN>;
    launch_clusters(queue, "persistent_late_derivative", persistent_late_derivative<C, Product<T, Fastest::k, Fastest::other, false>>, gemm,
                    plan.blocks, C::kThreads, sizeof(typename C::SharedStorage));
  });
}

}  // namespace

void launch_persistent_late_derivative(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const ConstMatrixView& x = args.derivative_of;
  const auto cols = static_cast<cuuint64_t>(x.cols), rows = static_cast<cuuint64_t>(x.rows);
  const auto pitch = static_cast<cuuint64_t>(x.ld * size_of(x.dtype));
  const auto warps = static_cast<cuuint32_t>(plan.tile.n / kStripRows);
  const LateDerivativeGemm gemm = {
      warpgroup_gemm(args, plan),
      encode_tensor_map(x, {.sizes = {cols, rows}, .strides = {pitch}, .box = {kPartColumns, kPartRows}}, CU_TENSOR_MAP_SWIZZLE_NONE),
      encode_tensor_map(x,
                        {.rank = 3,
                         .sizes = {cols, kStripRows, std::max<cuuint64_t>(rows / kStripRows, 1)},
                         .strides = {pitch, kStripRows * pitch},
                         .box = {kPartColumns, kPartRows, warps}},
                        CU_TENSOR_MAP_SWIZZLE_NONE)};
  with_half(gemm.operand_dtype, "persistent_late_derivative", [&]<class T>(T) { launch_tiles<T>(queue, gemm, plan); });
}

}  // namespace tilewave
