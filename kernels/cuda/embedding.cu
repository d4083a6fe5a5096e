// Embedding. Backward sorts the rows by id (CUB's radix sort, which is stable), so that each table row is summed by the threads
// that own its columns, in the order of its rows, without atomics.
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/packs.h"
#include "kernels/embedding.h"

namespace tilewave {
namespace {

template <class T>
struct Embed {
  static constexpr int kWidth = kPackWidth<T>;
  struct Operands {
    Pack<T> token, position;
  };
  EmbeddingArgs args;
  std::int64_t cols;
  Arithmetic<T> scale;

  template <Access kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    const std::int32_t id = args.ids.row<std::int32_t>(0)[at.row];
    if (id < 0) return {};
    const std::int32_t position = args.position_ids.row<std::int32_t>(0)[at.row];
    return {.token = load_pack<kAccess, kWidth>(args.table.row<T>(id), at.column, cols),
            .position = load_pack<kAccess, kWidth>(args.positions.row<T>(position), at.column, cols)};
  }
  template <Access kAccess>
  __device__ __forceinline__ void store(const Place& at, const Operands& operands) const {
    Arithmetic<T> values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      values[i] = fma(scale, tilewave::load(operands.token.get(i)), tilewave::load(operands.position.get(i)));
    store_pack<kAccess>(args.y.row<T>(at.row), at.column, cols, pack_of<T>(values));
  }
};

// One table's gradient: row v gets scale times the sum of dy's rows whose key is v. Rows that count nothing have the key
// gradient.rows, after all others.
struct TableGradient {
  MatrixView gradient;
  bool accumulate = false;
  double scale = 1.0;
  const std::int32_t *ids = nullptr, *keys = nullptr;         // [rows]; the rows with an id below 0 count nothing
  std::int32_t *unsorted_keys = nullptr, *numbers = nullptr;  // [rows]
  std::int32_t *sorted_keys = nullptr, *sorted = nullptr;     // [rows]: keys in order, and the rows they belong to
  std::int32_t* starts = nullptr;                             // [gradient.rows + 1]: where each key's rows start in `sorted`
};

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) number_rows(const TableGradient table, const std::int64_t rows) {
  const std::int64_t r = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (r >= rows) return;
  table.unsorted_keys[r] = table.ids[r] < 0 ? static_cast<std::int32_t>(table.gradient.rows) : table.keys[r];
  table.numbers[r] = static_cast<std::int32_t>(r);
}

// The first of the sorted keys that is not below v.
__global__ void __launch_bounds__(kThreads) find_starts(const TableGradient table, const std::int64_t rows) {
  const std::int64_t v = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (v > table.gradient.rows) return;
  std::int64_t below = 0, at_least = rows;
  while (below < at_least) {
    const std::int64_t middle = (below + at_least) / 2;
    if (table.sorted_keys[middle] < v) {
      below = middle + 1;
    } else {
      at_least = middle;
    }
  }
  table.starts[v] = static_cast<std::int32_t>(below);
}

constexpr int kColumnThreads = 128;

template <class T, Access kAccess>
__global__ void __launch_bounds__(kColumnThreads) sum_table(const TableGradient table, const ConstMatrixView dy) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  const std::int64_t v = blockIdx.x, cols = dy.cols;
  const std::int64_t column = (blockIdx.y * static_cast<std::int64_t>(kColumnThreads) + threadIdx.x) * kWidth;
  const std::int32_t begin = table.starts[v], end = table.starts[v + 1];
  if (column >= cols || (table.accumulate && begin == end)) return;
  A sum[kWidth] = {};
#pragma unroll 8
  for (std::int32_t i = begin; i < end; ++i) {
    const Pack<T> row = load_pack<kAccess, kWidth>(dy.row<T>(table.sorted[i]), column, cols);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum[j] += load(row.get(j));
  }
  A* const gradient = table.gradient.row<A>(v);
  Pack<A, kWidth> earlier{};
  if (table.accumulate) earlier = load_pack<kAccess, kWidth>(static_cast<const A*>(gradient), column, cols);
#pragma unroll
  for (int j = 0; j < kWidth; ++j) sum[j] = fma(static_cast<A>(table.scale), sum[j], earlier.get(j));
  store_pack<kAccess>(gradient, column, cols, pack_of<A>(sum));
}

struct SortMemory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

void sum_rows_by_key(CudaQueue& queue, const TableGradient& table, const ConstMatrixView& dy, const SortMemory& memory) {
  const std::int64_t rows = dy.rows, vocabulary = table.gradient.rows;
  if (rows > 0) {
    number_rows<<<static_cast<unsigned>(ceil_div(rows, kThreads)), kThreads, 0, stream_of(queue)>>>(table, rows);
    TW_CUDA_LAUNCHED("number_rows");
    const auto sort = [&](void* data, std::size_t& bytes) {
      TW_CUDA(cub::DeviceRadixSort::SortPairs(data, bytes, reinterpret_cast<const std::uint32_t*>(table.unsorted_keys),
                                              reinterpret_cast<std::uint32_t*>(table.sorted_keys), table.numbers, table.sorted,
                                              static_cast<std::int32_t>(rows), 0, std::bit_width(static_cast<std::uint64_t>(vocabulary)),
                                              stream_of(queue)));
    };
    std::size_t needed = 0;
    sort(nullptr, needed);
    TW_CHECK(needed <= memory.bytes, "embedding_backward: sorting ", rows, " rows takes ", needed, " bytes and sort has ", memory.bytes,
             " for it; embedding_sort_cols() is too small.");
    std::size_t given = memory.bytes;
    sort(memory.data, given);
  }
  find_starts<<<static_cast<unsigned>(ceil_div(vocabulary + 1, kThreads)), kThreads, 0, stream_of(queue)>>>(table, rows);
  TW_CUDA_LAUNCHED("find_starts");
  if (vocabulary == 0 || dy.cols == 0) return;
  with_float(dy.dtype, "embedding_backward", [&]<class T>(T) {
    const auto columns = static_cast<unsigned>(ceil_div(dy.cols, kColumnThreads * kPackWidth<T>));
    with_access(access_of(kPackWidth<T>, {dy, table.gradient}), [&](auto access) {
      sum_table<T, access()><<<dim3(static_cast<unsigned>(vocabulary), columns), kColumnThreads, 0, stream_of(queue)>>>(table, dy);
    });
    TW_CUDA_LAUNCHED("sum_table");
  });
}

}  // namespace

void run(CudaQueue& queue, const EmbeddingArgs& args) {
  check(args);
  with_float(args.y.dtype, "embedding", [&]<class T>(T) {
    const Embed<T> body{.args = args, .cols = args.y.cols, .scale = static_cast<Arithmetic<T>>(args.scale)};
    launch_elementwise(queue, "embedding", body, args.y.rows, access_of(kPackWidth<T>, {args.table, args.positions, args.y}));
  });
}

void run(CudaQueue& queue, const EmbeddingBackwardArgs& args) {
  check(args);
  const std::int64_t rows = args.dy.rows;
  TW_CHECK(args.sort.dtype == DType::i32 && args.sort.rows == 1 && args.sort.cols >= embedding_sort_cols(rows),
           "embedding_backward: sort is ", name_of(args.sort.dtype), " [", args.sort.rows, ", ", args.sort.cols,
           "]; on a GPU it must be i32 [1, ", embedding_sort_cols(rows), "] or wider.");
  const auto ids = static_cast<const std::int32_t*>(args.ids.data);
  const auto sort = static_cast<std::int32_t*>(args.sort.data);
  const std::int64_t keys_end = round_up(3 * rows, 64);
  const SortMemory memory{.data = sort + keys_end, .bytes = static_cast<std::size_t>(args.sort.cols - keys_end) * sizeof(std::int32_t)};
  TableGradient table{.gradient = args.dtable,
                      .accumulate = args.accumulate_table,
                      .scale = args.scale,
                      .ids = ids,
                      .keys = ids,
                      .unsorted_keys = sort,
                      .numbers = sort + rows,
                      .sorted_keys = sort + 2 * rows,
                      .sorted = args.order.row<std::int32_t>(0),
                      .starts = args.order.row<std::int32_t>(0) + rows};
  sum_rows_by_key(queue, table, args.dy, memory);
  if (!args.dpositions) return;
  table.gradient = args.dpositions;
  table.accumulate = args.accumulate_positions;
  table.scale = 1.0;
  table.keys = static_cast<const std::int32_t*>(args.position_ids.data);
  table.sorted = args.order.row<std::int32_t>(1);
  table.starts = args.order.row<std::int32_t>(1) + rows;
  sum_rows_by_key(queue, table, args.dy, memory);
}

}  // namespace tilewave
