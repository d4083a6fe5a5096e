// Adds to persistent_deferred_store what multiplies D elementwise: ReLU's derivative. Its input's part of a tile comes by TMA with
// the stages of the next one, as much with each as leaves under its products, so that finishing a part waits for no memory. The last
// tile's comes into the ring once that is empty. What is multiplied are the sums in 16 bits, by 0 or 1, so that nothing is rounded twice.
#include <algorithm>

#include "kernels/cuda/gemm/sm90/kernel.h"
#include "kernels/cuda/gemm/sm90/packed_sums.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/persistent_deferred.h"

namespace tilewave {
namespace {

constexpr int kChunkColumns = 32, kChunkRows = 8;  // of each warp's 16

template <int kM, int kN>
struct DeferredDerivativeConfig : Cta<kM, kN, kN / kBox, 40, 232> {
  using Cta<kM, kN, kN / kBox, 40, 232>::kTile, Cta<kM, kN, kN / kBox, 40, 232>::kWarps;
  static constexpr int kStages = deferred_derivative_stages(kTile), kChunks = deferred_derivative_chunks(kTile);

  // A part of the derivative's input, [warps, 8 rows, 32 columns].
  struct Chunk {
    alignas(128) std::byte of_warp[kWarps][kChunkRows * kChunkColumns * 2];
  };
  static_assert(sizeof(Chunk) == deferred_derivative_chunk_bytes(kTile));

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    Chunk chunks[kStages][kChunksPerStage];
    alignas(1024) Ring<kStages> ring;
  };
  static_assert(sizeof(SharedStorage) == persistent_deferred_derivative_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(sizeof(Chunk) * kChunks <= sizeof(OperandStage<kN, kM>) * kStages, "the last tile's input has room in the ring");
};

struct DeferredDerivativeGemm : WarpgroupGemm {
  // The derivative's input, in boxes of a warp's part, and up to the last whole 16 rows in boxes of all warps'.
  CUtensorMap of_warp, of_warps;

  __device__ __forceinline__ void prefetch_maps() const {
    WarpgroupGemm::prefetch_maps();
    prefetch_tensor_map(of_warps);
  }
};

// How many parts of a tile have left once `blocks` of `of` stages of the next one have been issued.
__device__ __forceinline__ int chunks_gone(int chunks, int blocks, int of) { return (chunks * blocks + of - 1) / of; }

// Asks for part `index` of the tile whose first row and column these are. The engine takes about as long for a small box as for a large
// one.
template <class Chunk>
__device__ __forceinline__ void load_chunk(Chunk& chunk, const DeferredDerivativeGemm& gemm, Mbarrier& full, int index, int row, int col) {
  constexpr int kWarps = sizeof(chunk.of_warp) / sizeof(chunk.of_warp[0]);
  const int x = col + index / 2 * kChunkColumns, y = index % 2 * kChunkRows, rows = gemm.epilogue.rows;
  if (rows % kSubtileRows == 0 || row + kWarps * kSubtileRows <= rows) {
    tma_load_3d(chunk.of_warp[0], gemm.of_warps, full, x, y, row / kSubtileRows);
  } else {
    for (int warp = 0; warp < kWarps; ++warp) tma_load(chunk.of_warp[warp], gemm.of_warp, full, x, row + warp * kSubtileRows + y);
  }
}

// Two packed sums by ReLU's derivatives of two packed inputs, which are 0 or 1.
template <class T>
__device__ __forceinline__ unsigned times_relu_derivatives(unsigned accumulators, unsigned x) {
  using Pair = std::conditional_t<std::is_same_v<T, bf16>, __nv_bfloat162, __half2>;
  const unsigned zeros = 0;
  const Pair derivatives = __hgt2(reinterpret_cast<const Pair&>(x), reinterpret_cast<const Pair&>(zeros));
  const Pair products = __hmul2(reinterpret_cast<const Pair&>(accumulators), derivatives);
  return reinterpret_cast<const unsigned&>(products);
}

// A consumer's packed sums of one tile, and where they go.
template <class C, class T>
struct DeferredProducts : PackedWords<C::kTileM, kChunkRows> {
  const WarpgroupEpilogue& e;
  int rows = 0, cols = 0;  // of D from this thread's first on, once a quad has transposed
  std::byte* to = nullptr;
  std::int64_t down;  // from there to 8 rows below, in bytes
  int chunk_offset;   // of this thread, in bytes

  __device__ __forceinline__ DeferredProducts(const WarpgroupEpilogue& epilogue, int warp)
      : e(epilogue),
        down(16 * epilogue.d.ld),
        chunk_offset(warp * static_cast<int>(sizeof(typename C::Chunk) / C::kWarps) + static_cast<int>(threadIdx.x % 32) * 16) {}

  __device__ __forceinline__ void aim(int warp_row, int tile_col) {
    const int row = warp_row + static_cast<int>(threadIdx.x % 32 / 4), col = tile_col + static_cast<int>(threadIdx.x % 4) * 8;
    rows = e.rows - row;
    cols = e.cols - col;
    to = e.d.data + 2 * (row * e.d.ld + col);
  }

  // Finishes the parts whose turn it is, whose inputs lie one after another, and stores them.
  __device__ __forceinline__ void store_due(int stages, const typename C::Chunk* inputs) { this->for_due(stages, finisher(inputs)); }
  __device__ __forceinline__ void store_all(const typename C::Chunk* inputs) { this->for_all(finisher(inputs)); }

 private:
  __device__ __forceinline__ auto finisher(const typename C::Chunk* inputs) const {
    return [this, input = inputs->of_warp[0] + chunk_offset](int g, int h, unsigned(&w)[4]) mutable {
      finish(g, h, w, input);
      input += sizeof(typename C::Chunk);
    };
  }
  __device__ __forceinline__ void finish(int g, int h, unsigned (&w)[4], const std::byte* input) const {
    if (8 * h >= rows || 8 * g >= cols) return;
    const uint4 x = *reinterpret_cast<const uint4*>(input);
    *reinterpret_cast<uint4*>(to + (h * down + 16 * g)) = {times_relu_derivatives<T>(w[0], x.x), times_relu_derivatives<T>(w[1], x.y),
                                                           times_relu_derivatives<T>(w[2], x.z), times_relu_derivatives<T>(w[3], x.w)};
  }
};

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_deferred_derivative(const __grid_constant__ DeferredDerivativeGemm gemm) {
  auto& shared = shared_storage<C>();
  auto* const last_chunks = reinterpret_cast<typename C::Chunk*>(shared.stages);  // where the last tile's input comes
  constexpr int kTileM = C::kTileM, kTileN = C::kTileN;

  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  run_prologue<C, Prologue{.readers = C::kWarps}>(shared, gemm);  // each warp has read its parts
  RingPosition<C::kStages> at;
  if (becomes_producer<C>()) {
    if (elect_lane_of(0)) {
      WaitOnce wait_for_operands;
      int row = 0, col = 0, row_before = 0, col_before = 0;
      for (int index = first; index < gemm.raster.tiles; index += step) {
        const TileAt tile = gemm.raster(index);
        row_before = row;
        col_before = col;
        row = tile.n * kTileN;
        col = tile.m * kTileM;
        int chunk = index == first ? C::kChunks : 0;
        shared.ring.load_k_tiles(at, 0, gemm.k_tiles, [&](int k_tile) {
          wait_for_operands();
          const int end = index == first ? chunk : chunks_gone(C::kChunks, k_tile + 1, gemm.k_tiles);
          if (chunk < end) mbarrier_expect(shared.ring.full[at.stage], static_cast<unsigned>(sizeof(typename C::Chunk)) * (end - chunk));
          load_stage(shared.stages[at.stage], gemm, shared.ring.full[at.stage], k_tile * kBox, row, col);
          for (int buffer = 0; chunk < end; ++buffer, ++chunk) {
            load_chunk(shared.chunks[at.stage][buffer], gemm, shared.ring.full[at.stage], chunk, row_before, col_before);
          }
        });
      }
      RingPosition<C::kStages> emptied = at;
      for (int stage = 0; stage < C::kStages; ++stage, emptied.advance()) shared.ring.wait_empty(emptied);
      mbarrier_arrive_expecting(shared.ring.full[at.stage], static_cast<unsigned>(sizeof(typename C::Chunk)) * C::kChunks);
      for (int chunk = 0; chunk < C::kChunks; ++chunk) load_chunk(last_chunks[chunk], gemm, shared.ring.full[at.stage], chunk, row, col);
    }
  } else {  // A consumer.
    const auto [consumer, thread, warp, lane] = ConsumerThread();
    const auto hand_back = [&](int stage) {
      __syncwarp();
      if (lane == 0) shared.ring.release(stage);
    };
    DeferredProducts<C, typename P::T> deferred(gemm.epilogue, warp);
    for (int index = first; index < gemm.raster.tiles; index += step) {
      const TileAt tile = gemm.raster(index);

      // Main loop, and the rest of the tile before.
      float accumulators[1][kTileM / 2];  // [64, tile m]
      const auto issue = [&](int k_tile) {
        multiply(P{}, shared.stages[at.stage], consumer, k_tile > 0, accumulators);
        deferred.store_due(gemm.k_tiles, shared.chunks[at.stage]);
      };
      const int last_stage = shared.ring.multiply_k_tiles(at, 0, gemm.k_tiles, issue, hand_back);
      deferred.aim(tile.n * kTileN + warp * kSubtileRows, tile.m * kTileM);
      end_mmas(gemm.epilogue.alpha, accumulators);
      hand_back(last_stage);

      // Epilogue.
      deferred.take(typename P::T{}, accumulators[0]);
    }
    shared.ring.wait_full(at);
    deferred.store_all(last_chunks);
  }
}

template <class T>
void launch_tiles(CudaQueue& queue, const DeferredDerivativeGemm& gemm, const GemmPlan& plan) {
  with_tile<kPersistentDeferredDerivativeTiles>("persistent_deferred_derivative", plan.tile, [&]<int kM, int kN>() {
    using C = DeferredDerivativeConfig<kM, kN>;
    launch_kernel<C>(queue, "persistent_deferred_derivative",
                     persistent_deferred_derivative<C, MmaForm<T, Fastest::k, Fastest::other, false>>, gemm, plan.blocks);
  });
}

}  // namespace

void launch_persistent_deferred_derivative(CudaQueue& queue, const GemmCall& call) {
  const ConstMatrixView& x = call.args.derivative_of;
  const auto cols = static_cast<cuuint64_t>(x.cols), rows = static_cast<cuuint64_t>(x.rows);
  const auto pitch = static_cast<cuuint64_t>(x.ld * size_of(x.dtype));
  const auto warps = static_cast<cuuint32_t>(call.plan.tile.n / kSubtileRows);
  const DeferredDerivativeGemm gemm = {
      warpgroup_gemm(call),
      encode_tensor_map(x, {.sizes = {cols, rows}, .strides = {pitch}, .box = {kChunkColumns, kChunkRows}}, CU_TENSOR_MAP_SWIZZLE_NONE),
      encode_tensor_map(x,
                        {.rank = 3,
                         .sizes = {cols, kSubtileRows, std::max<cuuint64_t>(rows / kSubtileRows, 1)},
                         .strides = {pitch, kSubtileRows * pitch},
                         .box = {kChunkColumns, kChunkRows, warps}},
                        CU_TENSOR_MAP_SWIZZLE_NONE)};
  with_half(gemm.operand_dtype, "persistent_deferred_derivative", [&]<class T>(T) { launch_tiles<T>(queue, gemm, call.plan); });
}

}  // namespace tilewave
