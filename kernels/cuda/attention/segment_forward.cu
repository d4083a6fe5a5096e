// The forward pass over short segments on Tensor Cores (mma.sync, ldmatrix, cp.async): a block has queries, keys and values of a
// segment whole, a warp sixteen queries with all their scores, so that a softmax is one step and nothing passes by. The next
// segment is under way while one is worked on.
// P is rounded to the operands' type before P v; its sum is not.
#include "kernels/cuda/attention/segment_tiles.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave::attention_on_gpu {
namespace {

template <class T>
struct SegmentForward {
  Rows<const T> q, k, v;
  Rows<T> out;
  Rows<float> log_sum_exp;  // no data: not asked for
  Segments segments;
  int heads = 0;
  Mask mask = Mask::none;
  float scale = 0.0F;  // of the scores
  Dropout dropout;
  RowAccess access = RowAccess::narrow;

  explicit SegmentForward(const AttentionArgs& args)
      : q(args.q),
        k(args.k),
        v(args.v),
        out(args.out),
        log_sum_exp(args.log_sum_exp),
        segments(args),
        heads(static_cast<int>(args.heads)),
        mask(args.mask),
        scale(static_cast<float>(scale_of(args))),
        dropout(args.dropout),
        access(moves_16_bytes(q) && moves_16_bytes(k) && moves_16_bytes(v) && moves_16_bytes(out) ? RowAccess::wide : RowAccess::narrow) {}
};

template <int kHeadSize>
struct Tiles {
  SharedRows<kTileRows, kHeadSize> q, k, v;
};
template <int kHeadSize>
struct Storage {
  Tiles<kHeadSize> tiles[2];
  SharedWork<kHeadSize <= 64 ? 2 : 1> work;
  unsigned covered[kWindowWords];
};

template <int kHeadSize>
constexpr int kResident = kHeadSize > 64   ? 2
                          : kHeadSize > 32 ? 4
                                           : 6;  // blocks of an SM

template <class T, int kHeadSize>
__device__ __forceinline__ void load(Tiles<kHeadSize>& tiles, const SegmentForward<T>& op, const Work& work) {
  const Segment& segment = work.segment;
  with_parts(segment, [&]<int kParts>(Parts<kParts>) {
    load_segment<kParts>(tiles.q, op.q, segment.q_begin, segment.q_length, work, op.heads, op.access);
    load_segment<kParts>(tiles.k, op.k, segment.k_begin, segment.k_length, work, op.heads, op.access);
    load_segment<kParts>(tiles.v, op.v, segment.k_begin, segment.k_length, work, op.heads, op.access);
  });
}

// Waits for all but the last tiles under way.
template <class T, int kHeadSize, int kParts>
__device__ __forceinline__ void attend_segment(Tiles<kHeadSize>& tiles, const SegmentForward<T>& op, const Work& work) {
  constexpr int kN = 2 * kParts, kSteps = kHeadSize / 16;
  using Tile = SharedRows<kTileRows, kHeadSize>;
  const Segment segment = work.segment;
  const WarpPlace<kParts> place(work, op.heads);
  const Kept<kParts> kept = draw_kept(op.dropout, place, segment);
  cp_async_wait<1>();
  __syncthreads();

  if (place.present && place.row < segment.q_length) {
    const auto q = opaque(LanePointer<Tile>::along_rows(tiles.q)), k = opaque(LanePointer<Tile>::along_terms(tiles.k)),
               v = opaque(LanePointer<Tile>::along_rows(tiles.v));

    // Scores.
    Sums<1, kN> p = {};  // [16 queries, keys]
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Terms<1> queries;
      ldmatrix(queries[0], q.at(place.tile_row, 16 * step));
      multiply_rows<T>(p, queries, k, place.head_row, 16 * step);
    }
    hide_unseen(p, place, segment, op.mask);

    // Softmax.
    const float log2_scale = op.scale * kLog2E;
    float factor[1][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = -INFINITY;
#pragma unroll
      for (int n = 0; n < kN; ++n) most = fmaxf(most, fmaxf(p[0][n][2 * half], p[0][n][2 * half + 1]));
      most = quad_max(most);
      const float base = most == -INFINITY ? 0.0F : most * log2_scale;  // nothing seen: exp(-infinity) is 0
      float total = 0.0F;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          p[0][n][i] = exp2_of(fmaf(p[0][n][i], log2_scale, -base));
          total += p[0][n][i];
        }
      }
      total = quad_sum(total);
      const bool blind = total == 0.0F;
      factor[0][half] = blind ? 0.0F : static_cast<float>(op.dropout.kept_scale) / total;
      const int query = place.row + 8 * half + lane_row();
      if (op.log_sum_exp.data != nullptr && query < segment.q_length && lane_column() == 0) {
        op.log_sum_exp.row(segment.q_begin + query)[place.head] = blind ? 0.0F : most * op.scale + logf(total);
      }
    }
    if (op.dropout.draws()) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) p[0][n][i] = kept(n, i) ? p[0][n][i] : 0.0F;
      }
    }

    // Values.
    Sums<1, kHeadSize / 8> sums = {};  // [16 queries, D]
#pragma unroll
    for (int step = 0; step < kParts; ++step) {
      Terms<1> terms;
      as_terms<T>(terms, p, step);
      multiply_columns<T>(sums, terms, v, place.head_row + 16 * step);
    }

    // Store, by way of the warp's own queries.
    __syncwarp();
    stage_rows<T>(tiles.q, place.tile_row, sums, factor);
    __syncwarp();
    store_segment(tiles.q, place, op.out, segment.q_begin, segment.q_length, op.access);
  }
  __syncthreads();
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kThreads, kResident<kHeadSize>) attend_segments(const SegmentForward<T> op, unsigned windows) {
  extern __shared__ __align__(256) std::byte memory[];
  auto& storage = *reinterpret_cast<Storage<kHeadSize>*>(memory);
  const auto& found = storage.work;
  for_each_found(storage.work, op.segments, op.heads, [&](int count) {
    load(storage.tiles[0], op, found[0]);
    cp_async_commit();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      if (i + 1 < count) load(storage.tiles[(i + 1) % 2], op, found[i + 1]);
      cp_async_commit();
      const Work work = found[i];
      with_parts(work.segment, [&]<int kParts>(Parts<kParts>) { attend_segment<T, kHeadSize, kParts>(storage.tiles[i % 2], op, work); });
    }
  });
  for_each_window(windows, [&](unsigned window) {
    for_each_row_outside(storage.covered, op.segments, AttentionSide::queries, window, [&](std::int64_t row) {
      clear_row(op.out, row, op.heads * kHeadSize, op.access);
      if (op.log_sum_exp.data != nullptr) clear_row(op.log_sum_exp, row, op.heads, RowAccess::narrow);
    });
  });
}

template <class T, int kHeadSize>
void launch(const CudaQueue& queue, const AttentionArgs& args) {
  constexpr int kBytes = sizeof(Storage<kHeadSize>);
  static_assert(kBytes <= 99 << 10, "a block has 99 KiB of shared memory on compute capability 8.6");
  const unsigned windows = windows_of(args.q.rows);
  const unsigned blocks = working_blocks(args.segments.rows * args.heads, windows, kResident<kHeadSize> * device_of(queue).sm_count);
  TW_CUDA(cudaFuncSetAttribute(attend_segments<T, kHeadSize>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  attend_segments<T, kHeadSize><<<blocks, kThreads, kBytes, stream_of(queue)>>>(SegmentForward<T>(args), windows);
  TW_CUDA_LAUNCHED("attention");
}

}  // namespace

void attend_short_segments(CudaQueue& queue, const AttentionArgs& args) {
  if (args.q.rows == 0) return;
  with_head(args.q.dtype, args.q.cols / args.heads, [&]<class T, int kHeadSize>(Head<T, kHeadSize>) { launch<T, kHeadSize>(queue, args); });
}

}  // namespace tilewave::attention_on_gpu
