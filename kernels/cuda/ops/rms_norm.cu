// RMS normalisation: a group is one warp's or one block's and stays in registers between its passes unless it is very wide. Its weight's
// gradient is summed by chunks of groups, and a last launch adds up the chunks.
#include "kernels/cuda/core/rows.h"
#include "kernels/ops/rms_norm.h"

namespace tilewave {
namespace {

// A group of a row: the row, and where its columns begin.
struct RmsGroup {
  std::int64_t row, number, column;
};
__device__ __forceinline__ RmsGroup rms_group(std::int64_t index, std::int64_t a_row, std::int64_t d) {
  const std::int64_t row = a_row == 1 ? index : index / a_row, number = index - row * a_row;
  return {row, number, number * d};
}

template <class T, int kThreads, int kPacks, PackAccess kAccess>
__global__ void __launch_bounds__(RowShape<kThreads, kPacks>::rows* kThreads)
    normalize_groups(const RmsNormArgs args, const std::int64_t groups) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t d = args.gamma.cols, index = blockIdx.x * static_cast<std::int64_t>(RowShape<kThreads, kPacks>::rows) + threadIdx.y;
  if (index >= args.x.rows * groups) return;
  const RmsGroup at = rms_group(index, groups, d);

  // Reduce: the mean square.
  const RowPacks<T, kThreads, kPacks, kAccess> x(args.x.row<T>(at.row) + at.column, d);
  A squares = 0;
  x.each_element([&](A value) { squares = fma(value, value, squares); });
  const A mean_square = fold_group<kThreads>(squares, scratch, Sum()) / static_cast<A>(d);
  const A rstd = A(1) / sqrt(mean_square + static_cast<A>(args.epsilon));

  // Store.
  x.each([&](std::int64_t column, const Pack<T>& pack) {
    const Pack<T> gamma = load_pack<kAccess, kWidth>(args.gamma.row<T>(0), column, d);
    A y[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) y[i] = load(pack.get(i)) * rstd * load(gamma.get(i));
    store_pack<kAccess>(args.y.row<T>(at.row) + at.column, column, d, pack_of<T>(y));
  });
  if (threadIdx.x == 0) args.rstd.row<A>(at.row)[at.number] = rstd;
}

template <class T, int kThreads, int kPacks, PackAccess kAccess>
__global__ void __launch_bounds__(RowShape<kThreads, kPacks>::rows* kThreads)
    differentiate_groups(const RmsNormBackwardArgs args, const std::int64_t groups) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t d = args.gamma.cols, index = blockIdx.x * static_cast<std::int64_t>(RowShape<kThreads, kPacks>::rows) + threadIdx.y;
  if (index >= args.x.rows * groups) return;
  const RmsGroup at = rms_group(index, groups, d);
  const A rstd = args.rstd.row<A>(at.row)[at.number];
  using Row = RowPacks<T, kThreads, kPacks, kAccess>;
  const Row x(args.x.row<T>(at.row) + at.column, d), dy(args.dy.row<T>(at.row) + at.column, d);

  // fn(column, x, dy, gamma) a pack at a time.
  const auto each = [&](const auto& fn) {
    Row::each_pair(x, dy, [&](std::int64_t column, const Pack<T>& xs, const Pack<T>& dys) {
      fn(column, xs, dys, load_pack<kAccess, kWidth>(args.gamma.row<T>(0), column, d));
    });
  };
  A sum_gh = 0;
  each([&](std::int64_t, const Pack<T>& xs, const Pack<T>& dys, const Pack<T>& gammas) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {  // dy is 0 past the group
      sum_gh = fma(load(dys.get(i)) * load(gammas.get(i)), load(xs.get(i)) * rstd, sum_gh);
    }
  });
  const A mean_gh = fold_group<kThreads>(sum_gh, scratch, Sum()) / static_cast<A>(d);

  // Store.
  each([&](std::int64_t column, const Pack<T>& xs, const Pack<T>& dys, const Pack<T>& gammas) {
    Pack<T> earlier{};
    if (args.accumulate) earlier = load_pack<kAccess, kWidth>(args.dx.row<const T>(at.row) + at.column, column, d);
    A dx[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const A h = load(xs.get(i)) * rstd;
      dx[i] = fma(rstd, fma(-h, mean_gh, load(dys.get(i)) * load(gammas.get(i))), load(earlier.get(i)));
    }
    store_pack<kAccess>(args.dx.row<T>(at.row) + at.column, column, d, pack_of<T>(dx));
  });
}

constexpr int kSumThreads = 8;  // of a chunk's groups, beside each other

// One chunk of groups of dgamma, into a row of `partial`: a warp's threads have neighbouring packs of columns, its fellows every 8th group.
template <class T, PackAccess kAccess>
__global__ void __launch_bounds__(kWarp* kSumThreads)
    sum_groups(const RmsNormBackwardArgs args, const std::int64_t groups, const std::int64_t chunk_groups) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ A sums[kSumThreads][kWidth][kWarp];
  const std::int64_t d = args.gamma.cols, column = (blockIdx.y * static_cast<std::int64_t>(kWarp) + threadIdx.x) * kWidth;
  const std::int64_t begin = blockIdx.x * chunk_groups, end = min(args.x.rows * groups, begin + chunk_groups);
  A dgamma[kWidth] = {};
  for (std::int64_t index = begin + threadIdx.y; column < d && index < end; index += kSumThreads) {
    const RmsGroup at = rms_group(index, groups, d);
    const Pack<T> x = load_pack<kAccess, kWidth>(args.x.row<T>(at.row) + at.column, column, d);
    const Pack<T> dy = load_pack<kAccess, kWidth>(args.dy.row<T>(at.row) + at.column, column, d);
    const A rstd = args.rstd.row<A>(at.row)[at.number];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) dgamma[i] = fma(load(dy.get(i)), load(x.get(i)) * rstd, dgamma[i]);
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[threadIdx.y][i][threadIdx.x] = dgamma[i];
  __syncthreads();
  if (threadIdx.y > 0 || column >= d) return;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    if (column + i >= d) break;
    A total = 0;
#pragma unroll
    for (int part = 0; part < kSumThreads; ++part) total += sums[part][i][threadIdx.x];
    args.partial.row<A>(blockIdx.x)[column + i] = total;
  }
}

constexpr int kAddThreads = 32;  // of a column; each takes every 32nd chunk

template <class A>
__global__ void __launch_bounds__(kWarp* kAddThreads) add_chunks(const RmsNormBackwardArgs args) {
  __shared__ A sums[kAddThreads][kWarp + 1];
  const std::int64_t column = blockIdx.x * static_cast<std::int64_t>(kWarp) + threadIdx.x;
  const bool owns = column < args.dgamma.cols;
  A sum = 0;
  for (std::int64_t chunk = threadIdx.y; owns && chunk < args.partial.rows; chunk += kAddThreads) sum += args.partial.row<A>(chunk)[column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || !owns) return;
  A total = args.accumulate_gamma ? args.dgamma.row<A>(0)[column] : A(0);
#pragma unroll
  for (int i = 0; i < kAddThreads; ++i) total += sums[i][threadIdx.x];
  args.dgamma.row<A>(0)[column] = total;
}

}  // namespace

void run(CudaQueue& queue, const RmsNormArgs& args) {
  check(args);
  const auto& x = args.x;
  const std::int64_t d = args.gamma.cols, groups = x.cols / d;
  if (x.rows == 0) return;
  with_float(x.dtype, "rms_norm", [&]<class T>(T) {
    with_row_shape(ceil_div(d, kPackWidth<T>), [&](auto shape) {
      with_whole_access(access_of(kPackWidth<T>, {x, args.gamma, args.y}), d, kPackWidth<T>, [&](auto access) {
        normalize_groups<T, shape.threads, shape.packs, access()>
            <<<static_cast<unsigned>(ceil_div(x.rows * groups, shape.rows)), dim3(shape.threads, shape.rows), 0, stream_of(queue)>>>(
                args, groups);
      });
    });
    TW_CUDA_LAUNCHED("rms_norm");
  });
}

void run(CudaQueue& queue, const RmsNormBackwardArgs& args) {
  check(args);
  const auto& x = args.x;
  const std::int64_t d = args.gamma.cols, groups = x.cols / d;
  with_float(x.dtype, "rms_norm_backward", [&]<class T>(T) {
    const std::int64_t packs = ceil_div(d, kPackWidth<T>);
    with_whole_access(access_of(kPackWidth<T>, {x, args.gamma, args.dy, args.dx}), d, kPackWidth<T>, [&](auto access) {
      if (x.rows == 0) return;
      with_row_shape(packs, [&](auto shape) {
        differentiate_groups<T, shape.threads, shape.packs, access()>
            <<<static_cast<unsigned>(ceil_div(x.rows * groups, shape.rows)), dim3(shape.threads, shape.rows), 0, stream_of(queue)>>>(
                args, groups);
      });
      sum_groups<T, access()><<<dim3(static_cast<unsigned>(args.partial.rows), static_cast<unsigned>(ceil_div(packs, kWarp))),
                                dim3(kWarp, kSumThreads), 0, stream_of(queue)>>>(args, groups, rms_norm_chunk(x.rows * groups));
    });
    add_chunks<Arithmetic<T>><<<static_cast<unsigned>(ceil_div(d, kWarp)), dim3(kWarp, kAddThreads), 0, stream_of(queue)>>>(args);
    TW_CUDA_LAUNCHED("rms_norm_backward");
  });
}

}  // namespace tilewave
