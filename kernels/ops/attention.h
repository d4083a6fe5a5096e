// Scaled dot-product attention over packed rows, one softmax a query, without a stored tokens x tokens matrix.
// Segment s: queries q_begin .. q_begin + q_length - 1 attend to keys k_begin .. k_begin + k_length - 1 and to no others.
// Head h owns columns h D .. (h + 1) D - 1 of q and out, D = q.cols / heads, and of k and v those of head h / (heads / kv_heads): heads
// of queries in a row share one of keys and values (Ainslie et al., "GQA", 2023).
//   forward:  S = scale q k^T;  causal: query i of the segment sees keys j <= i + k_length - q_length
//             P = softmax(S);  P = P * keep / (1 - dropout) where asked for;  out = P v;  log_sum_exp = log(sum(exp(S)))
//   backward: dv = P^T dout;  dP = dout v^T (* keep / (1 - dropout));  delta = sum(dout * out) = sum(P dP);
//             dS = P (dP - delta);  dq = scale dS k;  dk = scale dS^T q      (P before dropout in dS, after it in dv)
//             dk and dv of a shared head are sums over the heads that share it, in their order
// A query that sees no key, and a row outside every segment, is zero in out, dq, dk and dv. Segments do not overlap in queries
// nor in keys. keep is a function of (seed, step, first_site + site, head, query row, key row) alone (math/random.h), rows counted from
// the step state's first one of their side.
// On a GPU bf16 and f16 with heads of 32, 64 or 128 columns run on Tensor Cores, P and dS rounded to that type; the rest runs on CUDA
// cores in its own arithmetic, fp32 under tf32 precision too. Both take rows in tiles, in which a value that is not finite spoils
// near rows too: what nobody sees must be finite as well. Where no segment can be longer than kShortSegment, Tensor Cores take each
// segment whole and need neither spans nor delta.
// A segment that reaches beyond the rows, or is longer than `sequence` says, is an Error on a CPU; on a GPU, where only the device
// knows it, the launch fails.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "kernels/core/device.h"
#include "kernels/core/queue.h"
#include "kernels/core/saturating.h"
#include "kernels/core/step_state.h"
#include "kernels/core/view.h"

namespace tilewave {

enum class Mask : std::uint8_t { none, causal };

// What all segments hold together.
struct SegmentSums {
  std::int64_t queries = 0;  // rows of queries in segments
  std::int64_t pairs = 0;    // q_length * k_length

  friend bool operator==(const SegmentSums&, const SegmentSums&) = default;
};

struct AttentionDropout {
  double probability = 0.0;
  std::uint32_t site = 0;
  TokenSide queries = TokenSide::target, keys = TokenSide::target;  // whose rows they are
  const StepState* state = nullptr;
};

struct AttentionArgs {
  static constexpr std::string_view kOperation = "attention";
  static constexpr OperationTime kTime{.launches = 3, .copy_share = nullptr};  // spans cleared, written, attention; of short segments one
  static constexpr bool kBackward = false;
  ConstMatrixView q;         // [query rows, heads D]
  ConstMatrixView k, v;      // [key rows, kv_heads D]
  ConstMatrixView segments;  // [at most, 4] i32: q_begin, q_length, k_begin, k_length; rows of zeros are unused
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;        // a divisor of heads; 0: heads
  double scale = 0.0;               // of the scores; 0: 1 / sqrt(D)
  std::int64_t sequence = 0;        // no segment has more queries or keys; 0: not known
  std::optional<SegmentSums> sums;  // of `segments`, where the host knows them: work is counted by them
  Mask mask = Mask::none;
  AttentionDropout dropout;
  MatrixView out;          // [query rows, heads D]
  MatrixView log_sum_exp;  // [query rows, heads], statistics_of(q's dtype); absent where no backward pass follows
  MatrixView spans;        // [1, attention_spans(...)] i32: a GPU keeps here what each row sees; a CPU needs none
};

struct AttentionBackwardArgs {
  static constexpr std::string_view kOperation = "attention_backward";
  static constexpr OperationTime kTime{.launches = 2, .copy_share = nullptr};
  static constexpr bool kBackward = true;
  ConstMatrixView q, k, v, out, log_sum_exp, dout;
  ConstMatrixView segments;
  std::int64_t heads = 1, kv_heads = 0;  // the forward pass's
  double scale = 0.0;                    // likewise
  std::int64_t sequence = 0;             // likewise
  std::optional<SegmentSums> sums;       // likewise
  Mask mask = Mask::none;
  AttentionDropout dropout;
  MatrixView dq;      // written, not added to, as all gradients
  MatrixView dk, dv;  // [key rows, kv_heads D], or heads D: each head of queries its own part of the sum
  MatrixView spans;   // as the forward pass on a GPU left them, and leaves them again
  MatrixView delta;   // [query rows, heads], log_sum_exp's dtype: a GPU's workspace; a CPU needs none
};

template <class Args>
std::int64_t kv_heads_of(const Args& args) {
  return args.kv_heads > 0 ? args.kv_heads : args.heads;
}
// Heads of queries that share one of keys and values.
template <class Args>
std::int64_t heads_sharing(const Args& args) {
  return args.heads / kv_heads_of(args);
}

// How many integers `spans` holds: for each query the first key it sees and the one past the last, then the same for each key, and two
// counts of work taken, zero between launches.
constexpr std::int64_t attention_spans(std::int64_t query_rows, std::int64_t key_rows) {
  return query_rows + key_rows == 0 ? 0 : 2 * (query_rows + key_rows + 1);
}

template <class Args>
double scale_of(const Args& args) {
  return args.scale > 0.0 ? args.scale : 1.0 / std::sqrt(static_cast<double>(args.q.cols / args.heads));
}

// Queries or keys that the longest segment can have. Both passes of a step have to say the same, since a pass over short ones leaves
// no spans.
template <class Args>
std::int64_t longest_segment(const Args& args) {
  const std::int64_t rows = args.q.rows > args.k.rows ? args.q.rows : args.k.rows;
  return args.sequence > 0 && args.sequence < rows ? args.sequence : rows;
}

// Whether a GPU's Tensor Cores can take heads of so many columns, and whether they take each segment whole.
constexpr bool tensor_cores_attend(DType dtype, std::int64_t head_size) {
  return (dtype == DType::bf16 || dtype == DType::f16) && (head_size == 32 || head_size == 64 || head_size == 128);
}
template <class Args>
bool attends_segments_whole(const Args& args) {
  return tensor_cores_attend(args.q.dtype, args.q.cols / args.heads) && longest_segment(args) <= kShortSegment &&
         args.segments.rows <= INT32_MAX / args.heads;
}

// What a back end does by itself where heads share keys and values. What it does not is its caller's, by kernels/ops/repeat_heads.h:
// keys and values repeated beforehand, gradients of heads of queries summed behind. A GPU's blocks own a head of queries each, so that
// their order decides no sum; those that take segments whole read as many heads of keys as of queries.
struct SharedHeads {
  bool reads = true;  // k and v as they are, in both passes
  bool sums = true;   // dk and dv
};
template <class Args>
SharedHeads shared_heads(Backend backend, const Args& args) {
  if (backend == Backend::cpu || heads_sharing(args) == 1) return {};
  return {.reads = !attends_segments_whole(args), .sums = false};
}

// Work depends on the segments, which only the device knows when a step is traced. So FLOPs are counted by `sums`; where there are none,
// as if all rows were in segments of `sequence` queries and keys (0: of all rows). Causal pairs count half; bytes count each tensor once.
template <class Args>
SegmentSums sums_of(const Args& args) {
  if (args.sums) return *args.sums;
  const std::int64_t keys = args.sequence > 0 && args.sequence < args.k.rows ? args.sequence : args.k.rows;
  return {.queries = args.q.rows, .pairs = saturating_product(args.q.rows, keys)};
}
inline Cost cost(const AttentionArgs& args) {
  return {.flops = saturating_product(args.mask == Mask::causal ? 2 : 4, sums_of(args).pairs, args.q.cols),
          .bytes = args.q.bytes() + args.k.bytes() + args.v.bytes() + args.out.bytes() + args.log_sum_exp.bytes()};
}
inline Cost cost(const AttentionBackwardArgs& args) {
  return {.flops = saturating_product(args.mask == Mask::causal ? 5 : 10, sums_of(args).pairs, args.q.cols),
          .bytes = 2 * (args.q.bytes() + args.out.bytes()) + args.k.bytes() + args.v.bytes() + args.dk.bytes() + args.dv.bytes() +
                   args.log_sum_exp.bytes()};
}

template <class Args>
TraceEntry attention_entry(const Args& args) {
  const SegmentSums sums = sums_of(args);
  return {.operation = Args::kOperation,
          .layer = {},
          .cost = cost(args),
          .time = Args::kTime,
          .gemm = {},
          .plan = {},
          .attention = AttentionWork{.backward = Args::kBackward,
                                     .queries = sums.queries,
                                     .pairs = sums.pairs,
                                     .longest = longest_segment(args),
                                     .heads = args.heads,
                                     .head_size = args.q.cols / args.heads,
                                     .dtype = args.q.dtype,
                                     .causal = args.mask == Mask::causal,
                                     .dropout = args.dropout.probability > 0.0}};
}
inline TraceEntry trace_entry(const AttentionArgs& args) { return attention_entry(args); }
inline TraceEntry trace_entry(const AttentionBackwardArgs& args) { return attention_entry(args); }

void check(const AttentionArgs& args);
void check(const AttentionBackwardArgs& args);
void run(CpuQueue& queue, const AttentionArgs& args);
void run(CpuQueue& queue, const AttentionBackwardArgs& args);
void run(CudaQueue& queue, const AttentionArgs& args);
void run(CudaQueue& queue, const AttentionBackwardArgs& args);

}  // namespace tilewave
