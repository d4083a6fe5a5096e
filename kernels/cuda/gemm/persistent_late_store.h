// Adds to persistent_cooperative, for 16-bit outputs: a tile's sums, its bias added, are packed into half their registers. What is left
// of the epilogue and the stores follow piece by piece under the next tile's products, straight from registers, so that the tensor
// cores pause for the packing alone and shared memory, which the products fill to its bandwidth, sees nothing of D. An activation and
// a derivative take what was packed: the sums as saved_input stores them, in 16 bits. A kernel for each type, majors and form: a loop
// that keeps sums and packed sums has no register to spare.
#pragma once

#include "kernels/cuda/gemm/packed_sums.h"
#include "kernels/cuda/gemm/warpgroup_gemm.h"
#include "kernels/cuda/prim/cp_async.h"
#include "kernels/gemm/rows/persistent_late_store.h"

namespace tilewave {

// What happens to a packed piece on its way to D: it is stored as it is; it is an activation's input, which may be stored beside D; or
// it is multiplied by the derivative of an activation whose input comes from memory.
enum class LateForm { sums, activation, derivative };

template <int kM, int kN, LateForm kWay, Activation kWhich>
struct LateStoreConfig {
  static constexpr Tile kTile = {kM, kN};
  static constexpr LateForm kForm = kWay;
  static constexpr Activation kActivation = kWhich;
  static constexpr int kStages = late_store_stages(kTile), kConsumers = kLateStoreConsumers;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup, kWarps = kConsumers * kWarpgroup / 32;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    alignas(1024) unsigned bias[kWarps][kM / 2];  // each warp's own copy, in pairs
    Mbarrier full[kStages];
    Mbarrier empty[kStages];
  };
  static_assert(sizeof(SharedStorage) == persistent_late_store_shared_bytes(kTile), "the plan knows what a block needs");
  static_assert(kN == kConsumers * kBox, "a consumer takes 64 rows");
};

// The bias of a tile's columns, on its way to a warp through shared memory where the copy can bring it: 8 columns a lane.
template <class T, int kColumns>
struct LateBias {
  const WarpgroupEpilogue& e;
  unsigned* pairs;  // [kColumns / 2], the warp's

  __device__ __forceinline__ bool copied() const {
    constexpr DType kDType = std::is_same_v<T, bf16> ? DType::bf16 : DType::f16;
    return e.bias.data != nullptr && !e.bias_along_rows && e.bias.dtype == kDType &&
           reinterpret_cast<std::uintptr_t>(e.bias.data) % 16 == 0;
  }
  __device__ __forceinline__ void ask(int tile_col) const {
    const int lane = static_cast<int>(threadIdx.x % 32), left = e.cols - tile_col - 8 * lane;
    if (!copied()) return;
    __syncwarp();  // every lane has read the last tile's
    if (8 * lane < kColumns && left > 0) {
      cp_async<16>(shared_address(pairs + 4 * lane), e.bias.data + 2 * (tile_col + 8 * lane), min(2 * left, 16));
    }
    cp_async_commit();
  }
  // Adds it to a thread's sums of the rows from `row` on and the columns from `col` on.
  __device__ __forceinline__ void add(int row, int col, float (&sums)[kColumns / 2]) const {
    if (e.bias.data == nullptr) return;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (copied()) {
      cp_async_wait<0>();
      __syncwarp();
#pragma unroll
      for (int g = 0; g < kColumns / 8; ++g) {
        const float2 both = unpack<T>(pairs[4 * g + lane % 4]);
        sums[4 * g] += both.x;
        sums[4 * g + 1] += both.y;
        sums[4 * g + 2] += both.x;
        sums[4 * g + 3] += both.y;
      }
      return;
    }
    const auto at = [&](int i, int end) { return i < end ? load_element(e.bias.data, e.bias.dtype, i) : 0.0f; };
    if (e.bias_along_rows) {
      const float above = at(row + lane / 4, e.rows), below = at(row + lane / 4 + 8, e.rows);
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i) sums[i] += i % 4 < 2 ? above : below;
    } else {
#pragma unroll
      for (int g = 0; g < kColumns / 8; ++g) {
        const int first = col + 8 * g + 2 * (lane % 4);
        const float2 both = {at(first, e.cols), at(first + 1, e.cols)};
        sums[4 * g] += both.x;
        sums[4 * g + 1] += both.y;
        sums[4 * g + 2] += both.x;
        sums[4 * g + 3] += both.y;
      }
    }
  }
};

// A consumer's packed sums of one tile, and what is left to be done with them. kWhole: the rows of everything that lies like D begin and
// end on 16 bytes of T. The stores stand in the main loop, and those of single elements would crowd it.
template <class T, int kColumns, LateForm kForm, Activation kActivation, bool kWhole>
struct LateTile : PackedWords<kColumns> {
  const WarpgroupEpilogue& e;
  int row = 0, col = 0;                        // of D, the thread's first and, once a quad has transposed, its first
  int rows = 0, cols = 0;                      // of D from there on
  std::byte *to = nullptr, *beside = nullptr;  // there in D, and in saved_input or derivative_of
  uint4 inputs[2];                             // of the derivative, for the next piece
  bool waiting = false;

  __device__ __forceinline__ explicit LateTile(const WarpgroupEpilogue& epilogue) : e(epilogue) {}

  __device__ __forceinline__ void aim(int warp_row, int tile_col) {
    row = warp_row + static_cast<int>(threadIdx.x % 32 / 4);
    col = tile_col + static_cast<int>(threadIdx.x % 4) * 8;
    rows = e.rows - row;
    cols = e.cols - col;
    to = at(e.d);
    if constexpr (kForm == LateForm::activation) beside = at(e.saved_input);
    if constexpr (kForm == LateForm::derivative) beside = at(e.derivative_of);
    waiting = true;
    ask(0);
  }

  // Finishes a piece and stores it.
  __device__ __forceinline__ void store(int piece) {
    this->for_piece(piece, [&](int g, int h, unsigned(&w)[4]) {
      if constexpr (kWhole) {
        if (8 * h < rows && 8 * g < cols) finish_eight(g, h, w);
      } else {
        finish_elements(8 * g, 8 * h, w);
      }
    });
    ask(piece + 1);
  }

 private:
  __device__ __forceinline__ std::byte* at(const LikeD& m) const { return m.data + 2 * (row * m.ld + col); }

  // The derivative's inputs of a piece, ahead of need.
  __device__ __forceinline__ void ask(int piece) {
    if constexpr (kForm == LateForm::derivative && kWhole) {
      const int first = piece * this->kPieceColumns;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (first < min(cols, kColumns) && 8 * h < rows) {
          inputs[h] = *reinterpret_cast<const uint4*>(beside + 2 * (8 * h * e.derivative_of.ld + first));
        }
      }
    }
  }
  __device__ __forceinline__ void finish_eight(int g, int h, unsigned (&w)[4]) const {
    if constexpr (kForm == LateForm::activation) {
      if (e.saved_input.data != nullptr) {
        *reinterpret_cast<uint4*>(beside + 2 * (8 * h * e.saved_input.ld + 8 * g)) = {w[0], w[1], w[2], w[3]};
      }
    }
    const unsigned x[4] = {inputs[h].x, inputs[h].y, inputs[h].z, inputs[h].w};
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = finished(w[i], unpack<T>(x[i]));
    *reinterpret_cast<uint4*>(to + 2 * (8 * h * e.d.ld + 8 * g)) = {w[0], w[1], w[2], w[3]};
  }
  __device__ __forceinline__ void finish_elements(int right, int down, const unsigned (&w)[4]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (down >= rows || right + i >= cols) continue;
      const auto index = [&](const LikeD& m) { return (row + down) * m.ld + col + right + i; };
      const auto element = static_cast<unsigned short>(w[i / 2] >> 16 * (i % 2));
      float input = 0.0f;
      if constexpr (kForm == LateForm::derivative) {
        input = load_element(e.derivative_of.data, e.derivative_of.dtype, index(e.derivative_of));
      }
      if constexpr (kForm == LateForm::activation) {
        if (e.saved_input.data != nullptr) {
          store_element(e.saved_input.data, e.saved_input.dtype, index(e.saved_input), unpack<T>(element).x);
        }
      }
      reinterpret_cast<unsigned short*>(e.d.data)[index(e.d)] = static_cast<unsigned short>(finished(element, {input, input}));
    }
  }
  // Two packed sums, and the derivative's inputs for them.
  __device__ __forceinline__ static unsigned finished(unsigned pair, float2 input) {
    if constexpr (kActivation == Activation::none) return pair;
    const float2 z = unpack<T>(pair);
    if constexpr (kForm == LateForm::activation) return pack<T>(activate_to<T>(kActivation, z.x), activate_to<T>(kActivation, z.y));
    return pack<T>(z.x * activation_derivative_to<T>(kActivation, input.x), z.y * activation_derivative_to<T>(kActivation, input.y));
  }
};

template <class C, class P, bool kWhole>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_late_store(const __grid_constant__ WarpgroupGemm gemm) {
  extern __shared__ __align__(1024) std::byte storage[];
  auto& shared = *reinterpret_cast<typename C::SharedStorage*>(storage);
  constexpr int kTileM = static_cast<int>(C::kTile.m), kTileN = static_cast<int>(C::kTile.n);
  using T = typename P::T;

  // Prologue.
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    prefetch_map(gemm.rows);
    prefetch_map(gemm.cols);
    mbarrier_init(shared.full, 1);
    mbarrier_init(shared.empty, C::kConsumers);
    mbarrier_init_fence();
  }
  __syncthreads();
  wait_for_previous_kernel();

  RingPosition<C::kStages> at;
  if (threadIdx.x < kWarpgroup) {  // The producer.
    give_up_registers<C::kProducerRegisters>();
    if (threadIdx.x == 0) {
      for (int index = first; index < gemm.raster.tiles; index += step) {
        const TileAt tile = gemm.raster(index);
        for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
          mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
          load_stage(shared.stages[at.stage], gemm, shared.full[at.stage], block * kBox, tile.n * kTileN, tile.m * kTileM);
        }
      }
    }
  } else {  // A consumer.
    take_registers<C::kConsumerRegisters>();
    const int consumer = static_cast<int>(threadIdx.x) / kWarpgroup - 1, warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const bool leads = threadIdx.x % kWarpgroup == 0;
    const LateBias<T, kTileM> bias{gemm.epilogue, shared.bias[consumer * (kWarpgroup / 32) + warp]};
    LateTile<T, kTileM, C::kForm, C::kActivation, kWhole> late(gemm.epilogue);
    for (int index = first; index < gemm.raster.tiles; index += step) {
      const TileAt tile = gemm.raster(index);
      const int row = tile.n * kTileN + consumer * kBox + warp * kStripRows, col = tile.m * kTileM;
      bias.ask(col);

      // Main loop, and the rest of the tile before.
      float sums[1][kTileM / 2];  // [64, tile m]
      float row_sums[1][4];
      int previous = 0;
      for (int block = 0; block < gemm.blocks_k; ++block, at.advance()) {
        mbarrier_wait(shared.full[at.stage], at.parity);
        multiply(P{}, shared.stages[at.stage], Ones{}, consumer, block > 0, sums, row_sums);
        if (late.waiting && block < late.kPieces) late.store(block);
        wgmma_wait<1>();
        if (leads && block > 0) mbarrier_arrive(shared.empty[previous]);
        previous = at.stage;
      }
      if (late.waiting) {
        for (int piece = gemm.blocks_k; piece < late.kPieces; ++piece) late.store(piece);
      }
      late.aim(row, col);
      wgmma_wait<0>();
      if (leads) mbarrier_arrive(shared.empty[previous]);

      // Epilogue.
      bias.add(row, col, sums[0]);
      late.take(T{}, sums[0]);
    }
    for (int piece = 0; piece < late.kPieces; ++piece) late.store(piece);
  }
}

// Launches it for the product's type and majors with the tile planned.
template <LateForm kForm, Activation kActivation, class P>
void launch_late_store(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan) {
  const WarpgroupEpilogue& e = gemm.epilogue;
  const auto whole = [&](const LikeD& m) { return m.data == nullptr || (m.dtype == e.d.dtype && m.mapped_cols == e.cols); };
  const bool all_whole = whole(e.d) && whole(e.saved_input) && whole(e.derivative_of);
  const auto launch = [&]<int kM, int kN>() {
    if (plan.tile != Tile{kM, kN}) return;
    using C = LateStoreConfig<kM, kN, kForm, kActivation>;
    auto* const kernel = all_whole ? persistent_late_store<C, P, true> : persistent_late_store<C, P, false>;
    launch_clusters(queue, "persistent_late_store", kernel, gemm, plan.blocks, C::kThreads, sizeof(typename C::SharedStorage));
  };
  launch.template operator()<256, 128>();
  launch.template operator()<192, 128>();
  launch.template operator()<128, 128>();
}

// The forms of their own, each compiled in a file of its own: for the majors of a forward and of a dgrad.
void launch_late_activation(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan);
void launch_late_derivative(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan);

}  // namespace tilewave
