// The forward pass on Hopper's own instructions, after Shah et al., "FlashAttention-3", 2024. Adds to tensor_core_forward: a warpgroup
// owns 64 queries and multiplies by wgmma, whose operands TMA brings, swizzled, and nobody transposes. Scores of the next
// tile are asked for before the values of this one, so that values are multiplied while the next softmax is taken. A maximum that grows
// little is not moved to: exp keeps clear of its limits, and the sums are left as they are.
// Nobody is a producer: the last warpgroup that is done with a stage sends for what comes there next. Heads of 64 have a warpgroup a
// block and four blocks per SM, since their softmax takes as long as their products; heads of 128 share their tiles between two.
// Dropout is taken too.
// Rows whose base or pitch is no multiple of 16 bytes stay with tensor_core_forward.
#include "kernels/cuda/attention/warpgroup_tiles.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"

namespace tilewave::attention_on_gpu {
namespace {

constexpr int kWarpRows = 16;
constexpr float kSlack = 8.0F;  // powers of two by which exp may pass 1 before the maximum moves

template <int kHead, int kWarpgroups, int kTileKeys, int kTileStages, int kBlocksAnSm>
struct Config {
  static constexpr int kHeadSize = kHead, kConsumers = kWarpgroups, kKeys = kTileKeys, kStages = kTileStages, kBlocks = kBlocksAnSm;
  static constexpr int kWindow = kConsumers * kWarpgroupRows, kThreads = kConsumers * kWarpgroup;
  static constexpr bool kHoldsQueries = kHeadSize == 64 && kKeys == 64;  // in registers
  using Queries = HeadTile<kWarpgroupRows, kHeadSize>;
  using Keys = HeadTile<kKeys, kHeadSize>;

  struct SharedStorage {
    Queries q[kConsumers];  // then out
    Keys k[kStages], v[kStages];
    Mbarrier q_full[kConsumers], k_full[kStages], v_full[kStages];
    unsigned k_done[kStages], v_done[kStages];  // how often a warpgroup was
    WindowSpans<kConsumers> spans;
  };
};

template <class T>
struct WarpgroupForward {
  CUtensorMap q, k, v, out;  // in boxes of a tile's rows, out of a warp's
  Forward<T> pass;
};

// Counts one more warpgroup that is done with a stage; what it read there comes before what the last one sends for.
__device__ __forceinline__ unsigned count_done(unsigned& count) {
  unsigned before;
  asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;" : "=r"(before) : "r"(shared_address(&count)) : "memory");
  return before;
}

// The softmax of a lane's two rows so far: exp(score - base), base being near the maximum.
struct RunningSoftmax {
  float base[2] = {-INFINITY, -INFINITY}, total[2] = {};
  float correction[2];  // of sums made under the base before
  bool moves = false;   // any of the warp's
};

// Scores become exp(scores - base).
template <int kCount>
__device__ __forceinline__ void softmax_step(RunningSoftmax& softmax, float (&scores)[kCount], float log2_scale) {
  float offset[2];
  bool moves = false;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float even = softmax.base[half], odd = even;
#pragma unroll
    for (int i = 2 * half; i < kCount; i += 4) even = fmaxf(even, scores[i]), odd = fmaxf(odd, scores[i + 1]);
    const float most = quad_max(fmaxf(even, odd));
    const bool grown = (most - softmax.base[half]) * log2_scale > kSlack;  // from -infinity too
    softmax.correction[half] = grown ? exp2_of((softmax.base[half] - most) * log2_scale) : 1.0F;
    softmax.base[half] = grown ? most : softmax.base[half];
    offset[half] = softmax.base[half] == -INFINITY ? 0.0F : -softmax.base[half] * log2_scale;  // nothing seen yet: exp(-infinity) is 0
    moves |= grown;
  }
  softmax.moves = __any_sync(~0u, moves);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float even = 0.0F, odd = 0.0F;
#pragma unroll
    for (int i = 2 * half; i < kCount; i += 4) {
      scores[i] = exp2_of(fmaf(scores[i], log2_scale, offset[half]));
      scores[i + 1] = exp2_of(fmaf(scores[i + 1], log2_scale, offset[half]));
      even += scores[i], odd += scores[i + 1];
    }
    softmax.total[half] = fmaf(softmax.total[half], softmax.correction[half], even + odd);
  }
}

// The threads of a warpgroup.
template <int kWarpgroups>
__device__ __forceinline__ void meet(int warpgroup) {
  if constexpr (kWarpgroups > 1) {
    if (warpgroup < kWarpgroups - 1) return meet<kWarpgroups - 1>(warpgroup);
  }
  asm volatile("bar.sync %0, 128;" ::"n"(kWarpgroups) : "memory");
}

template <class C, class T, bool kDraws>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks) attend(const __grid_constant__ WarpgroupForward<T> op) {
  extern __shared__ __align__(1024) std::byte memory[];
  auto& shared = storage_in<typename C::SharedStorage>(memory);
  const Forward<T>& pass = op.pass;
  // The last windows of a causal sequence see most: they begin first.
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * C::kWindow, column = static_cast<int>(blockIdx.y) * C::kHeadSize;
  const int key_column = static_cast<int>(blockIdx.y / pass.sharing) * C::kHeadSize;
  const int warpgroup = warpgroup_rank(), warp = __shfl_sync(~0u, warp_index(), 0), warp_row = first_row + warp * kWarpRows;
  const bool leads = threadIdx.x % kWarpgroup == 0;
  const float scale = static_cast<float>(pass.scale), log2_scale = scale * kLog2E;

  // Prologue.
  if (threadIdx.x == 0) {
    mbarrier_init(shared.q_full, 1);
    mbarrier_init(shared.k_full, 1);
    mbarrier_init(shared.v_full, 1);
    mbarrier_init_fence();
    for (int stage = 0; stage < C::kStages; ++stage) shared.k_done[stage] = shared.v_done[stage] = 0;
  }
  wait_for_previous_kernel();
  int begin = 0, tiles = 0;  // of the keys that any row of the window sees
  const auto walk = [&](const Span& seen) {
    begin = seen.first / 4 * 4;  // of a quad of draws
    tiles = seen.first < seen.end ? ceil_div(seen.end - begin, C::kKeys) : 0;
  };
  const auto key_of = [&](int tile) { return begin + tile * C::kKeys; };
  const auto fetch = [&](typename C::Keys(&stages)[C::kStages], Mbarrier(&full)[C::kStages], const CUtensorMap& map, int tile) {
    if (tile >= tiles) return;
    const int stage = tile % C::kStages;
    mbarrier_arrive_expecting(full[stage], C::Keys::kBytes);
    load_tile(stages[stage], map, full[stage], key_of(tile), key_column);
  };
  const auto fetch_keys = [&](int tile) { fetch(shared.k, shared.k_full, op.k, tile); };
  const auto fetch_values = [&](int tile) { fetch(shared.v, shared.v_full, op.v, tile); };
  const auto await_keys = [&](int tile) { mbarrier_wait(shared.k_full[tile % C::kStages], tile / C::kStages & 1); };
  const auto await_values = [&](int tile) { mbarrier_wait(shared.v_full[tile % C::kStages], tile / C::kStages & 1); };
  const auto is_last = [&](unsigned& done) { return leads && count_done(done) % C::kConsumers == C::kConsumers - 1; };
  const auto release_keys = [&](int tile) {
    if (is_last(shared.k_done[tile % C::kStages])) fetch_keys(tile + C::kStages);
  };
  const auto release_values = [&](int tile) {
    if (is_last(shared.v_done[tile % C::kStages])) fetch_values(tile + C::kStages);
  };
  // Tiles of the others.
  const auto pass_by = [&](int from, int to) {
    for (int tile = from; leads && tile < to; ++tile) {
      await_keys(tile);
      release_keys(tile);
      await_values(tile);
      release_values(tile);
    }
  };
  if (threadIdx.x == 0) {
    for (int consumer = 0; consumer < C::kConsumers; ++consumer) {
      mbarrier_arrive_expecting(shared.q_full[consumer], C::Queries::kBytes);
      load_tile(shared.q[consumer], op.q, shared.q_full[consumer], first_row + consumer * kWarpgroupRows, column);
    }
  }
  if (warp == 0) {
    walk(shared.spans.publish(pass.query_spans, first_row, pass.q.rows));
    for (int tile = 0; leads && tile < C::kStages; ++tile) fetch_keys(tile), fetch_values(tile);
  }
  __syncthreads();
  Span seen = Span::nothing();
#pragma unroll
  for (const Span& any : shared.spans.any) seen = {.first = min(seen.first, any.first), .end = max(seen.end, any.end)};
  walk(seen);
  const WarpSpans<1> spans = shared.spans.of(warpgroup);
  // The warpgroup's own tiles.
  const bool sees = spans.any.first < spans.any.end;
  const int walk_begin = sees ? (spans.any.first - begin) / C::kKeys : 0, walk_end = sees ? ceil_div(spans.any.end - begin, C::kKeys) : 0;

  float sums[C::kHeadSize / 2] = {};  // [64, head size]
  RunningSoftmax softmax;
  if (walk_begin < walk_end) {
    if (walk_begin > 0) {
      pass_by(0, walk_begin);
      meet<C::kConsumers>(warpgroup);  // a parity tells two rounds of a stage apart, no more
    }
    WarpgroupTerms queries[C::kHeadSize / 16];  // [64, head size], where they are held
    mbarrier_wait(shared.q_full[warpgroup], 0);
    if constexpr (C::kHoldsQueries) load_terms(queries, shared.q[warpgroup]);
    const DrawKey draws = kDraws ? draw_key(pass.dropout) : DrawKey{};

    float scores[C::kKeys / 2];             // [64, keys]
    WarpgroupTerms weights[C::kKeys / 16];  // [64, keys]
    const auto issue_score_mmas = [&](float(&scores)[C::kKeys / 2], int tile) {
      await_keys(tile);
      wgmma_fence();
      if constexpr (C::kHoldsQueries) {
        multiply_rows<T>(scores, queries, shared.k[tile % C::kStages]);
      } else {
        multiply_rows<T>(scores, shared.q[warpgroup], shared.k[tile % C::kStages]);
      }
      wgmma_commit();
    };
    const auto add_values = [&](int tile) {
      await_values(tile);
      wgmma_fence();
      multiply_columns<T>(sums, weights, shared.v[tile % C::kStages]);
      wgmma_commit();
    };
    const auto weigh = [&](float(&scores)[C::kKeys / 2], int tile) {
      if (!spans.all_see(key_of(tile), key_of(tile + 1))) hide_unseen(scores, spans, key_of(tile));
      softmax_step(softmax, scores, log2_scale);
      if constexpr (kDraws) {
#pragma unroll
        for (int i = 0; i < C::kKeys / 2; i += 4) {
          bool kept[4];
          draw_kept<AttentionSide::queries>(kept, pass.dropout, draws, blockIdx.y, warp_row, key_of(tile) + 2 * i);
#pragma unroll
          for (int j = 0; j < 4; ++j) scores[i + j] = kept[j] ? scores[i + j] : 0.0F;
        }
      }
    };
    const auto finish_weights = [&](float(&scores)[C::kKeys / 2]) {
      sums_arrive(sums);
      if (softmax.moves) {
#pragma unroll
        for (int i = 0; i < C::kHeadSize / 2; ++i) sums[i] *= softmax.correction[i / 2 % 2];
      }
      as_terms<T>(weights, scores);
    };

    // The first tile.
    issue_score_mmas(scores, walk_begin);
    wgmma_wait<0>();
    sums_arrive(scores);
    release_keys(walk_begin);
    weigh(scores, walk_begin);
    as_terms<T>(weights, scores);

    // Main loop. Values are multiplied while the next tile's softmax is taken.
#pragma unroll 1
    for (int tile = walk_begin + 1; tile < walk_end; ++tile) {
      issue_score_mmas(scores, tile);
      add_values(tile - 1);
      wgmma_wait<1>();
      sums_arrive(scores);
      release_keys(tile);
      weigh(scores, tile);
      wgmma_wait<0>();
      release_values(tile - 1);
      finish_weights(scores);
    }
    add_values(walk_end - 1);
    wgmma_wait<0>();
    sums_arrive(sums);
    release_values(walk_end - 1);
  } else {
    mbarrier_wait(shared.q_full[warpgroup], 0);  // out takes its place
  }
  pass_by(walk_end, tiles);
  __syncwarp();

  // Store. A query that saw no key has no total and is zero.
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float total = quad_sum(softmax.total[half]);
    const bool blind = total == 0.0F;
    factor[half] = blind ? 0.0F : static_cast<float>(pass.dropout.kept_scale) / total;
    const std::int64_t row = warp_row + 8 * half + lane_row();
    if (pass.log_sum_exp.data != nullptr && row < pass.q.rows && lane_column() == 0) {
      pass.log_sum_exp.row(row)[blockIdx.y] = blind ? 0.0F : softmax.base[half] * scale + logf(total);
    }
  }
  stage_rows<T>(shared.q[warpgroup], 0, sums, factor);
  fence_proxy_async_shared();
  __syncwarp();
  if (lane_index() == 0 && warp_row < pass.q.rows) {
    for (int box = 0; box < C::Queries::kBoxes; ++box) {
      const std::byte* const rows = shared.q[warpgroup].boxes[box] + C::Queries::offset(warp_of_group() * kWarpRows, 0);
      tma_store(op.out, rows, column + box * kBox, warp_row);
    }
    tma_store_commit();
    tma_store_wait_read<0>();
  }
}

template <class C, class T, bool kDraws>
void launch(const CudaQueue& queue, const AttentionArgs& args) {
  const WarpgroupForward<T> op = {.q = make_tensor_map(args.q, kWarpgroupRows),
                                  .k = make_tensor_map(args.k, C::kKeys),
                                  .v = make_tensor_map(args.v, C::kKeys),
                                  .out = make_tensor_map(args.out, kWarpRows),
                                  .pass = Forward<T>(args)};
  constexpr int kBytes = sizeof(typename C::SharedStorage);
  static_assert(kBytes * C::kBlocks + 1024 * C::kBlocks <= 228 << 10,
                "an SM has 228 KiB of shared memory, 1 KiB of each block's the system's");
  TW_CUDA(cudaFuncSetAttribute(attend<C, T, kDraws>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  cudaLaunchAttribute early{};  // it may begin while the kernel before it ends
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ceil_div(args.q.rows, C::kWindow)), static_cast<unsigned>(args.heads));
  config.blockDim = dim3(C::kThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = stream_of(queue);
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, attend<C, T, kDraws>, op);
  TW_CUDA_LAUNCHED("attention");
}

}  // namespace

void attend_on_warpgroups(CudaQueue& queue, const AttentionArgs& args) {
  const auto with_type = [&]<class T>(T) {
    const bool draws = args.dropout.probability > 0.0;
    if (args.q.cols / args.heads == 64) {
      draws ? launch<Config<64, 1, 64, 2, 3>, T, true>(queue, args) : launch<Config<64, 1, 64, 2, 4>, T, false>(queue, args);
    } else {
      draws ? launch<Config<128, 2, 128, 2, 1>, T, true>(queue, args) : launch<Config<128, 2, 128, 2, 1>, T, false>(queue, args);
    }
  };
  with_half(args.q.dtype, "attention", with_type);
}

}  // namespace tilewave::attention_on_gpu
