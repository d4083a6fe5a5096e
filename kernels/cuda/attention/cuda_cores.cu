// Attention on CUDA cores, for every type and head size: a block owns a window of rows and a tile of their head's columns, and
// walks over the other side's rows a tile at a time. Scores need the whole head, which passes through shared memory tile by tile
// of columns; so heads wider than a tile have their scores computed once for each tile of columns.
// Forward rescales a running sum as its maximum grows (Milakov and Gimelshein, 2018); backward has P again from log_sum_exp.
#include "kernels/cuda/attention/launch.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/tiling.h"

namespace tilewave::attention_on_gpu {
namespace {

constexpr int kSide = 16, kThreads = kSide * kSide;  // a block's threads, as a square

// A thread computes rows threadIdx.y + 16 r and columns threadIdx.x + 16 c of a tile.
template <class A>
struct TileOf {
  static constexpr int kSize = sizeof(A) == 8 ? 32 : 64;
  static constexpr int kMicro = kSize / kSide;
  static constexpr int kPitch = kSize + 16 / static_cast<int>(sizeof(A));
  alignas(16) A at[kSize][kPitch];
};
template <class A>
struct Micro {
  A at[TileOf<A>::kMicro][TileOf<A>::kMicro] = {};
};

__device__ int own(int r) { return static_cast<int>(threadIdx.y) + kSide * r; }
__device__ int other(int c) { return static_cast<int>(threadIdx.x) + kSide * c; }

// Rows from `row` and columns from `column`; zero beyond end_row and end_column.
template <class T, class A>
__device__ void load_tile(TileOf<A>& tile, const Rows<const T>& rows, std::int64_t row, std::int64_t end_row, std::int64_t column,
                          std::int64_t end_column) {
  constexpr int kSize = TileOf<A>::kSize;
  for (int i = threadIdx.y * kSide + threadIdx.x; i < kSize * kSize; i += kThreads) {
    const std::int64_t r = row + i / kSize, c = column + i % kSize;
    tile.at[i / kSize][i % kSize] = r < end_row && c < end_column ? load(rows.row(r)[c]) : A(0);
  }
}

// sums[r, c] += sum over k of a[r, k] b[c, k]
template <class A>
__device__ void multiply_rows_by_rows(const TileOf<A>& a, const TileOf<A>& b, Micro<A>& sums) {
  constexpr int kMicro = TileOf<A>::kMicro;
#pragma unroll 4
  for (int k = 0; k < TileOf<A>::kSize; ++k) {
#pragma unroll
    for (int r = 0; r < kMicro; ++r) {
#pragma unroll
      for (int c = 0; c < kMicro; ++c) sums.at[r][c] += a.at[own(r)][k] * b.at[other(c)][k];
    }
  }
}

// sums[r, c] += sum over k of a[r, k] b[k, c]
template <class A>
__device__ void multiply_rows_by_columns(const TileOf<A>& a, const TileOf<A>& b, Micro<A>& sums) {
  constexpr int kMicro = TileOf<A>::kMicro;
#pragma unroll 4
  for (int k = 0; k < TileOf<A>::kSize; ++k) {
#pragma unroll
    for (int r = 0; r < kMicro; ++r) {
#pragma unroll
      for (int c = 0; c < kMicro; ++c) sums.at[r][c] += a.at[own(r)][k] * b.at[k][other(c)];
    }
  }
}

// Where a head's columns begin on either side: the side of keys may have fewer heads.
struct HeadColumns {
  std::int64_t own = 0, other = 0, size = 0;
};

// sums += own rows times other rows, over the head's columns.
template <class T, class A>
__device__ void multiply_over_head(TileOf<A>& a, TileOf<A>& b, const Rows<const T>& own_rows, std::int64_t own_row,
                                   const Rows<const T>& other_rows, std::int64_t other_row, std::int64_t other_end, const HeadColumns& head,
                                   Micro<A>& sums) {
  for (std::int64_t column = 0; column < head.size; column += TileOf<A>::kSize) {
    __syncthreads();
    load_tile(a, own_rows, own_row, own_rows.rows, head.own + column, head.own + head.size);
    load_tile(b, other_rows, other_row, other_end, head.other + column, head.other + head.size);
    __syncthreads();
    multiply_rows_by_rows(a, b, sums);
  }
}

// Over the 16 threads that share a row.
template <class A, class Combine>
__device__ A combine_row(A value, Combine combine) {
#pragma unroll
  for (int distance = kSide / 2; distance > 0; distance /= 2) value = combine(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

// The spans of a thread's rows, and the least span that holds those of all the block's rows.
template <int kRows>
struct Window {
  Span of[kRows];
  Span all;
};
template <int kRows>
__device__ Window<kRows> load_window(const Span* spans, std::int64_t first_row, std::int64_t rows) {
  __shared__ Span shared;
  if (threadIdx.x + threadIdx.y == 0) shared = Span::nothing();
  __syncthreads();
  Window<kRows> window;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = first_row + own(r);
    const Span span = row < rows ? spans[row] : Span::nothing();
    window.of[r] = span.first < span.end ? span : Span::nothing();
    atomicMin(&shared.first, window.of[r].first);
    atomicMax(&shared.end, window.of[r].end);
  }
  __syncthreads();
  window.all = shared;
  return window;
}

__device__ bool kept(const Dropout& dropout, std::int64_t query, std::int64_t key, unsigned head) {
  if (dropout.state == nullptr) return true;
  const PhiloxCounter draws = draw_key(dropout)(static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(key / 4), head);
  return keeps(draws[static_cast<std::size_t>(key % 4)], dropout.threshold);
}

__device__ float exp_of(float x) { return expf(x); }
__device__ double exp_of(double x) { return exp(x); }
__device__ float log_of(float x) { return logf(x); }
__device__ double log_of(double x) { return log(x); }

// Forward.

template <class A>
struct ForwardStorage {
  TileOf<A> own, other, p;
};

template <class T>
__global__ void __launch_bounds__(kThreads) attend(const Forward<T> op) {
  using A = Arithmetic<T>;
  constexpr int kMicro = TileOf<A>::kMicro, kSize = TileOf<A>::kSize;
  extern __shared__ std::byte memory[];
  auto& storage = *reinterpret_cast<ForwardStorage<A>*>(memory);
  const std::int64_t first_row = blockIdx.x * static_cast<std::int64_t>(kSize), head = blockIdx.y;
  const HeadColumns columns{
      .own = head * op.head_size, .other = blockIdx.y / op.sharing * static_cast<std::int64_t>(op.head_size), .size = op.head_size};
  const std::int64_t tile_column = blockIdx.z * kSize, column = columns.own + tile_column, head_end = columns.own + columns.size;
  const Window window = load_window<kMicro>(op.query_spans, first_row, op.q.rows);
  const A scale = static_cast<A>(op.scale), kept_scale = static_cast<A>(op.dropout.kept_scale);

  Micro<A> sums;  // of P v
  A most[kMicro], total[kMicro] = {};
  for (A& value : most) value = -INFINITY;
  for (std::int64_t key = window.all.first; key < window.all.end; key += kSize) {
    Micro<A> p;
    multiply_over_head(storage.own, storage.other, op.q, first_row, op.k, key, window.all.end, columns, p);

    // The softmax so far: sums and totals move to the new maximum.
#pragma unroll
    for (int r = 0; r < kMicro; ++r) {
      A new_most = most[r];
#pragma unroll
      for (int c = 0; c < kMicro; ++c) {
        p.at[r][c] = window.of[r].holds(key + other(c)) ? p.at[r][c] * scale : A(-INFINITY);
        new_most = max(new_most, p.at[r][c]);
      }
      new_most = combine_row(new_most, [](A a, A b) { return max(a, b); });
      const A shift = new_most == A(-INFINITY) ? A(0) : new_most;  // nothing seen yet: exp(-infinity) is 0
      const A correction = exp_of(most[r] - shift);
      A sum = 0;
#pragma unroll
      for (int c = 0; c < kMicro; ++c) {
        const A value = exp_of(p.at[r][c] - shift);
        sum += value;
        const bool keep = kept(op.dropout, first_row + own(r), key + other(c), blockIdx.y);
        storage.p.at[own(r)][other(c)] = keep ? value * kept_scale : A(0);
        sums.at[r][c] *= correction;
      }
      total[r] = total[r] * correction + combine_row(sum, [](A a, A b) { return a + b; });
      most[r] = new_most;
    }

    __syncthreads();
    load_tile(storage.other, op.v, key, window.all.end, columns.other + tile_column, columns.other + columns.size);
    __syncthreads();
    multiply_rows_by_columns(storage.p, storage.other, sums);
  }

  // Store. A query that saw no key has no total and is zero.
#pragma unroll
  for (int r = 0; r < kMicro; ++r) {
    const std::int64_t row = first_row + own(r);
    if (row >= op.q.rows) continue;
    const bool blind = total[r] == A(0);
#pragma unroll
    for (int c = 0; c < kMicro; ++c) {
      if (column + other(c) < head_end) op.out.row(row)[column + other(c)] = store<T>(blind ? A(0) : sums.at[r][c] / total[r]);
    }
    if (op.log_sum_exp.data != nullptr && blockIdx.z == 0 && threadIdx.x == 0) {
      op.log_sum_exp.row(row)[head] = blind ? A(0) : most[r] + log_of(total[r]);
    }
  }
}

// Backward.

template <class A>
struct BackwardStorage {
  TileOf<A> own, other, p, ds;
  A log_sum_exp[TileOf<A>::kSize], delta[TileOf<A>::kSize];  // of the tile's queries, own or other
};

template <class T, AttentionSide side>
__global__ void __launch_bounds__(kThreads) attend_backward(const Backward<T> op) {
  using A = Arithmetic<T>;
  constexpr int kMicro = TileOf<A>::kMicro, kSize = TileOf<A>::kSize;
  extern __shared__ std::byte memory[];
  auto& storage = *reinterpret_cast<BackwardStorage<A>*>(memory);
  const std::int64_t first_row = blockIdx.x * static_cast<std::int64_t>(kSize), head = blockIdx.y;
  const std::int64_t head_column = head * op.head_size, head_end = head_column + op.head_size;
  const HeadColumns columns{.own = blockIdx.y / op.own_sharing * static_cast<std::int64_t>(op.head_size),
                            .other = blockIdx.y / op.other_sharing * static_cast<std::int64_t>(op.head_size),
                            .size = op.head_size};
  const std::int64_t tile_column = blockIdx.z * kSize, column = head_column + tile_column;
  const std::int64_t other_column = columns.other + tile_column, other_end = columns.other + columns.size;
  const Window window = load_window<kMicro>(op.spans, first_row, op.own.first.rows);
  const A scale = static_cast<A>(op.scale), kept_scale = static_cast<A>(op.dropout.kept_scale);

  if constexpr (side == AttentionSide::queries) {  // delta = sum(dout * out)
#pragma unroll
    for (int r = 0; r < kMicro; ++r) {
      const std::int64_t row = first_row + own(r);
      A sum = 0;
      if (row < op.own.first.rows) {
        for (std::int64_t c = head_column + threadIdx.x; c < head_end; c += kSide)
          sum += load(op.out.row(row)[c]) * load(op.own.second.row(row)[c]);
      }
      sum = combine_row(sum, [](A a, A b) { return a + b; });
      if (threadIdx.x != 0) continue;
      storage.delta[own(r)] = sum;
      storage.log_sum_exp[own(r)] = row < op.own.first.rows ? op.log_sum_exp.row(row)[head] : A(0);
      if (blockIdx.z == 0 && row < op.own.first.rows) op.delta.row(row)[head] = sum;
    }
  }

  Micro<A> d_first, d_second;
  for (std::int64_t row = window.all.first; row < window.all.end; row += kSize) {
    Micro<A> p, ds;
    multiply_over_head(storage.own, storage.other, op.own.first, first_row, op.other.first, row, window.all.end, columns, p);
    multiply_over_head(storage.own, storage.other, op.own.second, first_row, op.other.second, row, window.all.end, columns, ds);
    if constexpr (side == AttentionSide::keys) {
      __syncthreads();
      for (int i = threadIdx.y * kSide + threadIdx.x; i < kSize; i += kThreads) {
        const bool inside = row + i < window.all.end;
        storage.log_sum_exp[i] = inside ? op.log_sum_exp.row(row + i)[head] : A(0);
        storage.delta[i] = inside ? op.delta.row(row + i)[head] : A(0);
      }
      __syncthreads();
    }

    // P and dS.
#pragma unroll
    for (int r = 0; r < kMicro; ++r) {
#pragma unroll
      for (int c = 0; c < kMicro; ++c) {
        const int query = side == AttentionSide::queries ? own(r) : other(c);
        const std::int64_t own_row = first_row + own(r), other_row = row + other(c);
        const bool seen = window.of[r].holds(other_row);
        const A probability = seen ? exp_of(p.at[r][c] * scale - storage.log_sum_exp[query]) : A(0);
        const bool keep = side == AttentionSide::queries ? kept(op.dropout, own_row, other_row, blockIdx.y)
                                                         : kept(op.dropout, other_row, own_row, blockIdx.y);
        const A factor = keep ? kept_scale : A(0);
        storage.p.at[own(r)][other(c)] = probability * factor;
        storage.ds.at[own(r)][other(c)] = seen ? probability * (ds.at[r][c] * factor - storage.delta[query]) : A(0);
      }
    }

    __syncthreads();
    load_tile(storage.other, op.other.first, row, window.all.end, other_column, other_end);
    if constexpr (side == AttentionSide::keys) load_tile(storage.own, op.other.second, row, window.all.end, other_column, other_end);
    __syncthreads();
    multiply_rows_by_columns(storage.ds, storage.other, d_first);
    if constexpr (side == AttentionSide::keys) multiply_rows_by_columns(storage.p, storage.own, d_second);
  }

  // Store.
#pragma unroll
  for (int r = 0; r < kMicro; ++r) {
    const std::int64_t row = first_row + own(r);
    if (row >= op.own.first.rows) continue;
#pragma unroll
    for (int c = 0; c < kMicro; ++c) {
      if (column + other(c) >= head_end) continue;
      op.d_first.row(row)[column + other(c)] = store<T>(d_first.at[r][c] * scale);
      if constexpr (side == AttentionSide::keys) op.d_second.row(row)[column + other(c)] = store<T>(d_second.at[r][c]);
    }
  }
}

// A block for each window of rows, head and tile of the head's columns.
template <class Storage, class Operands>
void launch(const CudaQueue& queue, const char* name, void (*kernel)(Operands), const Operands& operands, std::int64_t rows,
            std::int64_t heads, int tile) {
  const dim3 grid(static_cast<unsigned>(ceil_div(rows, tile)), static_cast<unsigned>(heads),
                  static_cast<unsigned>(ceil_div(operands.head_size, tile)));
  if (grid.x == 0 || grid.z == 0) return;
  TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage)));
  kernel<<<grid, dim3(kSide, kSide), sizeof(Storage), stream_of(queue)>>>(operands);
  TW_CUDA_LAUNCHED(name);
}

}  // namespace

void attend_on_cuda_cores(CudaQueue& queue, const AttentionArgs& args) {
  with_float(args.q.dtype, "attention", [&]<class T>(T) {
    using A = Arithmetic<T>;
    launch<ForwardStorage<A>>(queue, "attention", attend<T>, Forward<T>(args), args.q.rows, args.heads, TileOf<A>::kSize);
  });
}

void attend_on_cuda_cores(CudaQueue& queue, const AttentionBackwardArgs& args) {
  with_float(args.q.dtype, "attention_backward", [&]<class T>(T) {
    using A = Arithmetic<T>;
    const auto pass = [&]<AttentionSide side>(std::integral_constant<AttentionSide, side>, std::int64_t rows) {
      launch<BackwardStorage<A>>(queue, "attention_backward", attend_backward<T, side>, Backward<T>(args, side), rows, args.heads,
                                 TileOf<A>::kSize);
    };
    pass(std::integral_constant<AttentionSide, AttentionSide::queries>{}, args.q.rows);
    pass(std::integral_constant<AttentionSide, AttentionSide::keys>{}, args.k.rows);
  });
}

}  // namespace tilewave::attention_on_gpu
