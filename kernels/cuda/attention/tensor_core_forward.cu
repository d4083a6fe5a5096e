// The forward pass on Tensor Cores (mma.sync, ldmatrix, cp.async), after Dao, "FlashAttention-2", 2023: a block owns a window of
// 128 queries of a head, a warp 32 of them, and keys and values pass by in tiles, the next one under way while one is worked on.
// Scores, probabilities and the running softmax never leave a warp's registers: a product's sums are the next one's terms.
// P is rounded to the operands' type before P v; its sum is not.
#include "kernels/cuda/attention/tiles.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"

namespace tilewave::attention_on_gpu {
namespace {

constexpr int kM = 2, kWarpRows = 16 * kM, kWindow = kWarps * kWarpRows, kKeys = 64;
constexpr int kSub = 32, kSubN = kSub / 8;  // keys whose scores a warp holds at a time

template <int kHeadSize>
struct Storage {
  SharedRows<kWindow, kHeadSize> q;
  SharedRows<kKeys, kHeadSize> k[2], v[2];
  Span spans[kWarps];
};

// The softmax of a lane's four rows so far.
struct Softmax {
  float most[kM][2], total[kM][2];
};

// Scores become exp(scores - most) under the new maximum; totals and sums move to it.
template <int kN, int kSumsN>
__device__ __forceinline__ void softmax_step(Softmax& softmax, Sums<kM, kN>& scores, Sums<kM, kSumsN>& sums, float log2_scale) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    float correction[2];
    bool grown = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = softmax.most[m][half];
#pragma unroll
      for (int n = 0; n < kN; ++n) most = fmaxf(most, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      most = quad_max(most);
      const float base = most == -INFINITY ? 0.0F : most;  // nothing seen yet: exp(-infinity) is 0
      correction[half] = exp2_of((softmax.most[m][half] - base) * log2_scale);
      grown |= most != softmax.most[m][half];
      float total = 0.0F;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[m][n][i] = exp2_of(fmaf(scores[m][n][i], log2_scale, -base * log2_scale));
          total += scores[m][n][i];
        }
      }
      softmax.total[m][half] = fmaf(softmax.total[m][half], correction[half], total);
      softmax.most[m][half] = most;
    }
    if (__any_sync(~0u, grown)) {
#pragma unroll
      for (int n = 0; n < kSumsN; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[m][n][i] *= correction[i / 2];
      }
    }
  }
}

template <class T, int kHeadSize, bool kDraws>
__global__ void __launch_bounds__(kThreads, kHeadSize <= 64 ? 3 : 2) attend(const Forward<T> op, RowAccess access) {
  constexpr int kSteps = kHeadSize / 16, kSumsN = kHeadSize / 8;
  using Q = SharedRows<kWindow, kHeadSize>;
  using K = SharedRows<kKeys, kHeadSize>;
  extern __shared__ __align__(256) std::byte memory[];
  auto& storage = *reinterpret_cast<Storage<kHeadSize>*>(memory);
  // The last windows of a causal sequence see most: they begin first.
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kWindow, warp_row = warp_index() * kWarpRows;
  const int column = static_cast<int>(blockIdx.y) * kHeadSize, key_column = static_cast<int>(blockIdx.y / op.sharing) * kHeadSize;
  const float scale = static_cast<float>(op.scale), log2_scale = scale * kLog2E;

  // Prologue.
  load_rows(storage.q, op.q, first_row, {0, static_cast<int>(op.q.rows)}, column, access);
  const WarpSpans spans = load_spans<kM>(op.query_spans, first_row + warp_row, op.q.rows);
  const Span seen = block_span(spans.any, storage.spans);
  const int begin = seen.first / 4 * 4;  // of a quad of draws
  const int tiles = seen.first < seen.end ? (seen.end - begin + kKeys - 1) / kKeys : 0;
  const auto load_tile = [&](int tile) {
    if (tile < tiles) {
      load_rows(storage.k[tile % 2], op.k, begin + tile * kKeys, seen, key_column, access);
      load_rows(storage.v[tile % 2], op.v, begin + tile * kKeys, seen, key_column, access);
    }
    cp_async_commit();
  };
  load_tile(0);

  Sums<kM, kSumsN> sums = {};
  Softmax softmax = {{{-INFINITY, -INFINITY}, {-INFINITY, -INFINITY}}, {}};
  const auto q = LanePointer<Q>::along_rows(storage.q);
  const DrawKey draws = kDraws ? draw_key(op.dropout) : DrawKey{};

  for (int tile = 0; tile < tiles; ++tile) {
    cp_async_wait<0>();
    __syncthreads();
    load_tile(tile + 1);
    const auto k = LanePointer<K>::along_terms(storage.k[tile % 2]), v = LanePointer<K>::along_rows(storage.v[tile % 2]);
#pragma unroll 1
    for (int sub = 0; sub < kKeys; sub += kSub) {
      const int key = begin + tile * kKeys + sub;
      if (spans.none_sees(key, key + kSub)) continue;

      // Scores.
      Sums<kM, kSubN> p = {};
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        Terms<kM> queries;
#pragma unroll
        for (int m = 0; m < kM; ++m) ldmatrix(queries[m], q.at(warp_row + 16 * m, 16 * step));
        multiply_rows<T>(p, queries, k, sub, 16 * step);
      }
      if (!spans.all_see(key, key + kSub)) hide_unseen(p, spans, key);

      softmax_step(softmax, p, sums, log2_scale);
      if constexpr (kDraws) {
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int n = 0; n < kSubN; ++n) {
            bool kept[4];
            draw_kept<AttentionSide::queries>(kept, op.dropout, draws, blockIdx.y, first_row + warp_row + 16 * m, key + 8 * n);
#pragma unroll
            for (int i = 0; i < 4; ++i) p[m][n][i] = kept[i] ? p[m][n][i] : 0.0F;
          }
        }
      }

      // Values.
#pragma unroll
      for (int step = 0; step < kSub / 16; ++step) {
        Terms<kM> terms;
        as_terms<T>(terms, p, step);
        multiply_columns<T>(sums, terms, v, sub + 16 * step);
      }
    }
  }
  cp_async_wait<0>();

  // Store. A query that saw no key has no total and is zero.
  float factor[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = quad_sum(softmax.total[m][half]);
      const bool blind = total == 0.0F;
      factor[m][half] = blind ? 0.0F : static_cast<float>(op.dropout.kept_scale) / total;
      const std::int64_t row = first_row + warp_row + 16 * m + 8 * half + lane_row();
      if (op.log_sum_exp.data != nullptr && row < op.q.rows && lane_column() == 0) {
        op.log_sum_exp.row(row)[blockIdx.y] = blind ? 0.0F : softmax.most[m][half] * scale + logf(total);
      }
    }
  }
  __syncthreads();
  stage_rows<T>(storage.q, warp_row, sums, factor);
  __syncwarp();
  store_rows<kWarpRows>(storage.q, warp_row, op.out, first_row, column, access);
}

template <class T, int kHeadSize, bool kDraws>
void launch(const CudaQueue& queue, const AttentionArgs& args) {
  const Forward<T> op(args);
  const bool wide = moves_16_bytes(op.q) && moves_16_bytes(op.k) && moves_16_bytes(op.v) && moves_16_bytes(op.out);
  const dim3 grid(static_cast<unsigned>(ceil_div(args.q.rows, kWindow)), static_cast<unsigned>(args.heads));
  constexpr int kBytes = sizeof(Storage<kHeadSize>);
  static_assert(kBytes <= 99 << 10, "a block has 99 KiB of shared memory on compute capability 8.6");
  TW_CUDA(cudaFuncSetAttribute(attend<T, kHeadSize, kDraws>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  attend<T, kHeadSize, kDraws><<<grid, kThreads, kBytes, stream_of(queue)>>>(op, wide ? RowAccess::wide : RowAccess::narrow);
  TW_CUDA_LAUNCHED("attention");
}

}  // namespace

void attend_on_tensor_cores(CudaQueue& queue, const AttentionArgs& args) {
  if (args.q.rows == 0) return;
  with_head(args.q.dtype, args.q.cols / args.heads, [&]<class T, int kHeadSize>(Head<T, kHeadSize>) {
    args.dropout.probability > 0.0 ? launch<T, kHeadSize, true>(queue, args) : launch<T, kHeadSize, false>(queue, args);
  });
}

}  // namespace tilewave::attention_on_gpu
