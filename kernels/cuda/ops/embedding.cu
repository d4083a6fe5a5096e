// Embedding. Backward sorts the rows by id, few of them by their ranks, more by CUB's radix sort, which is stable. Threads that own
// columns then sum each id's rows without atomics: up to kShortRun rows in order; of more rows every kUnits-th one, and those sums in
// order. So a sum's order follows from the number of an id's rows alone.
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/core/packs.h"
#include "kernels/ops/embedding.h"

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

  template <PackAccess kAccess>
  __device__ __forceinline__ Operands load(const Place& at) const {
    const std::int32_t id = args.ids.row<std::int32_t>(0)[at.row];
    if (id < 0) return {};
    Operands operands{.token = load_pack<kAccess, kWidth>(args.table.row<T>(id), at.column, cols), .position = {}};
    if (args.positions) {
      const std::int32_t position = args.position_ids.row<std::int32_t>(0)[at.row];
      operands.position = load_pack<kAccess, kWidth>(args.positions.row<T>(position), at.column, cols);
    }
    return operands;
  }
  template <PackAccess kAccess>
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

  __device__ __forceinline__ std::int32_t key_of(std::int64_t r) const {
    return ids[r] < 0 ? static_cast<std::int32_t>(gradient.rows) : keys[r];
  }
};

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) number_rows(const TableGradient table, const std::int64_t rows) {
  const std::int64_t r = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  if (r >= rows) return;
  table.unsorted_keys[r] = table.key_of(r);
  table.numbers[r] = static_cast<std::int32_t>(r);
}

// Few rows are sorted by their ranks: a row's place is the number of rows before it, by key, then by number.
constexpr int kRankedRows = 8192, kRankedNumberBits = 13;
constexpr std::int64_t kRankedVocabulary = std::int64_t{1} << (32 - kRankedNumberBits);
static_assert(kRankedRows == 1 << kRankedNumberBits, "a key and a row's number share 32 bits");
constexpr int kRankThreads = 512, kRowsABlock = 16, kKeyShares = kRankThreads / kRowsABlock;

__global__ void __launch_bounds__(kRankThreads) rank_rows(const TableGradient table, const std::int32_t rows) {
  __shared__ uint4 keys[kRankedRows / 4];
  __shared__ std::int32_t counts[kKeyShares][kRowsABlock + 1];
  const int padded = (rows + 3) / 4 * 4;
  for (int r = threadIdx.x; r < padded; r += kRankThreads) {
    reinterpret_cast<std::uint32_t*>(keys)[r] =
        r < rows ? static_cast<std::uint32_t>(table.key_of(r)) << kRankedNumberBits | static_cast<std::uint32_t>(r) : UINT32_MAX;
  }
  __syncthreads();
  const int row = threadIdx.x % kRowsABlock, share = threadIdx.x / kRowsABlock, r = blockIdx.x * kRowsABlock + row;
  const std::uint32_t own = reinterpret_cast<const std::uint32_t*>(keys)[min(r, rows - 1)];
  std::int32_t before = 0;
#pragma unroll 8
  for (int i = share; i < padded / 4; i += kKeyShares) {
    const uint4 four = keys[i];
    before += (four.x < own) + (four.y < own) + (four.z < own) + (four.w < own);
  }
  counts[share][row] = before;
  __syncthreads();
  if (share > 0 || r >= rows) return;
  before = 0;
#pragma unroll
  for (int i = 0; i < kKeyShares; ++i) before += counts[i][row];
  table.sorted_keys[before] = static_cast<std::int32_t>(own >> kRankedNumberBits);
  table.sorted[before] = r;
}

// Runs of equal keys among the sorted rows, each of which has a gradient's row to itself. A run of up to kShortRun rows is a warp's,
// a longer one a block's; a block looks for starts among as many rows as it has threads, a warp among kPlaces.
constexpr int kWarp = 32, kWarps = kThreads / kWarp;
constexpr int kShortRun = kWarp, kPlaces = 4, kShortBatch = 4;
constexpr int kUnits = 16, kUnitThreads = kThreads / kUnits, kLongBatch = 4;  // a long run's rows go round the units of its block
constexpr int kAbsentIds = 64;                                                // that a block looks up

static_assert(kPlaces + kShortRun <= 2 * kWarp, "a warp sees where each short run ends that starts among its places");

template <class T>
inline constexpr int kShortColumns = kWarp* kPackWidth<T>;
template <class T>
inline constexpr int kLongColumns = kUnitThreads* kPackWidth<T>;

// The sorted rows by their places.
struct SortedRows {
  const std::int32_t *keys = nullptr, *numbers = nullptr;
  std::int64_t rows = 0, vocabulary = 0;

  __device__ __forceinline__ std::int32_t key(std::int64_t place) const { return place >= 0 && place < rows ? keys[place] : -1; }
  __device__ __forceinline__ std::int32_t number(std::int64_t place) const { return place < rows ? numbers[place] : -1; }
  __device__ __forceinline__ bool counts(std::int32_t key) const { return key >= 0 && key < vocabulary; }
};

template <class T, int kWidth>
__device__ __forceinline__ void add_pack(Arithmetic<T> (&sum)[kWidth], const Pack<T, kWidth>& pack) {
#pragma unroll
  for (int j = 0; j < kWidth; ++j) sum[j] += load(pack.get(j));
}

// `index` counts warps, all of a row's columns before the next row.
template <class T, PackAccess kAccess>
__device__ __forceinline__ void sum_short_runs(const TableGradient& table, const ConstMatrixView& dy, const SortedRows& sorted,
                                               std::uint32_t index) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  const auto slices = static_cast<std::uint32_t>(ceil_div(dy.cols, kShortColumns<T>));
  const std::int64_t first = static_cast<std::int64_t>(index / slices) * kPlaces, cols = dy.cols;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const std::int64_t column = static_cast<std::int64_t>(index % slices) * kShortColumns<T> + lane * kWidth;
  const bool owns = column < cols;

  // Load.
  const std::int32_t key = sorted.key(first + lane), before = sorted.key(first + lane - 1);
  const std::int32_t later = sorted.key(first + kWarp + lane), before_later = sorted.key(first + kWarp + lane - 1);
  const std::int32_t number = sorted.number(first + lane), later_number = sorted.number(first + kWarp + lane);
  const unsigned starts = __ballot_sync(0xffffffffu, key != before || key < 0);
  const unsigned later_starts = __ballot_sync(0xffffffffu, later != before_later || later < 0);
  const std::uint64_t all_starts = starts | static_cast<std::uint64_t>(later_starts) << kWarp;

  for (unsigned left = starts & ((1u << kPlaces) - 1); left != 0; left &= left - 1) {
    const int place = __ffs(static_cast<int>(left)) - 1;
    const std::int32_t id = __shfl_sync(0xffffffffu, key, place);
    const std::uint64_t after = all_starts >> place >> 1;
    const int rows = after == 0 ? kShortRun + 1 : __ffsll(static_cast<long long>(after)), end = place + rows;
    if (!sorted.counts(id) || rows > kShortRun) continue;
    A* const gradient = table.gradient.row<A>(id);
    Pack<A, kWidth> earlier{};
    if (table.accumulate && owns) earlier = load_pack<kAccess, kWidth>(static_cast<const A*>(gradient), column, cols);

    // Reduce.
    A sum[kWidth] = {};
    for (int begin = place; begin < end; begin += kShortBatch) {
      Pack<T> packs[kShortBatch];
#pragma unroll
      for (int i = 0; i < kShortBatch; ++i) {
        if (begin + i >= end) break;
        const std::int32_t r = __shfl_sync(0xffffffffu, begin + i < kWarp ? number : later_number, (begin + i) % kWarp);
        if (owns) packs[i] = load_pack<kAccess, kWidth>(dy.row<T>(r), column, cols);
      }
#pragma unroll
      for (int i = 0; i < kShortBatch; ++i) {
        if (begin + i >= end) break;
        add_pack(sum, packs[i]);
      }
    }

    // Store.
    if (!owns) continue;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum[j] = fma(static_cast<A>(table.scale), sum[j], earlier.get(j));
    store_pack<kAccess>(gradient, column, cols, pack_of<A>(sum));
  }
}

// Every kUnits-th row of a run by a unit, then the units in order. `index` counts blocks, all of a row's columns before the next row.
template <class T, PackAccess kAccess>
__device__ __forceinline__ void sum_long_runs(const TableGradient& table, const ConstMatrixView& dy, const SortedRows& sorted,
                                              std::uint32_t index) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ unsigned long_runs[kWarps];
  __shared__ A unit_sums[kUnits][kLongColumns<T>];
  const auto thread = static_cast<int>(threadIdx.x), unit = thread / kUnitThreads, member = thread % kUnitThreads;
  const auto slices = static_cast<std::uint32_t>(ceil_div(dy.cols, kLongColumns<T>));
  const std::int64_t cols = dy.cols, first = static_cast<std::int64_t>(index / slices) * kThreads;
  const std::int64_t first_column = static_cast<std::int64_t>(index % slices) * kLongColumns<T>, column = first_column + member * kWidth;

  // Find.
  const std::int32_t own = sorted.key(first + thread), before = sorted.key(first + thread - 1),
                     ahead = sorted.key(first + thread + kShortRun);
  const unsigned found = __ballot_sync(0xffffffffu, own != before && ahead == own && sorted.counts(own));
  if (thread % kWarp == 0) long_runs[thread / kWarp] = found;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) {
    for (unsigned left = long_runs[warp]; left != 0; left &= left - 1) {
      const std::int64_t start = first + warp * kWarp + __ffs(static_cast<int>(left)) - 1;
      const std::int32_t key = sorted.key(start);

      // Reduce.
      struct Places {
        std::int32_t keys[kLongBatch], numbers[kLongBatch];
      };
      const auto places_from = [&](std::int64_t begin) {
        Places places;
#pragma unroll
        for (int i = 0; i < kLongBatch; ++i) {
          places.keys[i] = sorted.key(begin + i * kUnits);
          places.numbers[i] = sorted.number(begin + i * kUnits);
        }
        return places;
      };
      A sum[kWidth] = {};
      if (column < cols) {
        std::int64_t begin = start + unit;
        for (Places next = places_from(begin); next.keys[0] == key;) {
          Pack<T> packs[kLongBatch];
#pragma unroll
          for (int i = 0; i < kLongBatch; ++i) {
            packs[i] = next.keys[i] == key ? load_pack<kAccess, kWidth>(dy.row<T>(next.numbers[i]), column, cols) : Pack<T>{};
          }
          begin += kLongBatch * kUnits;
          next = places_from(begin);
#pragma unroll
          for (int i = 0; i < kLongBatch; ++i) add_pack(sum, packs[i]);
        }
      }
#pragma unroll
      for (int j = 0; j < kWidth; ++j) unit_sums[unit][member * kWidth + j] = sum[j];
      __syncthreads();

      // Store.
      if (thread < kLongColumns<T> && first_column + thread < cols) {
        A total = 0;
#pragma unroll
        for (int i = 0; i < kUnits; ++i) total += unit_sums[i][thread];
        A& gradient = table.gradient.row<A>(key)[first_column + thread];
        gradient = fma(static_cast<A>(table.scale), total, table.accumulate ? gradient : A(0));
      }
      __syncthreads();
    }
  }
}

// Zeroes where one of kAbsentIds ids has no row.
template <class T, PackAccess kAccess>
__device__ __forceinline__ void clear_absent(const TableGradient& table, const ConstMatrixView& dy, const SortedRows& sorted,
                                             std::int64_t index) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  __shared__ bool present[kAbsentIds];
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = index * kAbsentIds;
  if (thread < kAbsentIds) {
    std::int64_t below = 0, at_least = sorted.rows;
    while (below < at_least) {
      const std::int64_t middle = (below + at_least) / 2;
      if (sorted.keys[middle] < first + thread) {
        below = middle + 1;
      } else {
        at_least = middle;
      }
    }
    present[thread] = sorted.key(below) == first + thread;
  }
  __syncthreads();
  for (int i = thread / kWarp; i < kAbsentIds && first + i < table.gradient.rows; i += kWarps) {
    if (present[i]) continue;
    for (std::int64_t column = thread % kWarp * kWidth; column < dy.cols; column += kWarp * kWidth) {
      store_pack<kAccess>(table.gradient.row<A>(first + i), column, dy.cols, Pack<A, kWidth>{});
    }
  }
}

// Blocks of long runs come first, so that the longest take part from the beginning.
struct SumBlocks {
  std::uint32_t long_runs = 0, short_runs = 0, absent = 0;
};

template <class T, PackAccess kAccess>
__global__ void __launch_bounds__(kThreads, 4) sum_table(const TableGradient table, const ConstMatrixView dy, const SumBlocks blocks) {
  const SortedRows sorted{.keys = table.sorted_keys, .numbers = table.sorted, .rows = dy.rows, .vocabulary = table.gradient.rows};
  const std::uint32_t block = blockIdx.x, after_long = blocks.long_runs, after_short = after_long + blocks.short_runs;
  if (block < after_long) {
    sum_long_runs<T, kAccess>(table, dy, sorted, block);
  } else if (block < after_short) {
    sum_short_runs<T, kAccess>(table, dy, sorted, (block - after_long) * kWarps + threadIdx.x / kWarp);
  } else {
    clear_absent<T, kAccess>(table, dy, sorted, block - after_short);
  }
}

// As many warps as 32 bits count have more elements to add than a device has memory for.
template <class T>
SumBlocks sum_blocks_of(const TableGradient& table, const ConstMatrixView& dy) {
  const std::int64_t short_warps = ceil_div(dy.rows, kPlaces) * ceil_div(dy.cols, kShortColumns<T>);
  return {.long_runs = static_cast<std::uint32_t>(ceil_div(dy.rows, kThreads) * ceil_div(dy.cols, kLongColumns<T>)),
          .short_runs = static_cast<std::uint32_t>(ceil_div(short_warps, kWarps)),
          .absent = static_cast<std::uint32_t>(table.accumulate ? 0 : ceil_div(table.gradient.rows, kAbsentIds))};
}

struct SortMemory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

void sort_rows(CudaQueue& queue, const TableGradient& table, std::int64_t rows, const SortMemory& memory) {
  if (rows <= kRankedRows && table.gradient.rows < kRankedVocabulary) {
    rank_rows<<<static_cast<unsigned>(ceil_div(rows, kRowsABlock)), kRankThreads, 0, stream_of(queue)>>>(table,
                                                                                                         static_cast<std::int32_t>(rows));
    TW_CUDA_LAUNCHED("rank_rows");
    return;
  }
  number_rows<<<static_cast<unsigned>(ceil_div(rows, kThreads)), kThreads, 0, stream_of(queue)>>>(table, rows);
  TW_CUDA_LAUNCHED("number_rows");
  const int key_bits = std::bit_width(static_cast<std::uint64_t>(table.gradient.rows));
  const auto sort = [&](void* data, std::size_t& bytes) {
    TW_CUDA(cub::DeviceRadixSort::SortPairs(data, bytes, reinterpret_cast<const std::uint32_t*>(table.unsorted_keys),
                                            reinterpret_cast<std::uint32_t*>(table.sorted_keys), table.numbers, table.sorted,
                                            static_cast<std::int32_t>(rows), 0, key_bits, stream_of(queue)));
  };
  std::size_t needed = 0;
  sort(nullptr, needed);
  TW_CHECK(needed <= memory.bytes, "embedding_backward: sorting ", rows, " rows takes ", needed, " bytes and sort has ", memory.bytes,
           " for it; embedding_sort_cols() is too small.");
  std::size_t given = memory.bytes;
  sort(memory.data, given);
}

void sum_rows_by_key(CudaQueue& queue, const TableGradient& table, const ConstMatrixView& dy, const SortMemory& memory) {
  const std::int64_t vocabulary = table.gradient.rows;
  if (vocabulary == 0 || dy.cols == 0) return;
  if (dy.rows > 0) sort_rows(queue, table, dy.rows, memory);
  with_float(dy.dtype, "embedding_backward", [&]<class T>(T) {
    const SumBlocks blocks = sum_blocks_of<T>(table, dy);
    const std::uint32_t count = blocks.long_runs + blocks.short_runs + blocks.absent;
    if (count == 0) return;
    with_access(access_of(kPackWidth<T>, {dy, table.gradient}),
                [&](auto access) { sum_table<T, access()><<<count, kThreads, 0, stream_of(queue)>>>(table, dy, blocks); });
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
                      .sorted = args.order.row<std::int32_t>(0)};
  sum_rows_by_key(queue, table, args.dy, memory);
  if (!args.dpositions) return;
  table.gradient = args.dpositions;
  table.accumulate = args.accumulate_positions;
  table.scale = 1.0;
  table.keys = static_cast<const std::int32_t*>(args.position_ids.data);
  table.sorted = args.order.row<std::int32_t>(1);
  sum_rows_by_key(queue, table, args.dy, memory);
}

}  // namespace tilewave
