// The backward pass on Hopper's own instructions. Adds to tensor_core_backward, whose two passes it keeps: products are wgmma's, 64
// rows of a window to a consumer warpgroup, and a producer brings the other side's tiles through a ring, so that no thread that
// multiplies loads. Scores come out with the owner's rows, so P and dS are the next products' row operand as they lie in registers,
// and tiles are read with either dimension fastest: nothing is transposed.
// Blocks stay and take window after window, whoever is free the next one: its rows are on their way while this one is worked on. A
// window's sums do not depend on who takes it.
// Rows that lie in a tile and are seen by nobody are multiplied by zeros; behind the matrix there are zeros.
#include "kernels/cuda/attention/warpgroup_tiles.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"

namespace tilewave::attention_on_gpu {
namespace {

constexpr int kTile = 64;  // rows that pass by at a time
constexpr int kSlots = 2;  // windows under way

template <int kSize, AttentionSide kOwner, bool kHasDraws>
struct Config {
  static constexpr int kHeadSize = kSize;
  static constexpr AttentionSide kSide = kOwner;
  static constexpr bool kOwnsKeys = kSide == AttentionSide::keys, kDraws = kHasDraws;
  static constexpr int kConsumers = kHeadSize == 64 && !kDraws ? 3 : 2;
  static constexpr bool kReadsAhead = kHeadSize == 64;                     // what P takes, before its scores are there
  static constexpr int kStages = kHeadSize == 64 ? 6 : kOwnsKeys ? 2 : 3;  // what shared memory has room for
  static constexpr int kWindow = kConsumers * kWarpgroupRows;
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : 40, kConsumerRegisters = kConsumers == 3 ? 160 : 232;
};

template <class C>
struct SharedStorage {
  using Tile = HeadTile<kTile, C::kHeadSize>;
  struct Pair {
    Tile first, second;
  };
  struct Statistics {
    float log_sum_exp[kTile], delta[kTile];
  };
  // A window, and the tiles that any of its rows sees. No more windows: tiles < 0.
  struct Walk {
    int first_row = 0, head = 0, begin = 0, tiles = 0;
  };
  Pair own[kSlots][C::kConsumers];
  Pair stages[C::kStages];
  Statistics statistics[C::kOwnsKeys ? C::kStages : 1];  // of the queries that pass by, log_sum_exp times -log2(e)
  WindowSpans<C::kConsumers> spans[kSlots];
  Walk walks[kSlots];
  Mbarrier own_full[kSlots], own_empty[kSlots];
  Mbarrier full[C::kStages], empty[C::kStages];
};

struct BackwardPass {
  struct Operands {
    CUtensorMap first, second;  // q and dout, or k and v
  };
  Operands own, other;
  CUtensorMap d_first, d_second;  // dq and nothing, or dk and dv
  CUtensorMap out;                // read with the queries
  Rows<const float> log_sum_exp;
  Rows<float> delta;
  const Span* spans = nullptr;
  unsigned* taken = nullptr;  // windows, beyond each block's first
  int own_rows = 0, other_rows = 0, heads = 0;
  unsigned items = 0;                           // a window of a head of queries each
  unsigned own_sharing = 1, other_sharing = 1;  // heads of queries to one of either side's operands
  float scale = 0.0F;
  Dropout dropout;
};

// The next window for this block. The last one asked for leaves the count as it was found.
__device__ __forceinline__ unsigned take_item(const BackwardPass& op) {
  unsigned item = 0;
  if (lane_index() == 0) {
    const unsigned taken = atomicAdd(op.taken, 1U);
    if (taken == op.items - 1) *op.taken = 0;
    item = gridDim.x + taken;
  }
  return __shfl_sync(~0u, item, 0);
}

// Every lane of one warp: what a lane publishes is known where a barrier counted its arrival.
template <class C>
__device__ __forceinline__ void produce(SharedStorage<C>& shared, const BackwardPass& op) {
  using Tile = typename SharedStorage<C>::Tile;
  const int lane = lane_index();
  RingPosition<kSlots> slot;
  RingPosition<C::kStages> at;
  for (unsigned index = blockIdx.x; index < op.items; index = take_item(op), slot.advance()) {
    // The longest walks begin first: those of a causal sequence's last queries and of its first keys.
    const unsigned item = C::kOwnsKeys ? index : op.items - 1 - index;
    const int first_row = static_cast<int>(item / op.heads) * C::kWindow, head = static_cast<int>(item % op.heads);
    [[maybe_unused]] const int column = head * C::kHeadSize;  // of out
    const int own_column = head / static_cast<int>(op.own_sharing) * C::kHeadSize;
    const int other_column = head / static_cast<int>(op.other_sharing) * C::kHeadSize;

    // The window's own rows.
    mbarrier_wait(shared.own_empty[slot.stage], slot.parity ^ 1);
    const Span seen = shared.spans[slot.stage].publish(op.spans, first_row, op.own_rows);
    const int begin = seen.first / 4 * 4;  // of a quad of draws
    const int tiles = seen.first < seen.end ? (seen.end - begin + kTile - 1) / kTile : 0;
    Mbarrier& own_full = shared.own_full[slot.stage];
    if (lane == 0) {
      shared.walks[slot.stage] = {.first_row = first_row, .head = head, .begin = begin, .tiles = tiles};
      mbarrier_arrive_expecting(own_full, C::kConsumers * 2 * Tile::kBytes);
      for (int group = 0; group < C::kConsumers; ++group) {
        auto& own = shared.own[slot.stage][group];
        load_tile(own.first, op.own.first, own_full, first_row + group * kWarpgroupRows, own_column);
        load_tile(own.second, op.own.second, own_full, first_row + group * kWarpgroupRows, own_column);
      }
    } else {
      mbarrier_arrive(own_full);
    }

    // out, in the first stages, two warpgroups' rows in each.
    if constexpr (!C::kOwnsKeys) {
      for (int group = 0; group < C::kConsumers; group += 2, at.advance()) {
        mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
        Mbarrier& full = shared.full[at.stage];
        auto& stage = shared.stages[at.stage];
        if (lane == 0) {
          const bool both = group + 1 < C::kConsumers;
          mbarrier_arrive_expecting(full, (both ? 2 : 1) * Tile::kBytes);
          load_tile(stage.first, op.out, full, first_row + group * kWarpgroupRows, column);
          if (both) load_tile(stage.second, op.out, full, first_row + (group + 1) * kWarpgroupRows, column);
        } else {
          mbarrier_arrive(full);
        }
      }
    }

    // The other side's tiles, and of queries what P and dS take.
    float log_sum_exp[2], delta[2];
    const auto load_statistics = [&](int tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t row = begin + tile * kTile + half * kWarp + lane;
        log_sum_exp[half] = row < op.other_rows ? op.log_sum_exp.row(row)[head] * -kLog2E : 0.0F;
        delta[half] = row < op.other_rows ? op.delta.row(row)[head] : 0.0F;
      }
    };
    if (C::kOwnsKeys && tiles > 0) load_statistics(0);
    for (int tile = 0; tile < tiles; ++tile, at.advance()) {
      mbarrier_wait(shared.empty[at.stage], at.parity ^ 1);
      if constexpr (C::kOwnsKeys) {
        auto& statistics = shared.statistics[at.stage];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          statistics.log_sum_exp[half * kWarp + lane] = log_sum_exp[half];
          statistics.delta[half * kWarp + lane] = delta[half];
        }
      }
      Mbarrier& full = shared.full[at.stage];
      if (lane == 0) {
        mbarrier_arrive_expecting(full, 2 * Tile::kBytes);
        load_tile(shared.stages[at.stage].first, op.other.first, full, begin + tile * kTile, other_column);
        load_tile(shared.stages[at.stage].second, op.other.second, full, begin + tile * kTile, other_column);
      } else {
        mbarrier_arrive(full);
      }
      if (C::kOwnsKeys && tile + 1 < tiles) load_statistics(tile + 1);
    }
  }
  mbarrier_wait(shared.own_empty[slot.stage], slot.parity ^ 1);
  if (lane == 0) shared.walks[slot.stage].tiles = -1;
  mbarrier_arrive(shared.own_full[slot.stage]);
}

// The same place, its address in a register for good.
template <class Storage>
__device__ __forceinline__ Storage& pinned(Storage& there) {
  return *static_cast<Storage*>(__cvta_shared_to_generic(__shfl_sync(~0u, shared_address(&there), 0)));
}

// delta = sum(dout * out) of a row: a quad's lanes take every fourth chunk each and then have the sum, all of them.
template <class T, class Tile>
__device__ __forceinline__ float row_delta(const Tile& dout, const Tile& out, int row) {
  float sum = 0.0F;
#pragma unroll
  for (int chunk = lane_index() % 4; chunk < Tile::kColumns / 8; chunk += 4) {
    alignas(16) T gradients[8], values[8];
    *reinterpret_cast<uint4*>(gradients) = *reinterpret_cast<const uint4*>(dout.boxes[0] + Tile::offset(row, chunk));
    *reinterpret_cast<uint4*>(values) = *reinterpret_cast<const uint4*>(out.boxes[0] + Tile::offset(row, chunk));
#pragma unroll
    for (int c = 0; c < 8; ++c) sum = fmaf(load(values[c]), load(gradients[c]), sum);
  }
  return quad_sum(sum);
}

template <class T, class C>
__device__ __forceinline__ void consume(SharedStorage<C>& shared, const BackwardPass& op) {
  using Tile = typename SharedStorage<C>::Tile;
  constexpr int kScores = kTile / 2, kSums = C::kHeadSize / 2;
  const int consumer = warpgroup_rank() - 1;
  const bool leads = threadIdx.x % kWarpgroup == 0, leads_warp = lane_index() == 0;
  const float log2_scale = op.scale * kLog2E, kept_scale = static_cast<float>(op.dropout.kept_scale);
  const DrawKey draws = C::kDraws ? draw_key(op.dropout) : DrawKey{};
  RingPosition<kSlots> slot;
  RingPosition<C::kStages> at;
  const auto await = [&] { mbarrier_wait(shared.full[at.stage], at.parity); };
  const auto release = [&](int stage) {
    __syncwarp();
    if (leads_warp) mbarrier_arrive(shared.empty[stage]);
  };
  const auto pass_by = [&] {
    await();
    release(at.stage);
    at.advance();
  };

  for (bool mirrored = false;; mirrored = !mirrored, slot.advance()) {  // who had the longer walk has the shorter one next
    // Prologue.
    mbarrier_wait(shared.own_full[slot.stage], slot.parity);
    const auto walk = shared.walks[slot.stage];
    if (walk.tiles < 0) break;
    const int group = mirrored ? C::kConsumers - 1 - consumer : consumer;
    const int first_row = walk.first_row + group * kWarpgroupRows, warp_row = 16 * warp_of_group();
    auto& own = pinned(shared.own[slot.stage][group]);
    const WarpSpans<1> spans = shared.spans[slot.stage].of(group);
    const bool blind = spans.any.first >= spans.any.end;
    const int first_tile = blind ? walk.tiles : (spans.any.first - walk.begin) / kTile;
    const int end_tile = blind ? walk.tiles : (spans.any.end - walk.begin + kTile - 1) / kTile;

    float own_log_sum_exp[2] = {}, own_delta[2] = {};  // log_sum_exp times -log2(e)
    if constexpr (!C::kOwnsKeys) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t row = first_row + warp_row + 8 * half + lane_row();
        if (row < op.own_rows) own_log_sum_exp[half] = op.log_sum_exp.row(row)[walk.head] * -kLog2E;
      }
      for (int pair = 0; pair < C::kConsumers; pair += 2) {
        await();
        if (group / 2 == pair / 2) {
          const Tile& out = group % 2 == 0 ? shared.stages[at.stage].first : shared.stages[at.stage].second;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int tile_row = warp_row + 8 * half + lane_row();
            own_delta[half] = row_delta<T>(own.second, out, tile_row);
            const std::int64_t row = first_row + tile_row;
            if (row < op.own_rows && lane_column() == 0) op.delta.row(row)[walk.head] = own_delta[half];
          }
        }
        release(at.stage);
        at.advance();
      }
    }
    float scores[kScores], d_p[kScores];              // [64, 64]
    float d_first[kSums] = {}, d_second[kSums] = {};  // [64, head size]

    // Main loop. Gradients are added while the next scores are made.
    for (int tile = 0; tile < first_tile; ++tile) pass_by();
    int previous = -1;  // the stage whose gradients are under way
    const auto release_previous = [&] {
      if (previous >= 0) release(previous);
    };
    for (int tile = first_tile; tile < end_tile; ++tile) {
      const int stage = at.stage, other_row = walk.begin + tile * kTile;
      const auto& other = shared.stages[stage];
      await();
      at.advance();

      // Scores and dP.
      wgmma_fence();
      multiply_rows<T>(scores, own.first, other.first);
      wgmma_commit();
      [[maybe_unused]] float2 log_sum_exp[kTile / 8];  // of a lane's columns, where these are the queries
      const auto read_log_sum_exp = [&] {
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n) {
          log_sum_exp[n] = *reinterpret_cast<const float2*>(&shared.statistics[stage].log_sum_exp[8 * n + lane_column()]);
        }
      };
      if constexpr (C::kOwnsKeys) {
        if constexpr (C::kReadsAhead) read_log_sum_exp();
        wgmma_wait<1>();  // no registers for dP beside the terms of gradients under way
        release_previous();
      }
      wgmma_fence();
      multiply_rows<T>(d_p, own.second, other.second);
      wgmma_commit();
      [[maybe_unused]] std::uint32_t kept = 0;  // a bit an element
      if constexpr (C::kDraws) {
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n) {
          bool keep[4];
          draw_kept<C::kSide>(keep, op.dropout, draws, static_cast<unsigned>(walk.head), first_row + warp_row, other_row + 8 * n);
#pragma unroll
          for (int i = 0; i < 4; ++i) kept |= static_cast<std::uint32_t>(keep[i]) << (4 * n + i);
        }
      }
      const auto keeps_element = [&](int i) { return (kept >> i & 1) != 0; };

      // P and dS. Draws scale dP before it meets P, and spare P itself until dS is made of it.
      wgmma_wait<1>();
      if constexpr (!C::kOwnsKeys) release_previous();
      sums_arrive(scores);
      if (!spans.all_see(other_row, other_row + kTile)) hide_unseen(scores, spans, other_row);
      if constexpr (C::kOwnsKeys && !C::kReadsAhead) read_log_sum_exp();
      float p[kScores], ds[kScores];  // [64, 64]
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        const float base = !C::kOwnsKeys ? own_log_sum_exp[i / 2 % 2] : i % 2 == 0 ? log_sum_exp[i / 4].x : log_sum_exp[i / 4].y;
        p[i] = exp2_of(fmaf(scores[i], log2_scale, base));
      }
      wgmma_wait<0>();
      sums_arrive(d_p);
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n) {
        float2 delta = {};
        if constexpr (C::kOwnsKeys) delta = *reinterpret_cast<const float2*>(&shared.statistics[stage].delta[8 * n + lane_column()]);
#pragma unroll
        for (int i = 4 * n; i < 4 * n + 4; ++i) {
          const float kept_d_p = !C::kDraws ? d_p[i] : keeps_element(i) ? d_p[i] * kept_scale : 0.0F;
          ds[i] = p[i] * (kept_d_p - (!C::kOwnsKeys ? own_delta[i / 2 % 2] : i % 2 == 0 ? delta.x : delta.y));
          if constexpr (C::kOwnsKeys && C::kDraws) p[i] = keeps_element(i) ? p[i] : 0.0F;
        }
      }

      // The gradients.
      [[maybe_unused]] WarpgroupTerms p_terms[kTile / 16];
      WarpgroupTerms ds_terms[kTile / 16];
      if constexpr (C::kOwnsKeys) as_terms<T>(p_terms, p);
      as_terms<T>(ds_terms, ds);
      wgmma_fence();
      if constexpr (C::kOwnsKeys) multiply_columns<T>(d_second, p_terms, other.second);
      multiply_columns<T>(d_first, ds_terms, other.first);
      wgmma_commit();
      previous = stage;
    }
    wgmma_wait<0>();
    release_previous();
    sums_arrive(d_first);
    sums_arrive(d_second);
    for (int tile = end_tile; tile < walk.tiles; ++tile) pass_by();

    // Store, from where the warpgroup's own rows were.
    sync_warpgroup(consumer);
    stage_rows<T>(own.first, 0, d_first, {op.scale, op.scale});
    if constexpr (C::kOwnsKeys) stage_rows<T>(own.second, 0, d_second, {kept_scale, kept_scale});
    fence_proxy_async_shared();
    sync_warpgroup(consumer);
    if (leads) {
      store_tile(op.d_first, own.first, first_row, walk.head * C::kHeadSize);
      if constexpr (C::kOwnsKeys) store_tile(op.d_second, own.second, first_row, walk.head * C::kHeadSize);
      tma_store_commit();
      tma_store_wait_read<0>();
      mbarrier_arrive(shared.own_empty[slot.stage]);
    }
  }
}

template <class T, class C>
__global__ void __launch_bounds__(C::kThreads, 1) attend_backward_in_warpgroups(const __grid_constant__ BackwardPass op) {
  extern __shared__ __align__(1024) std::byte memory[];
  auto& shared = storage_in<SharedStorage<C>>(memory);
  if (threadIdx.x == 0) {
    mbarrier_init(shared.own_full, kWarp);
    mbarrier_init(shared.own_empty, C::kConsumers);
    mbarrier_init(shared.full, kWarp);
    mbarrier_init(shared.empty, C::kConsumers * kWarps);
    mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup) {
    reg_dealloc<C::kProducerRegisters>();
    if (threadIdx.x < kWarp) produce<C>(shared, op);
  } else {
    reg_alloc<C::kConsumerRegisters>();
    consume<T, C>(pinned(shared), op);
  }
}

BackwardPass backward_pass(const AttentionBackwardArgs& args, AttentionSide side, int window) {
  const auto map = [](const ConstMatrixView& view) { return make_tensor_map(view, kTile); };
  const BackwardPass::Operands queries{.first = map(args.q), .second = map(args.dout)}, keys{.first = map(args.k), .second = map(args.v)};
  const bool owns_keys = side == AttentionSide::keys;
  const std::int64_t own_rows = owns_keys ? args.k.rows : args.q.rows;
  Span* const spans = args.spans.row<Span>(0);
  return {.own = owns_keys ? keys : queries,
          .other = owns_keys ? queries : keys,
          .d_first = map(owns_keys ? args.dk : args.dq),
          .d_second = map(owns_keys ? args.dv : args.dq),
          .out = map(args.out),
          .log_sum_exp = Rows<const float>(args.log_sum_exp),
          .delta = Rows<float>(args.delta),
          .spans = spans + (owns_keys ? args.q.rows : 0),
          .taken = reinterpret_cast<unsigned*>(spans + args.q.rows + args.k.rows) + (owns_keys ? 1 : 0),
          .own_rows = static_cast<int>(own_rows),
          .other_rows = static_cast<int>(owns_keys ? args.q.rows : args.k.rows),
          .heads = static_cast<int>(args.heads),
          .items = static_cast<unsigned>(ceil_div(own_rows, window) * args.heads),
          .own_sharing = owns_keys ? static_cast<unsigned>(heads_sharing(args)) : 1,
          .other_sharing = owns_keys ? 1 : static_cast<unsigned>(heads_sharing(args)),
          .scale = static_cast<float>(scale_of(args)),
          .dropout = Dropout(args.dropout)};
}

template <class T, class C>
void launch(const CudaQueue& queue, const AttentionBackwardArgs& args) {
  constexpr int kBytes = sizeof(SharedStorage<C>);
  static_assert(kBytes <= 227 << 10, "a block has 227 KiB of shared memory on compute capability 9.0");
  const BackwardPass pass = backward_pass(args, C::kSide, C::kWindow);
  const auto kernel = attend_backward_in_warpgroups<T, C>;
  TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  const unsigned blocks = std::min(pass.items, static_cast<unsigned>(device_of(queue).sm_count));
  kernel<<<blocks, C::kThreads, kBytes, stream_of(queue)>>>(pass);
  TW_CUDA_LAUNCHED("attention_backward");
}

}  // namespace

// The queries' pass leaves delta for the keys'.
void attend_on_warpgroups(CudaQueue& queue, const AttentionBackwardArgs& args) {
  const auto passes = [&]<class T, int kHeadSize, bool kDraws>() {
    launch<T, Config<kHeadSize, AttentionSide::queries, kDraws>>(queue, args);
    launch<T, Config<kHeadSize, AttentionSide::keys, kDraws>>(queue, args);
  };
  const auto with_draws = [&]<class T, int kHeadSize>() {
    args.dropout.probability > 0.0 ? passes.template operator()<T, kHeadSize, true>() : passes.template operator()<T, kHeadSize, false>();
  };
  const auto with_type = [&]<class T>(T) {
    args.q.cols / args.heads == 64 ? with_draws.template operator()<T, 64>() : with_draws.template operator()<T, 128>();
  };
  with_half(args.q.dtype, "attention_backward", with_type);
}

}  // namespace tilewave::attention_on_gpu
