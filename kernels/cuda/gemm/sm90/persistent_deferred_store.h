// Adds to persistent_data_parallel, for 16-bit outputs: a tile's sums, its bias added, are packed into half their registers. What is left
// of the epilogue and the stores follow part by part under the next tile's products, straight from registers, so that the tensor
// cores pause for the packing alone and shared memory, which the products and their filling keep busy, sees nothing of D. An activation
// takes what was packed: the sums as saved_input stores them, in 16 bits. In a block's last tile, which has no products after it, the
// consumers take the last k_tiles, which the ring holds by then, one after the other: one stores under the next one's products. A
// kernel for each type, majors and form: a loop that keeps sums and packed sums has no register to spare.
#pragma once

#include "kernels/cuda/gemm/sm90/packed_sums.h"
#include "kernels/cuda/gemm/sm90/schedule.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/persistent_deferred.h"

namespace tilewave {

// What happens to a packed part on its way to D: it is stored as it is; it is an activation's input, which may be stored beside D; or it
// is stored element by element, where D's rows do not begin and end on 16 bytes.
enum class DeferredForm { accumulators, activation, elements };

template <int kM, int kN, DeferredForm kHow, Activation kWhich>
struct DeferredStoreConfig : Cta<kM, kN, deferred_store_consumers({kM, kN})> {
  static constexpr DeferredForm kForm = kHow;
  static constexpr Activation kActivation = kWhich;
  static constexpr int kStages = deferred_store_stages({kM, kN});
  static constexpr int kOrderedKTiles = kStages - 1;  // of the last tile's last k_tiles: what loads them waits for none of these

  struct SharedStorage {
    OperandStage<kN, kM> stages[kStages];
    alignas(1024) unsigned bias[kStages][kM / 2];  // in pairs, with a tile's last k_tile
    Ring<kStages> ring;
  };
  static_assert(sizeof(SharedStorage) == persistent_deferred_store_shared_bytes({kM, kN}), "the plan knows what a block needs");
  static_assert(kN == deferred_store_consumers({kM, kN}) * kBox, "a consumer takes 64 rows");
};

// Whether TMA can bring a tile's bias.
__host__ __device__ inline bool comes_in_lines(const WarpgroupEpilogue& e) {
  return !e.bias_along_rows && e.bias.dtype == e.d.dtype && e.cols % 8 == 0 && reinterpret_cast<std::uintptr_t>(e.bias.data) % 16 == 0;
}
// Adds it to a thread's sums of the rows from `row` on and the columns from `col` on: from there, `pairs`, or element by element.
template <class T, Columns kOrder, int kColumns>
__device__ __forceinline__ void add_deferred_bias(const WarpgroupEpilogue& e, bool in_lines, const unsigned (&pairs)[kColumns / 2], int row,
                                                  int col, float (&accumulators)[kColumns / 2]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const auto at = [&](int i, int end) { return i < end ? load_element(e.bias.data, e.bias.dtype, i) : 0.0f; };
  if (e.bias_along_rows) {
    const float above = at(row + lane / 4, e.rows), below = at(row + lane / 4 + 8, e.rows);
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) accumulators[i] += i % 4 < 2 ? above : below;
    return;
  }
  const auto with_pairs = [&](auto&& pair) {
#pragma unroll
    for (int g = 0; g < kColumns / 8; ++g) {
      const float2 both = pair(g);
      accumulators[4 * g] += both.x;
      accumulators[4 * g + 1] += both.y;
      accumulators[4 * g + 2] += both.x;
      accumulators[4 * g + 3] += both.y;
    }
  };
  if (in_lines) {
    with_pairs([&](int g) { return unpack<T>(pairs[column_of_pair<kOrder, kColumns>(g) / 2]); });
  } else {
    with_pairs([&](int g) -> float2 {
      const int first = col + column_of_pair<kOrder, kColumns>(g);
      return {at(first, e.cols), at(first + 1, e.cols)};
    });
  }
}

// A consumer's packed sums of one tile, and what is left to be done with them.
template <class T, int kColumns, DeferredForm kForm, Activation kActivation, Columns kOrder>
struct DeferredTile : PackedWords<kColumns, kForm == DeferredForm::activation ? 8 : 16, kOrder> {
  const WarpgroupEpilogue& e;
  int row = 0, col = 0;                        // of D, the thread's first and, once a quad has transposed, its first
  int rows = 0, cols = 0;                      // of D from there on
  std::byte *to = nullptr, *beside = nullptr;  // there in D, and in saved_input

  __device__ __forceinline__ explicit DeferredTile(const WarpgroupEpilogue& epilogue) : e(epilogue) {}

  __device__ __forceinline__ void aim(int warp_row, int tile_col) {
    row = warp_row + static_cast<int>(threadIdx.x % 32 / 4);
    col = tile_col + static_cast<int>(threadIdx.x % 4) * 8;
    rows = e.rows - row;
    cols = e.cols - col;
    to = at(e.d);
    if constexpr (kForm == DeferredForm::activation) beside = at(e.saved_input);
  }

  // Finishes the parts whose turn it is and stores them.
  __device__ __forceinline__ void store_due(int stages) {
    this->for_due(stages, [&](int g, int h, unsigned(&w)[4]) { finish(g, h, w); });
  }
  // The same of all of a tile that none follows.
  __device__ __forceinline__ void store_all(const float (&accumulators)[kColumns / 2]) const {
    this->for_all(T{}, accumulators, [&](int g, int h, unsigned(&w)[4]) { finish(g, h, w); });
  }

 private:
  __device__ __forceinline__ std::byte* at(const LikeD& m) const { return m.data + 2 * (row * m.ld + col); }

  __device__ __forceinline__ void finish(int g, int h, unsigned (&w)[4]) const {
    if constexpr (kForm == DeferredForm::elements) {
      store_elements(8 * g, 8 * h, w);
    } else {
      if (8 * h < rows && 8 * g < cols) finish_line(g, h, w);
    }
  }
  __device__ __forceinline__ void finish_line(int g, int h, unsigned (&w)[4]) const {
    if constexpr (kForm == DeferredForm::activation) {
      if (e.saved_input.data != nullptr) {
        *reinterpret_cast<uint4*>(beside + 2 * (8 * h * e.saved_input.ld + 8 * g)) = {w[0], w[1], w[2], w[3]};
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = finished(w[i]);
    *reinterpret_cast<uint4*>(to + 2 * (8 * h * e.d.ld + 8 * g)) = {w[0], w[1], w[2], w[3]};
  }
  __device__ __forceinline__ void store_elements(int right, int down, const unsigned (&w)[4]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (down < rows && right + i < cols) {
        reinterpret_cast<unsigned short*>(to)[down * e.d.ld + right + i] = static_cast<unsigned short>(w[i / 2] >> 16 * (i % 2));
      }
    }
  }
  // Two packed sums.
  __device__ __forceinline__ static unsigned finished(unsigned pair) {
    if constexpr (kForm != DeferredForm::activation) return pair;
    const float2 z = unpack<T>(pair);
    return pack<T>(activate_to<T>(kActivation, z.x), activate_to<T>(kActivation, z.y));
  }
};

// Columns are dealt out by TMA, whole eights of them, where it finds them one below the other.
constexpr Columns column_order(DeferredForm form, Fastest cols_fastest) {
  return form != DeferredForm::elements && cols_fastest == Fastest::k ? Columns::dealt : Columns::in_order;
}
template <class Stage>
__device__ __forceinline__ void load_dealt_stage(Stage& stage, const WarpgroupGemm& gemm, Mbarrier& full, int k, int row, int col,
                                                 unsigned rank) {
  constexpr int kPairs = 4, kPairBytes = sizeof(stage.cols) / kPairs;
  mbarrier_arrive_expecting(full, stage.kBytes);
  load_boxes(stage.rows, gemm.rows, gemm.rows_fastest, full, k, row);
  if (gemm.cluster == 1) {
    for (int pair = 0; pair < kPairs; ++pair) {
      tma_load_3d(stage.cols[0] + pair * kPairBytes, gemm.cols, full, k, 2 * pair, col / 8);
    }
  } else {  // two blocks, each every other one, for both
    for (int other = 0; other < kPairs; other += 2) {
      const int pair = other + static_cast<int>(rank);
      tma_load_3d_multicast(stage.cols[0] + pair * kPairBytes, gemm.cols, full, k, 2 * pair, col / 8, 0b11);
    }
  }
}

template <class C, class P>
__global__ void __launch_bounds__(C::kThreads, 1) persistent_deferred_store(const __grid_constant__ WarpgroupGemm gemm) {
  auto& shared = shared_storage<C>();
  constexpr int kTileM = C::kTileM, kTileN = C::kTileN;
  constexpr Columns kOrder = column_order(C::kForm, P::kCols);
  using T = typename P::T;
  const WarpgroupEpilogue& e = gemm.epilogue;
  const bool bias_in_lines = e.bias.data != nullptr && comes_in_lines(e);

  run_prologue<C, Prologue{.readers = C::kConsumers, .shares_loads = true, .meets = Meeting::pair}>(shared, gemm);
  if (becomes_producer<C>()) {
    if (elect_lane_of(0)) {
      const unsigned rank = cluster_rank();
      Loader<C> loader{shared};
      for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
        const TileAt tile = own_tile(gemm, tile_index);
        const int row = tile.n * kTileN, col = tile.m * kTileM;
        loader(0, gemm.k_tiles, [&](int k_tile, auto& stage, Mbarrier& full) {
          if (bias_in_lines && k_tile + 1 == gemm.k_tiles) {
            const unsigned bytes = 2u * static_cast<unsigned>(min(kTileM, e.cols - col));
            mbarrier_expect(full, bytes);
            tma_load_1d(shared.bias[loader.at.stage], e.bias.data + std::int64_t{2} * col, bytes, full);
          }
          if constexpr (kOrder == Columns::dealt) {
            load_dealt_stage(stage, gemm, full, k_tile * kBox, row, col, rank);
          } else {
            load_stage_of_cluster(stage, gemm, full, k_tile * kBox, row, col, rank);
          }
        });
      }
      shared.ring.wait_for_readers(gemm.cluster, loader.at);
    }
  } else {
    const int consumer = warpgroup_rank() - 1, thread = static_cast<int>(threadIdx.x) % kWarpgroup, warp = thread / 32;
    const auto release = [&](int stage) {  // to every producer that writes here
      shared.ring.release_to_cluster(stage, gemm.cluster, thread);
    };
    RingPosition<C::kStages> at;
    DeferredTile<T, kTileM, C::kForm, C::kActivation, kOrder> deferred(e);
    for (int tile_index = first_tile_index(gemm); tile_index < gemm.raster.tiles; tile_index += gemm.clusters) {
      const TileAt tile = own_tile(gemm, tile_index);
      const int row = tile.n * kTileN + consumer * kBox + warp * kSubtileRows, col = tile.m * kTileM;

      const bool last = tile_index + gemm.clusters >= gemm.raster.tiles;
      const int together = last && gemm.k_tiles > C::kStages ? gemm.k_tiles - C::kOrderedKTiles : gemm.k_tiles;  // k_tiles

      // Main loop, and the rest of the tile before.
      float accumulators[1][kTileM / 2];  // [64, tile m]
      const auto issue = [&](int k_tile) { multiply(P{}, shared.stages[at.stage], consumer, k_tile > 0, accumulators); };
      const auto store_due = [&](int) { deferred.store_due(together); };  // after the release, so that the next load waits for none of it
      int last_stage = shared.ring.multiply_k_tiles(at, 0, together, issue, release, NoStep{}, store_due);
      if (together < gemm.k_tiles) {
        if (consumer > 0) order_barrier_wait(consumer - 1);
#pragma unroll 1
        for (int k_tile = together; k_tile < gemm.k_tiles; ++k_tile, at.advance()) {
          shared.ring.wait_full(at);
          multiply(P{}, shared.stages[at.stage], consumer, true, accumulators);
          last_stage = at.stage;
        }
        if (consumer + 1 < C::kConsumers) order_barrier_arrive(consumer);
      }
      deferred.aim(row, col);
      end_mmas(e.alpha, accumulators);

      // Epilogue.
      if (e.bias.data != nullptr)
        add_deferred_bias<T, kOrder, kTileM>(e, bias_in_lines, shared.bias[last_stage], row, col, accumulators[0]);
      if (bias_in_lines) sync_warpgroup(consumer);  // every warp has read it
      if (gemm.cluster > 1 && together < gemm.k_tiles) {
        // The ring holds the last k_tiles, and whoever loaded them waits for their readers.
        for (int stage = 0; stage < C::kStages; ++stage) release(stage);
      } else {
        release(last_stage);
      }
      if (last) {
        deferred.store_all(accumulators[0]);
        break;
      }
      deferred.take(T{}, accumulators[0]);
    }
  }
}

// Launches it with the tile planned.
template <DeferredForm kForm, Activation kActivation, class P>
void launch_deferred_tiles(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan) {
  with_tile<kPersistentDeferredStoreTiles>("persistent_deferred_store", plan.tile, [&]<int kM, int kN>() {
    using C = DeferredStoreConfig<kM, kN, kForm, kActivation>;
    launch_kernel<C>(queue, "persistent_deferred_store", persistent_deferred_store<C, P>, gemm, plan.blocks);
  });
}

// Each form's instances are compiled in a file of their own for each type. Activations have the majors of a forward alone.
template <class T, DeferredForm kForm>
void launch_deferred_form(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan) {
  if constexpr (kForm == DeferredForm::activation) {
    using P = MmaForm<T, Fastest::k, Fastest::k, false>;
    if (gemm.epilogue.activation == Activation::relu) return launch_deferred_tiles<kForm, Activation::relu, P>(queue, gemm, plan);
    TW_CHECK(gemm.epilogue.activation == Activation::gelu_tanh, "persistent_deferred_store has no kernel for the activation ",
             name_of(gemm.epilogue.activation), "; take another row.");
    launch_deferred_tiles<kForm, Activation::gelu_tanh, P>(queue, gemm, plan);
  } else {
    with_majors_of<T>(gemm, [&]<class P>(P) { launch_deferred_tiles<kForm, Activation::none, P>(queue, gemm, plan); });
  }
}

extern template void launch_deferred_form<bf16, DeferredForm::accumulators>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);
extern template void launch_deferred_form<f16, DeferredForm::accumulators>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);
extern template void launch_deferred_form<bf16, DeferredForm::activation>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);
extern template void launch_deferred_form<f16, DeferredForm::activation>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);
extern template void launch_deferred_form<bf16, DeferredForm::elements>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);
extern template void launch_deferred_form<f16, DeferredForm::elements>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);

}  // namespace tilewave
