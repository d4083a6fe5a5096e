// Layer normalisation: a row is one warp's or one block's, and stays in registers between its passes unless it is very wide.
// Backward gives a block a chunk of rows and a thread its columns of them, and adds up the chunks in a second launch.
#include "kernels/cuda/rows.h"
#include "kernels/layer_norm.h"

namespace tilewave {
namespace {

template <class T, int kThreads, int kPacks, Access kAccess>
__global__ void __launch_bounds__(RowShape<kThreads, kPacks>::rows* kThreads) layer_norm(const LayerNormArgs args) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t d = args.x.cols, r = blockIdx.x * static_cast<std::int64_t>(RowShape<kThreads, kPacks>::rows) + threadIdx.y;
  if (r >= args.x.rows) return;

  // Mean, then the squares around it.
  const RowPacks<T, kThreads, kPacks, kAccess> x(args.x.row<T>(r), d);
  A sum = 0, squares = 0;
  x.each_element([&](A value) { sum += value; });
  const A mean = fold_group<kThreads>(sum, scratch, Sum()) / static_cast<A>(d);
  x.each_element([&](A value) { squares = fma(value - mean, value - mean, squares); });
  const A variance = fold_group<kThreads>(squares, scratch, Sum()) / static_cast<A>(d);
  const A rstd = A(1) / sqrt(variance + static_cast<A>(args.epsilon));

  // Store.
  x.each([&](std::int64_t column, const Pack<T>& pack) {
    const Pack<T> gamma = load_pack<kAccess, kWidth>(args.gamma.row<T>(0), column, d);
    const Pack<T> beta = load_pack<kAccess, kWidth>(args.beta.row<T>(0), column, d);
    A y[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      y[i] = fma((load(pack.get(i)) - mean) * rstd, load(gamma.get(i)), load(beta.get(i)));
    }
    store_pack<kAccess>(args.y.row<T>(r), column, d, pack_of<T>(y));
  });
  if (threadIdx.x == 0) {
    *args.mean.row<A>(r) = mean;
    *args.rstd.row<A>(r) = rstd;
  }
}

constexpr int kRowBatch = 2;       // rows that are reduced together
constexpr int kMostThreads = 512;  // of a block

// Calls fn with the threads that own one pack each, as a constant.
template <class Fn>
void with_threads(std::int64_t packs, const Fn& fn) {
  if (packs <= 64) return fn(std::integral_constant<int, 64>{});
  if (packs <= 128) return fn(std::integral_constant<int, 128>{});
  if (packs <= 256) return fn(std::integral_constant<int, 256>{});
  fn(std::integral_constant<int, kMostThreads>{});
}

// dx of one chunk of rows, and the chunk's dgamma and dbeta into two rows of `partial`: a thread owns one pack of columns, and x
// and dy are read once.
template <class T, int kThreads, Access kAccess>
__global__ void __launch_bounds__(kThreads, 768 / kThreads)
    differentiate_chunk(const LayerNormBackwardArgs args, const std::int64_t chunk_rows) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>, kWarps = kThreads / kWarp, kSums = 2 * kRowBatch;
  __shared__ A scratch[2][kWarps][kSums];  // two, so that one barrier a batch is enough
  const std::int64_t d = args.x.cols, column = threadIdx.x * kWidth;
  const std::int64_t begin = blockIdx.x * chunk_rows, end = min(args.x.rows, begin + chunk_rows);
  const A reciprocal_d = A(1) / static_cast<A>(d);
  const bool owns = column < d;
  const Pack<T> gammas = owns ? load_pack<kAccess, kWidth>(args.gamma.row<T>(0), column, d) : Pack<T>{};
  A gamma[kWidth];
#pragma unroll
  for (int j = 0; j < kWidth; ++j) gamma[j] = load(gammas.get(j));
  A dgamma[kWidth] = {}, dbeta[kWidth] = {};
  int turn = 0;
  for (std::int64_t first = begin; first < end; first += kRowBatch, turn ^= 1) {
    // Load.
    Pack<T> x[kRowBatch], dy[kRowBatch];
    A mean[kRowBatch], rstd[kRowBatch];
#pragma unroll
    for (int i = 0; i < kRowBatch; ++i) {
      const std::int64_t r = min(first + i, end - 1);  // past the end the last row again, which counts nothing
      x[i] = owns ? load_pack<kAccess, kWidth>(args.x.row<T>(r), column, d) : Pack<T>{};
      dy[i] = owns ? load_pack<kAccess, kWidth>(args.dy.row<T>(r), column, d) : Pack<T>{};
      mean[i] = *args.mean.row<A>(r);
      rstd[i] = *args.rstd.row<A>(r);
    }

    // Reduce: sum(g) and sum(g h) of each row.
    A sums[kSums] = {};
#pragma unroll
    for (int i = 0; i < kRowBatch; ++i) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        const A dy_j = load(dy[i].get(j)), h = (load(x[i].get(j)) - mean[i]) * rstd[i];
        sums[2 * i] = fma(dy_j, gamma[j], sums[2 * i]);
        sums[2 * i + 1] = fma(dy_j * gamma[j], h, sums[2 * i + 1]);
      }
    }
#pragma unroll
    for (A& sum : sums) sum = fold_warp(sum, Sum());
    if (threadIdx.x % kWarp == 0) {
#pragma unroll
      for (int k = 0; k < kSums; ++k) scratch[turn][threadIdx.x / kWarp][k] = sums[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      sums[k] = scratch[turn][0][k];
#pragma unroll
      for (int warp = 1; warp < kWarps; ++warp) sums[k] += scratch[turn][warp][k];
      sums[k] *= reciprocal_d;
    }

    // Store.
    if (!owns) continue;
#pragma unroll
    for (int i = 0; i < kRowBatch; ++i) {
      const std::int64_t r = first + i;
      if (r >= end) break;
      Pack<T> earlier{};
      if (args.accumulate) earlier = load_pack<kAccess, kWidth>(args.dx.row<const T>(r), column, d);
      A dx[kWidth];
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        const A dy_j = load(dy[i].get(j)), h = (load(x[i].get(j)) - mean[i]) * rstd[i];
        dgamma[j] = fma(dy_j, h, dgamma[j]);
        dbeta[j] += dy_j;
        dx[j] = fma(rstd[i], fma(-h, sums[2 * i + 1], fma(dy_j, gamma[j], -sums[2 * i])), load(earlier.get(j)));
      }
      store_pack<kAccess>(args.dx.row<T>(r), column, d, pack_of<T>(dx));
    }
  }
  if (!owns) return;
  store_pack<kAccess>(args.partial.row<A>(2 * blockIdx.x), column, d, pack_of<A>(dgamma));
  store_pack<kAccess>(args.partial.row<A>(2 * blockIdx.x + 1), column, d, pack_of<A>(dbeta));
}

// Rows of more packs take two launches: differentiate_rows and sum_chunk.
template <class T, Access kAccess>
__global__ void __launch_bounds__(kMostThreads) differentiate_rows(const LayerNormBackwardArgs args) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>, kThreads = kMostThreads;
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
template <class T, Access kAccess>
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

constexpr int kChunkThreads = 32;  // of a column; each takes every 32nd chunk

template <class A>
__global__ void __launch_bounds__(kWarp* kChunkThreads) add_chunks(const LayerNormBackwardArgs args) {
  __shared__ A sums[kChunkThreads][kWarp + 1];
  const MatrixView gradient = blockIdx.y == 0 ? args.dgamma : args.dbeta;
  const std::int64_t column = blockIdx.x * static_cast<std::int64_t>(kWarp) + threadIdx.x;
  A sum = 0;
  if (column < gradient.cols) {
#pragma unroll 4
    for (std::int64_t chunk = threadIdx.y; chunk < args.partial.rows / 2; chunk += kChunkThreads) {
      sum += args.partial.row<A>(2 * chunk + blockIdx.y)[column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= gradient.cols) return;
  A total = args.accumulate_parameters ? gradient.row<A>(0)[column] : A(0);
  for (int i = 0; i < kChunkThreads; ++i) total += sums[i][threadIdx.x];
  gradient.row<A>(0)[column] = total;
}

}  // namespace

void run(CudaQueue& queue, const LayerNormArgs& args) {
  check(args);
  const auto& x = args.x;
  if (x.rows == 0 || x.cols == 0) return;
  with_float(x.dtype, "layer_norm", [&]<class T>(T) {
    with_row_shape(ceil_div(x.cols, kPackWidth<T>), [&](auto shape) {
      with_whole_access(access_of(kPackWidth<T>, {x, args.gamma, args.beta, args.y}), x.cols, kPackWidth<T>, [&](auto access) {
        layer_norm<T, shape.threads, shape.packs, access()>
            <<<static_cast<unsigned>(ceil_div(x.rows, shape.rows)), dim3(shape.threads, shape.rows), 0, stream_of(queue)>>>(args);
      });
    });
    TW_CUDA_LAUNCHED("layer_norm");
  });
}

void run(CudaQueue& queue, const LayerNormBackwardArgs& args) {
  check(args);
  const auto& x = args.x;
  if (x.cols == 0) return;
  with_float(x.dtype, "layer_norm_backward", [&]<class T>(T) {
    const std::int64_t packs = ceil_div(x.cols, kPackWidth<T>), chunk_rows = layer_norm_row_chunk(x.rows);
    const auto chunks = static_cast<unsigned>(args.partial.rows / 2);
    with_whole_access(access_of(kPackWidth<T>, {x, args.gamma, args.dy, args.dx, args.partial}), x.cols, kPackWidth<T>, [&](auto access) {
      if (x.rows > 0 && packs <= kMostThreads) {
        with_threads(packs, [&](auto threads) {
          differentiate_chunk<T, threads(), access()><<<chunks, threads(), 0, stream_of(queue)>>>(args, chunk_rows);
        });
      } else if (x.rows > 0) {
        differentiate_rows<T, access()><<<static_cast<unsigned>(x.rows), kMostThreads, 0, stream_of(queue)>>>(args);
        const dim3 blocks(chunks, static_cast<unsigned>(ceil_div(packs, kColumnThreads)));
        sum_chunk<T, access()><<<blocks, kColumnThreads, 0, stream_of(queue)>>>(args, chunk_rows);
      }
    });
    add_chunks<Arithmetic<T>>
        <<<dim3(static_cast<unsigned>(ceil_div(x.cols, kWarp)), 2), dim3(kWarp, kChunkThreads), 0, stream_of(queue)>>>(args);
    TW_CUDA_LAUNCHED("layer_norm_backward");
  });
}

}  // namespace tilewave
