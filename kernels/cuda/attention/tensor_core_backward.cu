// The backward pass on Tensor Cores, in two passes: windows of queries own dq and walk over keys, windows of keys own dk and dv
// and walk over queries. Seven products instead of the five of a single pass, and in return each gradient is summed in one
// warp's registers in one order: no atomics, no partial sums in memory, equal bits in every run.
// Both passes are one kernel: scores = first first^T and dP = second second^T with the owner's rows on the left (q, dout or
// k, v), so that P and dS come out as sums with the owner's rows and are the next products' terms without leaving registers.
#include "kernels/cuda/attention/tiles.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"

namespace tilewave::attention_on_gpu {
namespace {

constexpr int kSub = 32, kSubN = kSub / 8;  // columns of scores at a time

template <int kHeadSize, AttentionSide side>
struct Config {
  static constexpr bool kWideHead = kHeadSize > 64;
  static constexpr int kM = side == AttentionSide::keys && kWideHead ? 1 : 2;  // two gradients of 32 wide rows would not fit the registers
  static constexpr int kWarpRows = 16 * kM, kWindow = kWarps * kWarpRows;
  static constexpr int kTile = kWideHead ? 32 : 64;
  static constexpr bool kKeepsOwn = side == AttentionSide::queries && !kWideHead;  // in registers
};

template <int kHeadSize, AttentionSide side>
struct Storage {
  using C = Config<kHeadSize, side>;
  SharedRows<C::kWindow, kHeadSize> own_first, own_second;
  SharedRows<C::kTile, kHeadSize> first[2], second[2];
  float log_sum_exp[2][C::kTile], delta[2][C::kTile];  // of the queries that pass by
  Span spans[kWarps];
};

// delta = sum(dout * out) of a row: a quad's lanes take every fourth chunk each and then have the sum, all of them.
template <class T, class Tile>
__device__ __forceinline__ float row_delta(const Rows<const T>& out, std::int64_t row, int column, const Tile& dout, int tile_row,
                                           RowAccess access) {
  float sum = 0.0F;
  if (row < out.rows) {
#pragma unroll
    for (int chunk = lane_index() % 4; chunk < Tile::kChunks; chunk += 4) {
      const T* source = out.row(row) + column + 8 * chunk;
      alignas(16) T values[8];
      if (access == RowAccess::wide) {
        *reinterpret_cast<uint4*>(values) = *reinterpret_cast<const uint4*>(source);
      } else {
        for (int c = 0; c < 8; ++c) values[c] = source[c];
      }
      const T* gradients = reinterpret_cast<const T*>(dout.bytes + Tile::offset(tile_row, chunk));
#pragma unroll
      for (int c = 0; c < 8; ++c) sum = fmaf(load(values[c]), load(gradients[c]), sum);
    }
  }
  return quad_sum(sum);
}

template <class T, int kHeadSize, AttentionSide side, bool kDraws>
__global__ void __launch_bounds__(kThreads, 2) attend_backward(const Backward<T> op, RowAccess access) {
  using C = Config<kHeadSize, side>;
  constexpr int kM = C::kM, kSteps = kHeadSize / 16, kSumsN = kHeadSize / 8, kTile = C::kTile;
  using Own = SharedRows<C::kWindow, kHeadSize>;
  using Other = SharedRows<kTile, kHeadSize>;
  extern __shared__ __align__(256) std::byte memory[];
  auto& storage = *reinterpret_cast<Storage<kHeadSize, side>*>(memory);
  // The longest walks begin first: those of a causal sequence's last queries and of its first keys.
  const int window = static_cast<int>(side == AttentionSide::queries ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  const int first_row = window * C::kWindow, warp_row = warp_index() * C::kWarpRows;
  const int head = static_cast<int>(blockIdx.y), column = head * kHeadSize;
  const int own_column = static_cast<int>(blockIdx.y / op.own_sharing) * kHeadSize;
  const int other_column = static_cast<int>(blockIdx.y / op.other_sharing) * kHeadSize;
  const float scale = static_cast<float>(op.scale), log2_scale = scale * kLog2E;
  const float kept_scale = static_cast<float>(op.dropout.kept_scale);

  // Prologue.
  const std::int64_t rows = op.own.first.rows;
  load_rows(storage.own_first, op.own.first, first_row, {0, static_cast<int>(rows)}, own_column, access);
  load_rows(storage.own_second, op.own.second, first_row, {0, static_cast<int>(rows)}, own_column, access);
  const WarpSpans spans = load_spans<kM>(op.spans, first_row + warp_row, rows);
  const Span seen = block_span(spans.any, storage.spans);
  const int begin = seen.first / 4 * 4;  // of a quad of draws
  const int tiles = seen.first < seen.end ? (seen.end - begin + kTile - 1) / kTile : 0;
  const auto load_tile = [&](int tile) {
    if (tile < tiles) {
      const int row = begin + tile * kTile;
      load_rows(storage.first[tile % 2], op.other.first, row, seen, other_column, access);
      load_rows(storage.second[tile % 2], op.other.second, row, seen, other_column, access);
      if (side == AttentionSide::keys && threadIdx.x < 2 * kTile) {
        const int i = static_cast<int>(threadIdx.x) % kTile;
        const bool present = seen.holds(row + i);
        const std::int64_t from = present ? row + i : seen.first;
        const bool of_sums = threadIdx.x < kTile;
        cp_async<4>(shared_address(of_sums ? &storage.log_sum_exp[tile % 2][i] : &storage.delta[tile % 2][i]),
                    of_sums ? op.log_sum_exp.row(from) + head : op.delta.row(from) + head, present ? 4 : 0);
      }
    }
    cp_async_commit();
  };
  load_tile(0);
  cp_async_wait<0>();
  __syncthreads();

  float own_log_sum_exp[kM][2], own_delta[kM][2];  // log_sum_exp times log2(e)
  if constexpr (side == AttentionSide::queries) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int tile_row = warp_row + 16 * m + 8 * half + lane_row();
        const std::int64_t row = first_row + tile_row;
        own_delta[m][half] = row_delta(op.out, row, column, storage.own_second, tile_row, access);
        own_log_sum_exp[m][half] = row < rows ? op.log_sum_exp.row(row)[head] * kLog2E : 0.0F;
        if (row < rows && lane_column() == 0) op.delta.row(row)[head] = own_delta[m][half];
      }
    }
  }
  const auto own_first = LanePointer<Own>::along_rows(storage.own_first), own_second = LanePointer<Own>::along_rows(storage.own_second);
  Terms<kM> own_first_terms[C::kKeepsOwn ? kSteps : 1], own_second_terms[C::kKeepsOwn ? kSteps : 1];
  const auto load_own = [&](Terms<kM>& terms, const LanePointer<Own>& own, int step) {
#pragma unroll
    for (int m = 0; m < kM; ++m) ldmatrix(terms[m], own.at(warp_row + 16 * m, 16 * step));
  };
  if constexpr (C::kKeepsOwn) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      load_own(own_first_terms[step], own_first, step);
      load_own(own_second_terms[step], own_second, step);
    }
  }
  Sums<kM, kSumsN> d_first = {}, d_second = {};
  const DrawKey draws = kDraws ? draw_key(op.dropout) : DrawKey{};

  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) {
      cp_async_wait<0>();
      __syncthreads();
    }
    load_tile(tile + 1);
    const auto first_by_terms = LanePointer<Other>::along_terms(storage.first[tile % 2]);
    const auto second_by_terms = LanePointer<Other>::along_terms(storage.second[tile % 2]);
    const auto first_by_rows = LanePointer<Other>::along_rows(storage.first[tile % 2]);
    const auto second_by_rows = LanePointer<Other>::along_rows(storage.second[tile % 2]);
#pragma unroll 1
    for (int sub = 0; sub < kTile; sub += kSub) {
      const int other_row = begin + tile * kTile + sub;
      if (spans.none_sees(other_row, other_row + kSub)) continue;

      // Scores and dP.
      Sums<kM, kSubN> p = {}, ds = {};
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int held = C::kKeepsOwn ? step : 0;
        if constexpr (!C::kKeepsOwn) load_own(own_first_terms[0], own_first, step);
        multiply_rows<T>(p, own_first_terms[held], first_by_terms, sub, 16 * step);
        if constexpr (!C::kKeepsOwn) load_own(own_second_terms[0], own_second, step);
        multiply_rows<T>(ds, own_second_terms[held], second_by_terms, sub, 16 * step);
      }

      // P and dS. Draws scale dP before it meets P, and spare P itself until dS is made of it.
      if (!spans.all_see(other_row, other_row + kSub)) hide_unseen(p, spans, other_row);
      std::uint32_t kept = 0;  // a bit an element
      if constexpr (kDraws) {
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int n = 0; n < kSubN; ++n) {
            bool keep[4];
            draw_kept<side>(keep, op.dropout, draws, blockIdx.y, first_row + warp_row + 16 * m, other_row + 8 * n);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              kept |= static_cast<std::uint32_t>(keep[i]) << ((m * kSubN + n) * 4 + i);
              ds[m][n][i] = keep[i] ? ds[m][n][i] * kept_scale : 0.0F;
            }
          }
        }
      }
#pragma unroll
      for (int n = 0; n < kSubN; ++n) {
        float2 log_sum_exp, delta;  // of a lane's two columns, where these are the queries
        if constexpr (side == AttentionSide::keys) {
          const int at = sub + 8 * n + lane_column();
          log_sum_exp = *reinterpret_cast<const float2*>(&storage.log_sum_exp[tile % 2][at]);
          delta = *reinterpret_cast<const float2*>(&storage.delta[tile % 2][at]);
          log_sum_exp = {log_sum_exp.x * kLog2E, log_sum_exp.y * kLog2E};
        }
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float row_log_sum_exp = side == AttentionSide::queries ? own_log_sum_exp[m][i / 2]
                                          : i % 2 == 0                   ? log_sum_exp.x
                                                                         : log_sum_exp.y;
            const float row_delta = side == AttentionSide::queries ? own_delta[m][i / 2] : i % 2 == 0 ? delta.x : delta.y;
            p[m][n][i] = exp2_of(fmaf(p[m][n][i], log2_scale, -row_log_sum_exp));
            ds[m][n][i] = p[m][n][i] * (ds[m][n][i] - row_delta);
          }
        }
      }
      if constexpr (side == AttentionSide::keys && kDraws) {
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int n = 0; n < kSubN; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              if ((kept >> ((m * kSubN + n) * 4 + i) & 1) == 0) p[m][n][i] = 0.0F;
            }
          }
        }
      }

      // The gradients.
#pragma unroll
      for (int step = 0; step < kSub / 16; ++step) {
        Terms<kM> terms;
        as_terms<T>(terms, ds, step);
        multiply_columns<T>(d_first, terms, first_by_rows, sub + 16 * step);
        if constexpr (side == AttentionSide::keys) {
          as_terms<T>(terms, p, step);
          multiply_columns<T>(d_second, terms, second_by_rows, sub + 16 * step);
        }
      }
    }
  }

  // Store. A warp's own rows are its alone by now.
  const auto store_gradient = [&](Own& tile, const Rows<T>& gradient, const Sums<kM, kSumsN>& sums, float by) {
    float factor[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m) factor[m][0] = factor[m][1] = by;
    stage_rows<T>(tile, warp_row, sums, factor);
    __syncwarp();
    store_rows<C::kWarpRows>(tile, warp_row, gradient, first_row, column, access);
  };
  __syncwarp();
  store_gradient(storage.own_first, op.d_first, d_first, scale);
  if constexpr (side == AttentionSide::keys) store_gradient(storage.own_second, op.d_second, d_second, kept_scale);
}

template <class T, int kHeadSize, AttentionSide side, bool kDraws>
void launch(const CudaQueue& queue, const AttentionBackwardArgs& args) {
  using C = Config<kHeadSize, side>;
  const Backward<T> op(args, side);
  if (op.own.first.rows == 0) return;
  const bool wide = moves_16_bytes(op.own.first) && moves_16_bytes(op.own.second) && moves_16_bytes(op.other.first) &&
                    moves_16_bytes(op.other.second) && moves_16_bytes(op.out) && moves_16_bytes(op.d_first) && moves_16_bytes(op.d_second);
  const dim3 grid(static_cast<unsigned>(ceil_div(op.own.first.rows, C::kWindow)), static_cast<unsigned>(args.heads));
  constexpr int kBytes = sizeof(Storage<kHeadSize, side>);
  static_assert(kBytes <= 99 << 10, "a block has 99 KiB of shared memory on compute capability 8.6");
  TW_CUDA(cudaFuncSetAttribute(attend_backward<T, kHeadSize, side, kDraws>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  attend_backward<T, kHeadSize, side, kDraws><<<grid, kThreads, kBytes, stream_of(queue)>>>(op, wide ? RowAccess::wide : RowAccess::narrow);
  TW_CUDA_LAUNCHED("attention_backward");
}

}  // namespace

// The queries' pass leaves delta for the keys'.
void attend_on_tensor_cores(CudaQueue& queue, const AttentionBackwardArgs& args) {
  with_head(args.q.dtype, args.q.cols / args.heads, [&]<class T, int kHeadSize>(Head<T, kHeadSize>) {
    const auto passes = [&]<bool kDraws>(std::bool_constant<kDraws>) {
      launch<T, kHeadSize, AttentionSide::queries, kDraws>(queue, args);
      launch<T, kHeadSize, AttentionSide::keys, kDraws>(queue, args);
    };
    args.dropout.probability > 0.0 ? passes(std::true_type{}) : passes(std::false_type{});
  });
}

}  // namespace tilewave::attention_on_gpu
