// Rotary positions: a thread has a pack of a head's first half and the one that turns with it, so that x may be overwritten.
#include "kernels/cuda/core/packs.h"
#include "kernels/ops/rope.h"

namespace tilewave {
namespace {

constexpr int kRopeThreads = 256;

// Pairs that a thread turns: a pack where halves are whole packs, else one by itself.
template <class T, int kWidth>
struct HeadPart {
  T values[kWidth];
};

template <class T, int kWidth, bool kWide>
__device__ __forceinline__ void load_part(HeadPart<T, kWidth>& part, const T* from) {
  if constexpr (kWide) {
    const Pack<T> pack = load_pack<PackAccess::whole, kWidth>(from, 0, kWidth);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) part.values[i] = pack.get(i);
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) part.values[i] = from[i];
  }
}

template <class T, int kWidth, bool kWide>
__device__ __forceinline__ void store_part(T* to, const Arithmetic<T> (&values)[kWidth]) {
  if constexpr (kWide) {
    store_pack<PackAccess::whole>(to, 0, kWidth, pack_of<T>(values));
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) to[i] = store<T>(values[i]);
  }
}

template <class T, int kWidth, bool kWide>
__global__ void __launch_bounds__(kRopeThreads) rotate(const RopeArgs args, const PackDivisor parts_a_row, const std::int64_t parts) {
  using A = Arithmetic<T>;
  const std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kRopeThreads) + threadIdx.x;
  if (index >= parts) return;
  const std::int64_t row = parts_a_row.quotient(index);
  const int half = static_cast<int>(args.table.cols / 2), place = static_cast<int>(index - row * parts_a_row.value()) * kWidth;
  const int head = place / half, column = place - head * half;

  // Load.
  const T* const x = args.x.row<T>(row) + head * args.table.cols + column;
  const A* const cosines = args.table.row<A>(args.position_ids.row<std::int32_t>(0)[row]) + column;
  HeadPart<T, kWidth> first, second;
  load_part<T, kWidth, kWide>(first, x);
  load_part<T, kWidth, kWide>(second, x + half);

  // Turn, and store.
  const A sign = args.rotation == Rotation::forward ? A(1) : A(-1);
  A turned_first[kWidth], turned_second[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const A a = load(first.values[i]), b = load(second.values[i]), cosine = cosines[i], sine = sign * cosines[half + i];
    turned_first[i] = a * cosine - b * sine;
    turned_second[i] = b * cosine + a * sine;
  }
  T* const y = args.y.row<T>(row) + head * args.table.cols + column;
  store_part<T, kWidth, kWide>(y, turned_first);
  store_part<T, kWidth, kWide>(y + half, turned_second);
}

template <class T, int kWidth, bool kWide>
void launch_rotation(CudaQueue& queue, const RopeArgs& args) {
  const std::int64_t parts_a_row = args.x.cols / 2 / kWidth, parts = args.x.rows * parts_a_row;
  if (parts == 0) return;
  rotate<T, kWidth, kWide>
      <<<static_cast<unsigned>(ceil_div(parts, kRopeThreads)), kRopeThreads, 0, stream_of(queue)>>>(args, PackDivisor(parts_a_row), parts);
  TW_CUDA_LAUNCHED("rope");
}

}  // namespace

void run(CudaQueue& queue, const RopeArgs& args) {
  check(args);
  with_float(args.x.dtype, "rope", [&]<class T>(T) {
    constexpr int kWidth = kPackWidth<T>;
    const bool whole = args.table.cols / 2 % kWidth == 0;
    if (whole && access_of(kWidth, {args.x, args.y}) == PackAccess::wide) return launch_rotation<T, kWidth, true>(queue, args);
    launch_rotation<T, 1, false>(queue, args);
  });
}

}  // namespace tilewave
