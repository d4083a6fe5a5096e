// Embedding on a CPU. Backward sorts rows by id (a stable counting sort in the caller's workspace), so that each table row is
// summed by one thread, in the order of its rows, without atomics.
#include "kernels/ops/embedding.h"

#include <array>
#include <numeric>

#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {
namespace {

template <class T>
void embed_rows(const EmbeddingArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int32_t* ids = args.ids.row<std::int32_t>(0);
  const std::int32_t* position_ids = args.position_ids.row<std::int32_t>(0);
  const T scale = static_cast<T>(args.scale);
  for (std::int64_t r = begin; r < end; ++r) {
    T* y = args.y.row<T>(r);
    if (ids[r] < 0) {
      std::fill_n(y, args.y.cols, T(0));
      continue;
    }
    const T* token = args.table.row<T>(ids[r]);
    if (!args.positions) {
      for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = scale * token[c];
      continue;
    }
    const T* position = args.positions.row<T>(position_ids[r]);
    for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = scale * token[c] + position[c];
  }
}

void check_ids(const char* operation, const ConstMatrixView& ids, const ConstMatrixView& position_ids, std::int64_t vocabulary,
               std::int64_t positions) {
  for (std::int64_t r = 0; r < ids.cols; ++r) {
    const std::int32_t id = ids.row<std::int32_t>(0)[r], position = position_ids.row<std::int32_t>(0)[r];
    if (id < 0) continue;
    TW_CHECK(id < vocabulary, operation, ": row ", r, " has id ", id, ", and the table has ", vocabulary, " rows.");
    if (positions == 0) continue;  // there are none, or they get no gradient
    TW_CHECK(position >= 0 && position < positions, operation, ": row ", r, " has position ", position, ", and the table of positions has ",
             positions, " rows.");
  }
}

// One table's gradient: row v gets scale times the sum of dy's rows whose key is v.
struct TableGradient {
  MatrixView gradient;
  bool accumulate = false;
  double scale = 1.0;
  std::int32_t* sorted = nullptr;  // dy's rows, ordered by key
  std::int32_t* starts = nullptr;  // [gradient.rows + 1]: where each key's rows start in `sorted`
};

// A row's key, or -1 where the row counts nothing.
template <class Key>
void sort_rows(const TableGradient& table, std::int64_t rows, const Key& key) {
  // Count. starts[v + 1] counts v; its sums are where v's successor starts.
  std::fill_n(table.starts, table.gradient.rows + 1, 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    if (key(r) >= 0) ++table.starts[key(r) + 1];
  }
  std::partial_sum(table.starts, table.starts + table.gradient.rows + 1, table.starts);
  // Place. Each placed row moves its key's start to the right, up to the successor's; moving the array up by one undoes it.
  for (std::int64_t r = 0; r < rows; ++r) {
    if (key(r) >= 0) table.sorted[table.starts[key(r)]++] = static_cast<std::int32_t>(r);
  }
  std::copy_backward(table.starts, table.starts + table.gradient.rows, table.starts + table.gradient.rows + 1);
  table.starts[0] = 0;
}

template <class T>
void sum_table_row(const TableGradient& table, const ConstMatrixView& dy, std::int64_t v) {
  constexpr std::int64_t kColumns = 128;
  std::array<T, kColumns> sum;
  for (std::int64_t c0 = 0; c0 < dy.cols; c0 += kColumns) {
    const std::int64_t columns = std::min(kColumns, dy.cols - c0);
    sum.fill(T(0));
    for (std::int32_t i = table.starts[v]; i < table.starts[v + 1]; ++i) {
      const T* row = dy.row<T>(table.sorted[i]) + c0;
      for (std::int64_t c = 0; c < columns; ++c) sum[c] += row[c];
    }
    T* gradient = table.gradient.row<T>(v) + c0;
    for (std::int64_t c = 0; c < columns; ++c) {
      gradient[c] = static_cast<T>(table.scale) * sum[c] + (table.accumulate ? gradient[c] : T(0));
    }
  }
}

template <class T>
void sum_table(CpuQueue& queue, const TableGradient& table, const ConstMatrixView& dy) {
  for_row_ranges(queue, table.gradient.rows, dy.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) sum_table_row<T>(table, dy, v);
  });
}

}  // namespace

void run(CpuQueue& queue, const EmbeddingArgs& args) {
  check(args);
  check_ids("embedding", args.ids, args.position_ids, args.table.rows, args.positions.rows);
  const MatrixView& y = args.y;
  with_cpu_float(y.dtype, "embedding", [&]<class T>(T) {
    for_row_ranges(queue, y.rows, y.cols, [&](std::int64_t begin, std::int64_t end) { embed_rows<T>(args, begin, end); });
  });
}

void run(CpuQueue& queue, const EmbeddingBackwardArgs& args) {
  check(args);
  check_ids("embedding_backward", args.ids, args.position_ids, args.dtable.rows, args.dpositions.rows);
  const ConstMatrixView& dy = args.dy;
  const std::int32_t* ids = args.ids.row<std::int32_t>(0);
  const std::int32_t* position_ids = args.position_ids.row<std::int32_t>(0);
  std::int32_t* token_order = args.order.row<std::int32_t>(0);
  std::int32_t* position_order = args.order.row<std::int32_t>(1);
  with_cpu_float(dy.dtype, "embedding_backward", [&]<class T>(T) {
    const TableGradient tokens{.gradient = args.dtable,
                               .accumulate = args.accumulate_table,
                               .scale = args.scale,
                               .sorted = token_order,
                               .starts = token_order + dy.rows};
    sort_rows(tokens, dy.rows, [&](std::int64_t r) { return ids[r]; });
    sum_table<T>(queue, tokens, dy);
    if (!args.dpositions) return;
    const TableGradient places{
        .gradient = args.dpositions, .accumulate = args.accumulate_positions, .sorted = position_order, .starts = position_order + dy.rows};
    sort_rows(places, dy.rows, [&](std::int64_t r) { return ids[r] < 0 ? -1 : position_ids[r]; });
    sum_table<T>(queue, places, dy);
  });
}

}  // namespace tilewave
