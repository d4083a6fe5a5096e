// The backward pass over short segments on Tensor Cores, in one pass: a warp has its sixteen queries' scores and dP whole, and so
// delta as a sum of its registers. Rounded P and dS go through shared memory once, after which a warp owns sixteen keys.
//   a warp's queries:  S = q k^T, dP = dout v^T, delta = sum(P dP), dS = P (dP - delta), dq = dS k
//   a warp's keys:     dv = P^T dout, dk = dS^T q
// Five products; each gradient is summed in one warp's registers in one order.
#include "kernels/cuda/attention/segment_tiles.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave::attention_on_gpu {
namespace {

template <class T>
struct SegmentBackward {
  Rows<const T> q, k, v, dout;
  Rows<const float> log_sum_exp;
  Rows<T> dq, dk, dv;
  Segments segments;
  int heads = 0;
  Mask mask = Mask::none;
  float scale = 0.0F;  // of the scores
  Dropout dropout;
  RowAccess access = RowAccess::narrow;

  explicit SegmentBackward(const AttentionBackwardArgs& args)
      : q(args.q),
        k(args.k),
        v(args.v),
        dout(args.dout),
        log_sum_exp(args.log_sum_exp),
        dq(args.dq),
        dk(args.dk),
        dv(args.dv),
        segments(args),
        heads(static_cast<int>(args.heads)),
        mask(args.mask),
        scale(static_cast<float>(scale_of(args))),
        dropout(args.dropout),
        access(moves_16_bytes(q) && moves_16_bytes(k) && moves_16_bytes(v) && moves_16_bytes(dout) && moves_16_bytes(dq) &&
                       moves_16_bytes(dk) && moves_16_bytes(dv)
                   ? RowAccess::wide
                   : RowAccess::narrow) {}
};

using SharedScores = SharedRows<kTileRows, kTileRows>;  // [queries, keys of their head]

template <int kHeadSize>
struct Storage {
  SharedRows<kTileRows, kHeadSize> q, k, dout;
  union {
    SharedRows<kTileRows, kHeadSize> v;
    SharedScores p;  // once dP is made
  };
  SharedScores ds;
  SharedWork<kHeadSize <= 64 ? 2 : 1> work;
  unsigned covered[kWindowWords];
};

template <int kHeadSize>
constexpr int kResident = kHeadSize > 64 ? 3 : 5;  // blocks of an SM

template <int kParts, class T, int kHeadSize>
__device__ __forceinline__ void load(Storage<kHeadSize>& storage, const SegmentBackward<T>& op, const Work& work) {
  const Segment& segment = work.segment;
  load_segment<kParts>(storage.q, op.q, segment.q_begin, segment.q_length, work, op.heads, op.access);
  load_segment<kParts>(storage.k, op.k, segment.k_begin, segment.k_length, work, op.heads, op.access);
  load_segment<kParts>(storage.dout, op.dout, segment.q_begin, segment.q_length, work, op.heads, op.access);
  load_segment<kParts>(storage.v, op.v, segment.k_begin, segment.k_length, work, op.heads, op.access);
  cp_async_commit();
}

template <class T, int kHeadSize, int kParts>
__device__ __forceinline__ void attend_segment(Storage<kHeadSize>& storage, const SegmentBackward<T>& op, const Work& work) {
  constexpr int kN = 2 * kParts, kSteps = kHeadSize / 16;
  using Tile = SharedRows<kTileRows, kHeadSize>;
  const Segment segment = work.segment;
  const WarpPlace<kParts> place(work, op.heads);
  const float log2_scale = op.scale * kLog2E, kept_scale = static_cast<float>(op.dropout.kept_scale);

  float log_sum_exp[2];  // times log2(e)
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = place.row + 8 * half + lane_row();
    const bool present = place.present && query < segment.q_length;
    log_sum_exp[half] = present ? op.log_sum_exp.row(segment.q_begin + query)[place.head] * kLog2E : 0.0F;
  }
  const Kept<kParts> kept = draw_kept(op.dropout, place, segment);
  cp_async_wait<0>();
  __syncthreads();

  // Scores and dP.
  Sums<1, kN> p = {}, ds = {};  // [16 queries, keys]
  {
    const auto q = opaque(LanePointer<Tile>::along_rows(storage.q)), dout = opaque(LanePointer<Tile>::along_rows(storage.dout)),
               k = opaque(LanePointer<Tile>::along_terms(storage.k)), v = opaque(LanePointer<Tile>::along_terms(storage.v));
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Terms<1> terms;
      ldmatrix(terms[0], q.at(place.tile_row, 16 * step));
      multiply_rows<T>(p, terms, k, place.head_row, 16 * step);
      ldmatrix(terms[0], dout.at(place.tile_row, 16 * step));
      multiply_rows<T>(ds, terms, v, place.head_row, 16 * step);
    }
  }
  __syncthreads();  // v is free

  // P and dS. Draws scale dP before it meets P, and spare P itself until dS is made of it.
  hide_unseen(p, place, segment, op.mask);
  if (op.dropout.draws()) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[0][n][i] = kept(n, i) ? ds[0][n][i] * kept_scale : 0.0F;
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float delta = 0.0F;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        p[0][n][i] = exp2_of(fmaf(p[0][n][i], log2_scale, -log_sum_exp[half]));
        delta = fmaf(p[0][n][i], ds[0][n][i], delta);
      }
    }
    delta = quad_sum(delta);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) ds[0][n][i] = p[0][n][i] * (ds[0][n][i] - delta);
    }
  }
  if (op.dropout.draws()) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) p[0][n][i] = kept(n, i) ? p[0][n][i] : 0.0F;
    }
  }
  constexpr float kAsTheyAre[1][2] = {{1.0F, 1.0F}};
  stage_rows<T>(storage.p, place.tile_row, p, kAsTheyAre);
  stage_rows<T>(storage.ds, place.tile_row, ds, kAsTheyAre);

  Sums<1, kHeadSize / 8> sums = {};  // [16 queries or keys, D]
  const auto store = [&](const Rows<T>& gradient, int begin, int length, float by) {
    const float factor[1][2] = {{by, by}};
    stage_rows<T>(storage.k, place.tile_row, sums, factor);
    __syncwarp();
    store_segment(storage.k, place, gradient, begin, length, op.access);
    __syncwarp();
  };

  // dq.
  const auto k = opaque(LanePointer<Tile>::along_rows(storage.k));
#pragma unroll
  for (int step = 0; step < kParts; ++step) {
    Terms<1> terms;
    as_terms<T>(terms, ds, step);
    multiply_columns<T>(sums, terms, k, place.head_row + 16 * step);
  }
  __syncthreads();  // P and dS are there, and k is free
  store(op.dq, segment.q_begin, segment.q_length, op.scale);

  // dv and dk.
  const auto gradient_of_keys = [&](const SharedScores& scores, const Tile& rows, const Rows<T>& gradient, float by) {
    const auto transposed = opaque(LanePointer<SharedScores>::along_terms(scores));
    const auto columns = opaque(LanePointer<Tile>::along_rows(rows));
#pragma unroll
    for (int n = 0; n < kHeadSize / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[0][n][i] = 0.0F;
    }
#pragma unroll
    for (int step = 0; step < kParts; ++step) {
      Terms<1> terms;
      ldmatrix_transposed(terms[0], transposed.at(place.head_row + 16 * step, place.row));
      multiply_columns<T>(sums, terms, columns, place.head_row + 16 * step);
    }
    store(gradient, segment.k_begin, segment.k_length, by);
  };
  gradient_of_keys(storage.p, storage.dout, op.dv, kept_scale);
  gradient_of_keys(storage.ds, storage.q, op.dk, op.scale);
  __syncthreads();
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kThreads, kResident<kHeadSize>)
    attend_segments_backward(const SegmentBackward<T> op, unsigned query_windows, unsigned windows) {
  extern __shared__ __align__(256) std::byte memory[];
  auto& storage = *reinterpret_cast<Storage<kHeadSize>*>(memory);
  const auto& found = storage.work;
  for_each_found(storage.work, op.segments, op.heads, [&](int count) {
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const Work work = found[i];
      with_parts(work.segment, [&]<int kParts>(Parts<kParts>) {
        load<kParts>(storage, op, work);
        attend_segment<T, kHeadSize, kParts>(storage, op, work);
      });
    }
  });
  for_each_window(windows, [&](unsigned window) {
    if (window < query_windows) {
      for_each_row_outside(storage.covered, op.segments, AttentionSide::queries, window,
                           [&](std::int64_t row) { clear_row(op.dq, row, op.heads * kHeadSize, op.access); });
    } else {
      for_each_row_outside(storage.covered, op.segments, AttentionSide::keys, window - query_windows, [&](std::int64_t row) {
        clear_row(op.dk, row, op.heads * kHeadSize, op.access);
        clear_row(op.dv, row, op.heads * kHeadSize, op.access);
      });
    }
  });
}

template <class T, int kHeadSize>
void launch(const CudaQueue& queue, const AttentionBackwardArgs& args) {
  constexpr int kBytes = sizeof(Storage<kHeadSize>);
  static_assert(kBytes <= 99 << 10, "a block has 99 KiB of shared memory on compute capability 8.6");
  const unsigned query_windows = windows_of(args.q.rows), windows = query_windows + windows_of(args.k.rows);
  const unsigned blocks = working_blocks(args.segments.rows * args.heads, windows, kResident<kHeadSize> * device_of(queue).sm_count);
  TW_CUDA(cudaFuncSetAttribute(attend_segments_backward<T, kHeadSize>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  attend_segments_backward<T, kHeadSize><<<blocks, kThreads, kBytes, stream_of(queue)>>>(SegmentBackward<T>(args), query_windows, windows);
  TW_CUDA_LAUNCHED("attention_backward");
}

}  // namespace

void attend_short_segments(CudaQueue& queue, const AttentionBackwardArgs& args) {
  if (args.q.rows == 0 && args.k.rows == 0) return;
  with_head(args.q.dtype, args.q.cols / args.heads, [&]<class T, int kHeadSize>(Head<T, kHeadSize>) { launch<T, kHeadSize>(queue, args); });
}

}  // namespace tilewave::attention_on_gpu
