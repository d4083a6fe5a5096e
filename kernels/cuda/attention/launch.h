// What the attention kernels share: operands as a kernel takes them, and the span of rows that a row sees. With spans a kernel
// knows neither segments nor masks: query i sees the keys of its span and key j is seen by the queries of its own, so blocks are
// windows over all rows, whatever sequences lie in them, and a row outside every segment is one that sees nothing.
#pragma once

#include <climits>
#include <cmath>

#include "kernels/core/device.h"
#include "kernels/cuda/core/elements.h"
#include "kernels/math/random.h"
#include "kernels/ops/attention.h"

namespace tilewave::attention_on_gpu {

// Rows first .. end - 1.
struct Span {
  int first = 0, end = 0;

  __device__ bool holds(std::int64_t row) const { return row >= first && row < end; }
  // Nothing, as what adds nothing to a union and lies within no tile.
  static __device__ constexpr Span nothing() { return {.first = INT_MAX, .end = 0}; }
};

// A matrix [rows, heads D]: of keys and values as many heads as there are, each shared by a group of heads of queries.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t ld = 0, rows = 0;

  Rows() = default;
  explicit Rows(const MatrixView& view) : data(view.row<T>(0)), ld(view.ld), rows(view.rows) {}
  explicit Rows(const ConstMatrixView& view) : data(view.row<T>(0)), ld(view.ld), rows(view.rows) {}
  __device__ T* row(std::int64_t index) const { return data + index * ld; }
};

struct Dropout {
  std::uint32_t threshold = 0;  // 0: keep all
  std::uint32_t site = 0;
  TokenSide queries = TokenSide::target, keys = TokenSide::target;
  double kept_scale = 1.0;  // 1 / (1 - probability)
  const StepState* state = nullptr;

  Dropout() = default;
  explicit Dropout(const AttentionDropout& dropout)
      : threshold(keep_threshold(dropout.probability)),
        site(dropout.site),
        queries(dropout.queries),
        keys(dropout.keys),
        kept_scale(1.0 / (1.0 - dropout.probability)),
        state(dropout.probability > 0.0 ? dropout.state : nullptr) {}
  __device__ bool draws() const { return state != nullptr; }
};

// What tells a launch's draws from all others of a run, and where its rows begin among those of the step.
struct DrawKey {
  std::uint64_t key = 0;
  std::uint32_t site = 0;
  std::uint32_t first_query = 0, first_quad = 0;  // of keys

  // The draws of a query and four keys.
  __device__ __forceinline__ PhiloxCounter operator()(std::uint32_t query, std::uint32_t quad, unsigned head) const {
    return philox(key, {first_query + query, first_quad + quad, site, head});
  }
};
__device__ inline DrawKey draw_key(const Dropout& dropout) {
  const StepState& state = *dropout.state;
  return {.key = dropout_key(state.seed, state.step),
          .site = state.place.first_site + dropout.site,
          .first_query = state.place.first_row(dropout.queries),
          .first_quad = state.place.first_row(dropout.keys) / 4};
}

template <class T>
struct Forward {
  using Statistic = Arithmetic<T>;
  Rows<const T> q, k, v;
  Rows<T> out;
  Rows<Statistic> log_sum_exp;  // no data: not asked for
  const Span* query_spans = nullptr;
  int head_size = 0;
  unsigned sharing = 1;  // heads of queries that share one of keys and values
  double scale = 0.0;    // of the scores
  Dropout dropout;

  explicit Forward(const AttentionArgs& args)
      : q(args.q),
        k(args.k),
        v(args.v),
        out(args.out),
        log_sum_exp(args.log_sum_exp),
        query_spans(args.spans.row<Span>(0)),
        head_size(static_cast<int>(args.q.cols / args.heads)),
        sharing(static_cast<unsigned>(heads_sharing(args))),
        scale(scale_of(args)),
        dropout(args.dropout) {}
};

// The backward pass runs twice, each time over windows of one side's rows, which own their gradients: no two blocks write one.
//   queries: dq = dS k     keys: dk = dS^T q, dv = P^T dout
// Each head of queries has its own part of dk and dv, also where heads share keys and values; repeat_heads_backward sums them.
enum class AttentionSide { queries, keys };

// An owner's rows are held against the other side's: scores = first first^T, dP = second second^T.
template <class T>
struct Backward {
  using Statistic = Arithmetic<T>;
  struct Operands {
    Rows<const T> first, second;  // q and dout, or k and v
  };
  Operands own, other;
  Rows<T> d_first, d_second;  // dq and nothing, or dk and dv
  Rows<const T> out;          // read with the queries
  Rows<const Statistic> log_sum_exp;
  Rows<Statistic> delta;  // written with the queries, read with the keys
  const Span* spans = nullptr;
  int head_size = 0;
  unsigned own_sharing = 1, other_sharing = 1;  // heads of queries to one of either side's operands
  double scale = 0.0;
  Dropout dropout;

  Backward(const AttentionBackwardArgs& args, AttentionSide side)
      : out(args.out),
        log_sum_exp(args.log_sum_exp),
        delta(args.delta),
        head_size(static_cast<int>(args.q.cols / args.heads)),
        scale(scale_of(args)),
        dropout(args.dropout) {
    const Operands queries{Rows<const T>(args.q), Rows<const T>(args.dout)}, keys{Rows<const T>(args.k), Rows<const T>(args.v)};
    if (side == AttentionSide::queries) {
      own = queries, other = keys;
      other_sharing = static_cast<unsigned>(heads_sharing(args));
      d_first = Rows<T>(args.dq);
      spans = args.spans.row<Span>(0);
    } else {
      own = keys, other = queries;
      own_sharing = static_cast<unsigned>(heads_sharing(args));
      d_first = Rows<T>(args.dk), d_second = Rows<T>(args.dv);
      spans = args.spans.row<Span>(0) + args.q.rows;
    }
  }
};

// Each launches one kernel a pass. Warpgroups (Hopper's own instructions) take bf16 and f16 with heads of 64 and 128 where TMA takes every
// matrix; Tensor Cores take those types with heads of 32, 64 and 128; CUDA cores take everything.
void attend_on_cuda_cores(CudaQueue& queue, const AttentionArgs& args);
void attend_on_cuda_cores(CudaQueue& queue, const AttentionBackwardArgs& args);
void attend_on_tensor_cores(CudaQueue& queue, const AttentionArgs& args);
void attend_on_tensor_cores(CudaQueue& queue, const AttentionBackwardArgs& args);
inline bool warpgroups_take(const DeviceInfo& device, DType dtype, std::int64_t head_size) {
  return device.capability == 90 && (dtype == DType::bf16 || dtype == DType::f16) && (head_size == 64 || head_size == 128);
}
inline bool copy_engine_takes(const ConstMatrixView& view) {
  return view.rows > 0 && reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.ld * size_of(view.dtype) % 16 == 0;
}
inline bool warpgroups_take(const DeviceInfo& device, const AttentionArgs& args) {
  return warpgroups_take(device, args.q.dtype, args.q.cols / args.heads) && copy_engine_takes(args.q) && copy_engine_takes(args.k) &&
         copy_engine_takes(args.v) && copy_engine_takes(args.out);
}
inline bool warpgroups_take(const DeviceInfo& device, const AttentionBackwardArgs& args) {
  return warpgroups_take(device, args.q.dtype, args.q.cols / args.heads) && copy_engine_takes(args.q) && copy_engine_takes(args.k) &&
         copy_engine_takes(args.v) && copy_engine_takes(args.out) && copy_engine_takes(args.dout) && copy_engine_takes(args.dq) &&
         copy_engine_takes(args.dk) && copy_engine_takes(args.dv);
}
void attend_on_warpgroups(CudaQueue& queue, const AttentionArgs& args);
void attend_on_warpgroups(CudaQueue& queue, const AttentionBackwardArgs& args);

// Tensor Cores take segments whole where all are short; without spans, so both passes must say the same of the same rows.
void attend_short_segments(CudaQueue& queue, const AttentionArgs& args);
void attend_short_segments(CudaQueue& queue, const AttentionBackwardArgs& args);

}  // namespace tilewave::attention_on_gpu
