// Layer normalisation: a row is one warp's or one block's, and stays in registers between its passes unless it is very wide.
// Backward gives a block a chunk of rows, of which groups of its threads take one each at a time, and adds up the chunks in a second
// launch.
#include "kernels/cuda/core/rows.h"
#include "kernels/cuda/prim/prefetch.h"
#include "kernels/ops/layer_norm.h"

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

constexpr int kMostPacks = 2;       // of a row that a thread keeps
constexpr int kChunkThreads = 256;  // of a block of differentiate_chunk
constexpr int kMostThreads = 512;   // of a block

// What a thread of a group of kThreads, which share a row, has of it.
template <class T>
struct RowOperands {
  Pack<T> x[kMostPacks], dy[kMostPacks];
  Arithmetic<T> mean, rstd;
};

// dx of one chunk of rows, and the chunk's dgamma and dbeta into two rows of `partial`. A group of kThreads takes a row, kMostPacks
// packs of columns a thread, while its next one is on its way; the groups of a block take rows in turn, past the end a row of zeros, and
// add up in order at the end.
template <class T, int kThreads, Access kAccess>
__global__ void __launch_bounds__(kChunkThreads, 2) differentiate_chunk(const LayerNormBackwardArgs args, const std::int64_t chunk_rows) {
  using A = Arithmetic<T>;
  using Sums = Pack<A, kPackWidth<T>>;
  constexpr int kWidth = kPackWidth<T>, kGroups = kChunkThreads / kThreads, kWarps = kThreads / kWarp, kPacks = kMostPacks * kThreads;
  constexpr int kQuads = sizeof(Sums) / sizeof(uint4);
  __shared__ A scratch[2][kGroups][kWarps][2];                                                  // two, so that one barrier a turn is enough
  __shared__ uint4 group_sums[kGroups > 1 ? kGroups : 1][2][kQuads][kGroups > 1 ? kPacks : 1];  // neighbours 16 bytes apart: no bank twice
  const std::int64_t d = args.x.cols, begin = blockIdx.x * chunk_rows, end = min(args.x.rows, begin + chunk_rows);
  const A reciprocal_d = A(1) / static_cast<A>(d);
  const auto column_of = [&](int k) { return static_cast<std::int64_t>((k * kThreads + threadIdx.x) * kWidth); };
  const auto load_own = [&](const T* row, int k) {
    return column_of(k) < d ? load_pack<kAccess, kWidth>(row, column_of(k), d) : Pack<T>{};
  };
  const auto load_row = [&](std::int64_t r) {
    RowOperands<T> row;
#pragma unroll
    for (int k = 0; k < kMostPacks; ++k) {
      row.x[k] = load_own(args.x.row<T>(r), k);
      row.dy[k] = load_own(args.dy.row<T>(r), k);
      if (args.accumulate && column_of(k) < d) prefetch_to_l2(args.dx.row<T>(r) + column_of(k));
    }
    row.mean = *args.mean.row<A>(r);
    row.rstd = *args.rstd.row<A>(r);
    return row;
  };
  RowOperands<T> next{};
  if (begin + threadIdx.y < end) next = load_row(begin + threadIdx.y);
  Pack<T> gamma[kMostPacks];
#pragma unroll
  for (int k = 0; k < kMostPacks; ++k) gamma[k] = load_own(args.gamma.row<T>(0), k);
  A dgamma[kMostPacks][kWidth] = {}, dbeta[kMostPacks][kWidth] = {};
  int turn = 0;
  for (std::int64_t r = begin + threadIdx.y; r < end + threadIdx.y; r += kGroups, turn ^= 1) {
    // Load.
    const RowOperands<T> row = next;
    next = r + kGroups < end ? load_row(r + kGroups) : RowOperands<T>{};

    // Reduce: sum(g) and sum(g h).
    A sum_g = 0, sum_gh = 0;
#pragma unroll
    for (int k = 0; k < kMostPacks; ++k) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const A g = load(row.dy[k].get(i)) * load(gamma[k].get(i)), h = (load(row.x[k].get(i)) - row.mean) * row.rstd;
        sum_g += g;
        sum_gh = fma(g, h, sum_gh);
      }
    }
    sum_g = fold_warp(sum_g, Sum());
    sum_gh = fold_warp(sum_gh, Sum());
    if constexpr (kWarps > 1) {
      A(&sums)[kWarps][2] = scratch[turn][threadIdx.y];
      if (threadIdx.x % kWarp == 0) {
        sums[threadIdx.x / kWarp][0] = sum_g;
        sums[threadIdx.x / kWarp][1] = sum_gh;
      }
      __syncthreads();
      sum_g = sums[0][0];
      sum_gh = sums[0][1];
#pragma unroll
      for (int warp = 1; warp < kWarps; ++warp) {
        sum_g += sums[warp][0];
        sum_gh += sums[warp][1];
      }
    }
    const A mean_g = sum_g * reciprocal_d, mean_gh = sum_gh * reciprocal_d;

    // Store.
#pragma unroll
    for (int k = 0; k < kMostPacks; ++k) {
      if (column_of(k) >= d || r >= end) break;
      Pack<T> earlier{};
      if (args.accumulate) earlier = load_pack<kAccess, kWidth>(args.dx.row<const T>(r), column_of(k), d);
      A dx[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const A dy = load(row.dy[k].get(i)), h = (load(row.x[k].get(i)) - row.mean) * row.rstd;
        dgamma[k][i] = fma(dy, h, dgamma[k][i]);
        dbeta[k][i] += dy;
        dx[i] = fma(row.rstd, fma(-h, mean_gh, fma(dy, load(gamma[k].get(i)), -mean_g)), load(earlier.get(i)));
      }
      store_pack<kAccess>(args.dx.row<T>(r), column_of(k), d, pack_of<T>(dx));
    }
  }

  // Reduce the groups' sums, and store: a thread takes a pack of dgamma's or of dbeta's at a time.
  const auto store_sums = [&](int which, std::int64_t column, const Sums& sums) {
    if (column < d) store_pack<kAccess>(args.partial.row<A>(2 * blockIdx.x + which), column, d, sums);
  };
  if constexpr (kGroups == 1) {
#pragma unroll
    for (int k = 0; k < kMostPacks; ++k) {
      store_sums(0, column_of(k), pack_of<A>(dgamma[k]));
      store_sums(1, column_of(k), pack_of<A>(dbeta[k]));
    }
  } else {
#pragma unroll
    for (int k = 0; k < kMostPacks; ++k) {
      const Sums sums[2] = {pack_of<A>(dgamma[k]), pack_of<A>(dbeta[k])};
#pragma unroll
      for (int which = 0; which < 2; ++which) {
#pragma unroll
        for (int quad = 0; quad < kQuads; ++quad) {
          memcpy(&group_sums[threadIdx.y][which][quad][k * kThreads + threadIdx.x], sums[which].words + 4 * quad, sizeof(uint4));
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (int at = static_cast<int>(threadIdx.y * kThreads + threadIdx.x); at < 2 * kPacks; at += kChunkThreads) {
      const int which = at / kPacks, pack = at % kPacks;
      A total[kWidth] = {};
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        Sums sums;
#pragma unroll
        for (int quad = 0; quad < kQuads; ++quad) memcpy(sums.words + 4 * quad, &group_sums[group][which][quad][pack], sizeof(uint4));
#pragma unroll
        for (int i = 0; i < kWidth; ++i) total[i] += sums.get(i);
      }
      store_sums(which, static_cast<std::int64_t>(pack) * kWidth, pack_of<A>(total));
    }
  }
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

constexpr int kAddThreads = 32;  // of a column; each takes every 32nd chunk

template <class A>
__global__ void __launch_bounds__(kWarp* kAddThreads) add_chunks(const LayerNormBackwardArgs args) {
  constexpr int kMost = static_cast<int>(ceil_div(kLayerNormChunks, kAddThreads));
  __shared__ A sums[kAddThreads][kWarp + 1];
  const MatrixView gradient = blockIdx.y == 0 ? args.dgamma : args.dbeta;
  const std::int64_t column = blockIdx.x * static_cast<std::int64_t>(kWarp) + threadIdx.x, chunks = args.partial.rows / 2;
  const bool owns = column < gradient.cols;

  // Load: all of it is under way at once.
  const A earlier = args.accumulate_parameters && owns && threadIdx.y == 0 ? gradient.row<A>(0)[column] : A(0);
  A parts[kMost];
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const std::int64_t chunk = i * kAddThreads + threadIdx.y;
    parts[i] = owns && chunk < chunks ? args.partial.row<A>(2 * chunk + blockIdx.y)[column] : A(0);
  }

  // Reduce.
  A sum = 0;
#pragma unroll
  for (const A& part : parts) sum += part;
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || !owns) return;
  A total = earlier;
#pragma unroll
  for (int i = 0; i < kAddThreads; ++i) total += sums[i][threadIdx.x];

  // Store.
  gradient.row<A>(0)[column] = total;
}

// Calls fn with the threads that share a row of so many packs.
template <class Fn>
void with_group(std::int64_t packs, const Fn& fn) {
  if (packs <= kMostPacks * 32) return fn(std::integral_constant<int, 32>{});
  if (packs <= kMostPacks * 64) return fn(std::integral_constant<int, 64>{});
  if (packs <= kMostPacks * 128) return fn(std::integral_constant<int, 128>{});
  fn(std::integral_constant<int, kChunkThreads>{});
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
      if (x.rows > 0 && packs <= kMostPacks * kChunkThreads) {
        with_group(packs, [&](auto threads) {
          constexpr int kThreads = threads();
          const dim3 block(kThreads, kChunkThreads / kThreads);
          differentiate_chunk<T, kThreads, access()><<<chunks, block, 0, stream_of(queue)>>>(args, chunk_rows);
        });
      } else if (x.rows > 0) {
        differentiate_rows<T, access()><<<static_cast<unsigned>(x.rows), kMostThreads, 0, stream_of(queue)>>>(args);
        const dim3 blocks(chunks, static_cast<unsigned>(ceil_div(packs, kColumnThreads)));
        sum_chunk<T, access()><<<blocks, kColumnThreads, 0, stream_of(queue)>>>(args, chunk_rows);
      }
    });
    add_chunks<Arithmetic<T>>
        <<<dim3(static_cast<unsigned>(ceil_div(x.cols, kWarp)), 2), dim3(kWarp, kAddThreads), 0, stream_of(queue)>>>(args);
    TW_CUDA_LAUNCHED("layer_norm_backward");
  });
}

}  // namespace tilewave
