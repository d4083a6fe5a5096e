// The repetition of heads: a thread has a pack of a head of x, or of dx, and writes or adds up its repetitions.
#include "kernels/cuda/core/packs.h"
#include "kernels/ops/repeat_heads.h"

namespace tilewave {
namespace {

constexpr int kRepeatThreads = 256;

// Where a thread's pack stands: its row, its head and its column within the head.
struct HeadPlace {
  std::int64_t row;
  int head, column;
};

template <int kWidth>
__device__ __forceinline__ HeadPlace head_place(std::int64_t index, const PackDivisor& packs_a_row, int packs_a_head) {
  const std::int64_t row = packs_a_row.quotient(index);
  const int pack = static_cast<int>(index - row * packs_a_row.value()), head = pack / packs_a_head;
  return {.row = row, .head = head, .column = (pack - head * packs_a_head) * kWidth};
}

template <class T, PackAccess kAccess>
__global__ void __launch_bounds__(kRepeatThreads)
    repeat(const RepeatHeadsArgs args, const PackDivisor packs_a_row, const std::int64_t packs, const int packs_a_head) {
  constexpr int kWidth = kPackWidth<T>;
  const std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kRepeatThreads) + threadIdx.x, d = args.head_size;
  if (index >= packs) return;
  const HeadPlace at = head_place<kWidth>(index, packs_a_row, packs_a_head);
  const Pack<T> pack = load_pack<kAccess, kWidth>(args.x.row<T>(at.row) + at.head * d, at.column, d);
  T* y = args.y.row<T>(at.row) + at.head * args.times * d;
  for (std::int64_t time = 0; time < args.times; ++time, y += d) store_pack<kAccess>(y, at.column, d, pack);
}

template <class T, PackAccess kAccess>
__global__ void __launch_bounds__(kRepeatThreads)
    add_repetitions(const RepeatHeadsBackwardArgs args, const PackDivisor packs_a_row, const std::int64_t packs, const int packs_a_head) {
  constexpr int kWidth = kPackWidth<T>;
  const std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kRepeatThreads) + threadIdx.x, d = args.head_size;
  if (index >= packs) return;
  const HeadPlace at = head_place<kWidth>(index, packs_a_row, packs_a_head);
  const T* dy = args.dy.row<T>(at.row) + at.head * args.times * d;
  Arithmetic<T> sum[kWidth] = {};
  for (std::int64_t time = 0; time < args.times; ++time, dy += d) {
    const Pack<T> pack = load_pack<kAccess, kWidth>(dy, at.column, d);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] += load(pack.get(i));
  }
  store_pack<kAccess>(args.dx.row<T>(at.row) + at.head * d, at.column, d, pack_of<T>(sum));
}

// fn(access, blocks, packs a row, packs, packs a head) for a thread a pack of `heads`.
template <class T, class Fn>
void with_head_packs(const ConstMatrixView& heads, const ConstMatrixView& repeated, std::int64_t head_size, const Fn& fn) {
  constexpr int kWidth = kPackWidth<T>;
  const std::int64_t packs_a_head = ceil_div(head_size, kWidth), packs_a_row = heads.cols / head_size * packs_a_head;
  const std::int64_t packs = heads.rows * packs_a_row;
  if (packs == 0) return;
  const auto blocks = static_cast<unsigned>(ceil_div(packs, kRepeatThreads));
  with_whole_access(access_of(kWidth, {heads, repeated}), head_size, kWidth,
                    [&](auto access) { fn(access, blocks, PackDivisor(packs_a_row), packs, static_cast<int>(packs_a_head)); });
}

}  // namespace

void run(CudaQueue& queue, const RepeatHeadsArgs& args) {
  check(args);
  with_float(args.x.dtype, "repeat_heads", [&]<class T>(T) {
    with_head_packs<T>(args.x, args.y, args.head_size,
                       [&](auto access, unsigned blocks, const PackDivisor& packs_a_row, std::int64_t packs, int packs_a_head) {
                         repeat<T, access()><<<blocks, kRepeatThreads, 0, stream_of(queue)>>>(args, packs_a_row, packs, packs_a_head);
                       });
    TW_CUDA_LAUNCHED("repeat_heads");
  });
}

void run(CudaQueue& queue, const RepeatHeadsBackwardArgs& args) {
  check(args);
  with_float(args.dx.dtype, "repeat_heads_backward", [&]<class T>(T) {
    with_head_packs<T>(args.dx, args.dy, args.head_size,
                       [&](auto access, unsigned blocks, const PackDivisor& packs_a_row, std::int64_t packs, int packs_a_head) {
                         add_repetitions<T, access()>
                             <<<blocks, kRepeatThreads, 0, stream_of(queue)>>>(args, packs_a_row, packs, packs_a_head);
                       });
    TW_CUDA_LAUNCHED("repeat_heads_backward");
  });
}

}  // namespace tilewave
