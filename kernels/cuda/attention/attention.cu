// Attention on a GPU: Tensor Cores take short segments whole. Others become spans of rows once, before the forward pass; then CUDA
// cores, Tensor Cores or Hopper's warpgroups do the work.
// Every element is summed by one block in one order, so that two runs give the same bits.
#include "kernels/core/contract.h"
#include "kernels/cuda/attention/launch.h"
#include "kernels/cuda/attention/segments.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"
#include "kernels/ops/attention.h"

namespace tilewave {

using namespace attention_on_gpu;

namespace {

constexpr int kWarp = 32, kThreads = 256;
constexpr std::int64_t kMaxRows = INT_MAX - 255;  // a window beyond them is counted in 32 bits still

// Query i of a segment sees keys up to i + k_length - q_length, so key j is seen by queries from j - (k_length - q_length) on.
__device__ void write_spans(const Segments& segments, std::int64_t index, Mask mask, Span* query_spans, Span* key_spans) {
  const Segment segment = segments.read(index);
  const std::int64_t q_begin = segment.q_begin, q_length = segment.q_length, k_begin = segment.k_begin, k_length = segment.k_length;
  const int lane = threadIdx.x % kWarp;
  const std::int64_t lead = k_length - q_length;
  for (std::int64_t i = lane; i < q_length; i += kWarp) {
    const std::int64_t seen = mask == Mask::none ? k_length : max(std::int64_t{0}, i + 1 + lead);
    query_spans[q_begin + i] = {.first = static_cast<int>(k_begin), .end = static_cast<int>(k_begin + seen)};
  }
  for (std::int64_t j = lane; j < k_length; j += kWarp) {
    const std::int64_t blind = mask == Mask::none ? 0 : min(q_length, max(std::int64_t{0}, j - lead));
    key_spans[k_begin + j] = {.first = static_cast<int>(q_begin + blind), .end = static_cast<int>(q_begin + q_length)};
  }
}

// A warp for each segment in use; the other rows' spans were zeroed before.
__global__ void __launch_bounds__(kThreads) segments_to_spans(Segments segments, Mask mask, Span* query_spans, Span* key_spans) {
  const std::int64_t warps = gridDim.x * static_cast<std::int64_t>(kThreads / kWarp);
  const std::int64_t warp = (blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x) / kWarp;
  // A lane looks at a segment. Neighbouring segments lie in different warps, since those in use come together.
  for (std::int64_t first = warp; first < segments.count; first += warps * kWarp) {
    const std::int64_t mine = first + threadIdx.x % kWarp * warps;
    const bool used = mine < segments.count && (segments.line(mine)[1] != 0 || segments.line(mine)[3] != 0);
    for (unsigned left = __ballot_sync(~0u, used); left != 0; left &= left - 1) {
      write_spans(segments, first + (__ffs(static_cast<int>(left)) - 1) * warps, mask, query_spans, key_spans);
    }
  }
}

// What the host can check of a GPU's own arguments.
template <class Args>
void check_rows(const Args& args) {
  TW_CHECK(std::max(args.q.rows, args.k.rows) <= kMaxRows, Args::kOperation, ": segments count rows in 32 bits, and there are ",
           args.q.rows, " and ", args.k.rows, ".");
}
// What a GPU leaves to its caller where heads share keys and values.
void check_shared(const AttentionArgs& args) {
  TW_CHECK(shared_heads(Backend::cuda, args).reads, "attention: segments of at most ", kShortSegment,
           " rows are taken whole, with as many heads of keys as of queries, not ", kv_heads_of(args), " and ", args.heads,
           "; repeat the heads first.");
}
void check_shared(const AttentionBackwardArgs& args) {
  const SharedHeads shared = shared_heads(Backend::cuda, args);
  TW_CHECK(shared.reads, "attention_backward: segments of at most ", kShortSegment,
           " rows are taken whole, with as many heads of keys as of queries, not ", kv_heads_of(args), " and ", args.heads,
           "; repeat the heads first.");
  TW_CHECK(shared.sums || args.dk.cols == args.q.cols, "attention_backward: dk and dv have ", args.dk.cols,
           " columns; on a GPU each head of queries has its own part of them, in ", args.q.cols, ", which repeat_heads_backward sums.");
}
template <class Args>
void check_spans(const Args& args) {
  TW_CHECK(args.spans || attention_spans(args.q.rows, args.k.rows) == 0, Args::kOperation, ": spans is absent; a GPU needs it.");
  TW_CHECK(reinterpret_cast<std::uintptr_t>(args.spans.data) % sizeof(Span) == 0, Args::kOperation, ": spans must be aligned to ",
           sizeof(Span), " bytes.");
}

}  // namespace

void run(CudaQueue& queue, const AttentionArgs& args) {
  check(args);
  check_rows(args);
  check_shared(args);
  if (attends_segments_whole(args)) return attend_short_segments(queue, args);
  check_spans(args);
  TW_CUDA(cudaMemsetAsync(args.spans.data, 0, static_cast<std::size_t>(args.spans.bytes()), stream_of(queue)));
  const Segments segments(args);
  if (segments.count > 0) {
    const auto blocks =
        static_cast<unsigned>(std::min<std::int64_t>(ceil_div(segments.count, kThreads / kWarp), device_of(queue).sm_count));
    segments_to_spans<<<blocks, kThreads, 0, stream_of(queue)>>>(segments, args.mask, args.spans.row<Span>(0),
                                                                 args.spans.row<Span>(0) + args.q.rows);
    TW_CUDA_LAUNCHED("segments_to_spans");
  }
  if (warpgroups_take(device_of(queue), args)) return attend_on_warpgroups(queue, args);
  if (tensor_cores_attend(args.q.dtype, args.q.cols / args.heads)) return attend_on_tensor_cores(queue, args);
  attend_on_cuda_cores(queue, args);
}

void run(CudaQueue& queue, const AttentionBackwardArgs& args) {
  check(args);
  check_rows(args);
  check_shared(args);
  if (attends_segments_whole(args)) return attend_short_segments(queue, args);
  check_spans(args);
  TW_CHECK(args.delta || args.q.rows == 0, "attention_backward: delta is absent; a GPU needs it.");
  if (warpgroups_take(device_of(queue), args)) return attend_on_warpgroups(queue, args);
  if (tensor_cores_attend(args.q.dtype, args.q.cols / args.heads)) return attend_on_tensor_cores(queue, args);
  attend_on_cuda_cores(queue, args);
}

}  // namespace tilewave
