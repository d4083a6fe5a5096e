// Layer normalisation's gradients of rows that no block's registers hold, in two launches: dx, a block a row that reads it twice, and one
// chunk of rows of dgamma and dbeta, a thread a pack of columns.
#pragma once

#include "kernels/cuda/core/rows.h"
#include "kernels/ops/layer_norm.h"

namespace tilewave {

constexpr int kMaxThreads = 512;  // of a block

template <class T, PackAccess kAccess>
__global__ void __launch_bounds__(kMaxThreads) differentiate_rows(const LayerNormBackwardArgs args) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>, kThreads = kMaxThreads;
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t d = args.x.cols, r = blockIdx.x;
  const A mean = *args.mean.row<A>(r), rstd = *args.rstd.row<A>(r);
  using Row = RowPacks<T, kThreads, 0, kAccess>;
  const Row x(args.x.row<T>(r), d), dy(args.dy.row<T>(r), d);

  // fn(column, x, dy, gamma) a pack at a time.
  const auto each = [&](const auto& fn) {
    Row::each_pair(x, dy, [&](std::int64_t column, const Pack<T>& xs, const Pack<T>& dys) {
      fn(column, xs, dys, load_pack<kAccess, kWidth>(args.gamma.row<T>(0), column, d));
    });
  };
  A sum_g = 0, sum_gh = 0;
  each([&](std::int64_t, const Pack<T>& xs, const Pack<T>& dys, const Pack<T>& gammas) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {  // dy is 0 past the row
      const A dy_i = load(dys.get(i)), gamma = load(gammas.get(i)), h = (load(xs.get(i)) - mean) * rstd;
      sum_g = fma(dy_i, gamma, sum_g);
      sum_gh = fma(dy_i * gamma, h, sum_gh);
    }
  });
  const A mean_g = fold_group<kThreads>(sum_g, scratch, Sum()) / static_cast<A>(d);
  const A mean_gh = fold_group<kThreads>(sum_gh, scratch, Sum()) / static_cast<A>(d);
  each([&](std::int64_t column, const Pack<T>& xs, const Pack<T>& dys, const Pack<T>& gammas) {
    Pack<T> earlier{};
    if (args.accumulate) earlier = load_pack<kAccess, kWidth>(args.dx.row<const T>(r), column, d);
    A dx[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const A h = (load(xs.get(i)) - mean) * rstd;
      dx[i] = fma(rstd, fma(-h, mean_gh, fma(load(dys.get(i)), load(gammas.get(i)), -mean_g)), load(earlier.get(i)));
    }
    store_pack<kAccess>(args.dx.row<T>(r), column, d, pack_of<T>(dx));
  });
}

constexpr int kColumnThreads = 128;

// One chunk of rows of dgamma and dbeta, into two rows of `partial`.
template <class T, PackAccess kAccess>
__global__ void __launch_bounds__(kColumnThreads) sum_chunk(const LayerNormBackwardArgs args, const std::int64_t chunk_rows) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  const std::int64_t d = args.x.cols, chunk = blockIdx.x;
  const std::int64_t column = (blockIdx.y * static_cast<std::int64_t>(kColumnThreads) + threadIdx.x) * kWidth;
  if (column >= d) return;
  A dgamma[kWidth] = {}, dbeta[kWidth] = {};
  const std::int64_t end = min(args.x.rows, (chunk + 1) * chunk_rows);
#pragma unroll 4
  for (std::int64_t r = chunk * chunk_rows; r < end; ++r) {
    const Pack<T> x = load_pack<kAccess, kWidth>(args.x.row<T>(r), column, d);
    const Pack<T> dy = load_pack<kAccess, kWidth>(args.dy.row<T>(r), column, d);
    const A mean = *args.mean.row<A>(r), rstd = *args.rstd.row<A>(r);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      dgamma[i] = fma(load(dy.get(i)), (load(x.get(i)) - mean) * rstd, dgamma[i]);
      dbeta[i] += load(dy.get(i));
    }
  }
  store_pack<kAccess>(args.partial.row<A>(2 * chunk), column, d, pack_of<A>(dgamma));
  store_pack<kAccess>(args.partial.row<A>(2 * chunk + 1), column, d, pack_of<A>(dbeta));
}

}  // namespace tilewave
