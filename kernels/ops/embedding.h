// Token embedding with positions added.
//   forward:  y[r] = scale * table[ids[r]] + positions[position_ids[r]]; zero where ids[r] < 0 (a padding row); without positions the first
//             term alone
//   backward: dtable[v] = scale * sum of dy[r] over rows with ids[r] = v; dpositions[p] likewise, unscaled
// A sum's order follows from those rows alone, as r counts them: no other row, pitch or launch changes its bits.
// positions may be a learned table or a constant one (sinusoidal): dpositions is absent then.
// Ids are below table.rows, position ids of rows that count below positions.rows: an Error on a CPU; a GPU takes the caller's word (data
// readers check them).
#pragma once

#include <algorithm>

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

struct EmbeddingArgs {
  static constexpr std::string_view kOperation = "embedding";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::embedding_share};
  ConstMatrixView table;         // [vocabulary, d]
  ConstMatrixView positions;     // [max_positions, d], or absent
  ConstMatrixView ids;           // [1, rows] i32
  ConstMatrixView position_ids;  // [1, rows] i32
  double scale = 1.0;
  MatrixView y;  // [rows, d]
};

struct EmbeddingBackwardArgs {
  static constexpr std::string_view kOperation = "embedding_backward";
  static constexpr OperationTime kTime{
      .launches = 4, .copy_share = &OperationModel::embedding_backward_share};  // ranked rows take 2 launches, sorted ones 7
  ConstMatrixView dy;                                                           // [rows, d]
  ConstMatrixView ids;                                                          // [1, rows] i32
  ConstMatrixView position_ids;                                                 // [1, rows] i32
  double scale = 1.0;
  MatrixView dtable;  // [vocabulary, d]; f32 beside a 16-bit dy, else its dtype
  bool accumulate_table = false;
  MatrixView dpositions;  // [max_positions, d] of dtable's dtype, or absent
  bool accumulate_positions = false;
  MatrixView order;  // workspace [2, rows + vocabulary + max_positions + 2] i32: rows sorted by id, and where each id starts
  MatrixView sort;   // workspace [1, embedding_sort_cols(rows)] i32 of a GPU's sort; a CPU needs none
};

// The rows' keys before and after, their numbers, and what the radix sort asks for on top.
constexpr std::int64_t embedding_sort_cols(std::int64_t rows) { return 6 * rows + (std::int64_t{1} << 16); }
constexpr std::int64_t embedding_order_cols(std::int64_t rows, std::int64_t vocabulary, std::int64_t max_positions) {
  return rows + vocabulary + max_positions + 2;
}

inline Cost cost(const EmbeddingArgs& args) {
  return {.flops = 2 * args.y.rows * args.y.cols,
          .bytes = (args.positions ? 3 : 2) * args.y.bytes() + args.ids.bytes() + args.position_ids.bytes()};
}
inline Cost cost(const EmbeddingBackwardArgs& args) {
  // All of a new gradient is written; of one that is added to, at most as many rows as dy has are read and written.
  const auto gradient_bytes = [&](MatrixView gradient, bool accumulate) {
    if (accumulate) gradient.rows = std::min(gradient.rows, args.dy.rows);
    return gradient.bytes() * (accumulate ? 2 : 1);
  };
  return {.flops = 2 * args.dy.rows * args.dy.cols,
          .bytes = args.dy.bytes() * (args.dpositions ? 2 : 1) + args.ids.bytes() + args.position_ids.bytes() +
                   gradient_bytes(args.dtable, args.accumulate_table) + gradient_bytes(args.dpositions, args.accumulate_positions)};
}
void check(const EmbeddingArgs& args);
void check(const EmbeddingBackwardArgs& args);
void run(CpuQueue& queue, const EmbeddingArgs& args);
void run(CpuQueue& queue, const EmbeddingBackwardArgs& args);
void run(CudaQueue& queue, const EmbeddingArgs& args);
void run(CudaQueue& queue, const EmbeddingBackwardArgs& args);

}  // namespace tilewave
