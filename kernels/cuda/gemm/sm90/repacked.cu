// Adds to the aligned rows, where rows of an operand or of D start anywhere: one pass over each such matrix, to or from rows on multiples
// of 128 bytes in the workspace. A warp takes a stretch of a row, a thread 16 aligned bytes of where it goes, from the two aligned 16
// bytes that they lie across.
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/sm90/repacked.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

constexpr int kWarps = 8, kWordsOfThread = 4;
constexpr std::int64_t kRowChunk = 32 * kWordsOfThread;  // words of a warp
constexpr std::int64_t kWord = 16;

struct Pass {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t from_pitch = 0, to_pitch = 0, row_bytes = 0;
  unsigned rows = 0, row_chunks = 0;  // of a row
};

__device__ __forceinline__ std::int64_t past_word(const std::byte* at) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at) % kWord);
}

// The 16 bytes that begin 4 kQuad + bits / 8 bytes into two words.
template <int kQuad>
__device__ __forceinline__ uint4 across(const uint4& low, const uint4& high, unsigned bits) {
  const unsigned in[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  return {__funnelshift_r(in[kQuad], in[kQuad + 1], bits), __funnelshift_r(in[kQuad + 1], in[kQuad + 2], bits),
          __funnelshift_r(in[kQuad + 2], in[kQuad + 3], bits), __funnelshift_r(in[kQuad + 3], in[kQuad + 4], bits)};
}

// A warp's words first, first + 32 ... of a row's `to`, from lane to lane: where the 16 bytes of `from` lie in the row they are read once,
// by words of which each lane shows its own to the one before; others go by twos of bytes.
template <int kQuad>
__device__ __forceinline__ void copy_words(const std::byte* from, std::byte* to, std::int64_t row_bytes, std::int64_t first,
                                           std::int64_t shift) {
  const bool last_lane = threadIdx.x % 32 == 31;
  const unsigned bits = static_cast<unsigned>(shift % 4) * 8;
  const std::int64_t begin = first * kWord - past_word(to);  // in the row, as `at` and `source`
  const auto word_at = [&](std::int64_t source) {
    const bool inside = source >= 0 && source + kWord <= row_bytes;
    return inside ? __ldg(reinterpret_cast<const uint4*>(from + source)) : uint4{};
  };
  uint4 low[kWordsOfThread], after[kWordsOfThread];  // the last lane's next word
#pragma unroll
  for (int i = 0; i < kWordsOfThread; ++i) {
    const std::int64_t source = begin + i * 32 * kWord - shift;
    low[i] = word_at(source);
    after[i] = last_lane && shift > 0 ? word_at(source + kWord) : uint4{};
  }
#pragma unroll
  for (int i = 0; i < kWordsOfThread; ++i) {
    const std::int64_t at = begin + i * 32 * kWord, source = at - shift;
    const auto next = [&](unsigned mine, unsigned lasts) {
      const unsigned shown = __shfl_down_sync(0xffffffffu, mine, 1);
      return last_lane ? lasts : shown;
    };
    const uint4 high = {next(low[i].x, after[i].x), next(low[i].y, after[i].y), next(low[i].z, after[i].z), next(low[i].w, after[i].w)};
    if (at >= 0 && source >= 0 && source + (shift > 0 ? 2 : 1) * kWord <= row_bytes) {
      *reinterpret_cast<uint4*>(to + at) = across<kQuad>(low[i], high, bits);
    } else {
      for (std::int64_t byte = max(at, std::int64_t{0}); byte < min(at + kWord, row_bytes); byte += 2)
        *reinterpret_cast<unsigned short*>(to + byte) = *reinterpret_cast<const unsigned short*>(from + byte);
    }
  }
}

__global__ void __launch_bounds__(kWarps * 32) repack(const Pass pass) {
  const unsigned index = blockIdx.x * kWarps + threadIdx.x / 32, row = index / pass.row_chunks;
  if (row >= pass.rows) return;
  const std::byte* const from = pass.from + row * pass.from_pitch;
  std::byte* const to = pass.to + row * pass.to_pitch;
  const std::int64_t shift = (past_word(from) - past_word(to) + kWord) % kWord;  // of all the row's words
  const std::int64_t words = ceil_div(past_word(to) + pass.row_bytes, kWord), lane = threadIdx.x % 32;
  const auto copy = [&]<int kQuad>() {  // a row that begins within a word may have one word more than its stretches
    for (std::int64_t first = index % pass.row_chunks * kRowChunk; first < words; first += pass.row_chunks * kRowChunk)
      copy_words<kQuad>(from, to, pass.row_bytes, first + lane, shift);
  };
  switch (shift / 4) {
    case 0:
      return copy.template operator()<0>();
    case 1:
      return copy.template operator()<1>();
    case 2:
      return copy.template operator()<2>();
    default:
      return copy.template operator()<3>();
  }
}

void copy_rows(CudaQueue& queue, const ConstMatrixView& from, const MatrixView& to) {
  if (from.rows == 0 || from.cols == 0) return;
  const std::int64_t size = size_of(from.dtype);
  const Pass pass = {.from = static_cast<const std::byte*>(from.data),
                     .to = static_cast<std::byte*>(to.data),
                     .from_pitch = from.ld * size,
                     .to_pitch = to.ld * size,
                     .row_bytes = from.cols * size,
                     .rows = static_cast<unsigned>(from.rows),
                     .row_chunks = static_cast<unsigned>(ceil_div(from.cols * size, kRowChunk * kWord))};
  repack<<<static_cast<unsigned>(ceil_div(from.rows * pass.row_chunks, std::int64_t{kWarps})), kWarps * 32, 0, stream_of(queue)>>>(pass);
  TW_CUDA_LAUNCHED("gemm, rows repacked");
}

}  // namespace

void launch_repacked(CudaQueue& queue, const GemmCall& call) {
  const GemmArgs& args = call.args;
  auto* next = static_cast<std::byte*>(args.workspace);
  const auto place = [&](const ConstMatrixView& view) {
    const MatrixView copy = {next, view.rows, view.cols, repacked_pitch(view.cols), view.dtype};
    next += repacked_bytes(view.rows, view.cols, size_of(view.dtype));
    return copy;
  };
  const auto copy_in = [&](ConstMatrixView& view) {
    if (!view) return;
    const MatrixView copy = place(view);
    copy_rows(queue, view, copy);
    view = copy;
  };
  const auto make_room = [&](MatrixView& view) {
    if (view) view = place(view);
  };
  const Repacked copied = repacked(call.problem);
  GemmArgs aligned = args;
  if (copied.a) copy_in(aligned.a);
  if (copied.b) copy_in(aligned.b);
  if (copied.d) {
    copy_in(aligned.derivative_of);
    copy_in(aligned.residual);
    make_room(aligned.d);
    make_room(aligned.saved_input);
    if (args.accumulate) copy_rows(queue, args.d, aligned.d);
    aligned.owns_gaps = true;
  }

  const GemmProblem problem = problem_of(aligned);
  const GemmKernel& row = kernel_of_repacked(problem, call.plan.tile, device_of(queue));
  const GemmPlan inner = row.plan(problem, call.plan.tile, device_of(queue), 0);
  aligned.plan = &inner;
  row.launch_cuda(queue, {.args = aligned, .problem = problem, .plan = inner, .kernel = row});

  if (!copied.d) return;
  copy_rows(queue, aligned.d, args.d);
  if (args.saved_input) copy_rows(queue, aligned.saved_input, args.saved_input);
}

}  // namespace tilewave
