// Rows that start on any element, as aligned matrices. Where a matrix's base or pitch is no multiple of 16 bytes, rows `residues` apart
// still start equally far past one: those of one residue are the rows of a matrix of so many times the pitch, which TMA takes, and which
// begins a few elements early. Whoever reads it meets those elements; whoever writes it leaves them alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/view.h"
#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

inline constexpr int kMaxResidues = 8;  // of rows that start on 2 bytes

// The problem as it lies in memory: D's rows come from the row operand, its columns from the column operand.
struct SidesInMemory {
  std::int64_t rows = 0, cols = 0;                                   // of D
  std::int64_t row_pitch = 0, row_alignment = 0, col_alignment = 0;  // the operands'
  bool rows_along_k = false, cols_along_k = false;
};
constexpr SidesInMemory sides_in_memory(const GemmProblem& p) {
  const bool a_along_k = p.a_major == Major::k, b_along_k = p.b_major == Major::k;
  if (p.d_major == Major::m) return {p.n, p.m, p.b_pitch, p.b_alignment, p.a_alignment, b_along_k, a_along_k};
  return {p.m, p.n, p.a_pitch, p.a_alignment, p.b_alignment, a_along_k, b_along_k};
}
// The same with the row operand's rows on 16 bytes.
constexpr GemmProblem with_aligned_rows(GemmProblem problem) {
  (problem.d_major == Major::m ? problem.b_alignment : problem.a_alignment) = 16;
  return problem;
}

// Elements that a row begins early at most, by the bytes that every row starts on.
constexpr std::int64_t max_shift(std::int64_t alignment, DType dtype) {
  return (16 - std::min<std::int64_t>(alignment, 16)) / size_of(dtype);
}

// How many residues rows of `cols` elements have, a power of two; those past the number of rows have none. Rows that begin early do not
// reach into the next one of their residue.
constexpr std::int64_t residues_of(std::int64_t cols, std::int64_t pitch, std::int64_t alignment, DType dtype) {
  if (alignment >= 16) return 1;
  std::int64_t residues = 16 / std::min<std::int64_t>(alignment_of(0, pitch * size_of(dtype)), 16);
  while (residues * pitch < cols + max_shift(alignment, dtype)) residues *= 2;
  return residues;
}

// The rows `residue`, `residue + residues`, ... of a matrix, which has the first of them.
struct RowsOfResidue {
  ConstMatrixView view;    // [those rows, shift + cols], from 16 bytes' multiple on
  std::int64_t shift = 0;  // elements that each of them begins early
};
inline RowsOfResidue rows_of_residue(const ConstMatrixView& matrix, std::int64_t residues, std::int64_t residue) {
  const std::int64_t size = size_of(matrix.dtype);
  const auto* const start = static_cast<const std::byte*>(matrix.data) + residue * matrix.ld * size;
  const auto early = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(start) % 16);
  return {
      .view = {start - early, ceil_div(matrix.rows - residue, residues), matrix.cols + early / size, matrix.ld * residues, matrix.dtype},
      .shift = early / size};
}

// Tiles of `tile_rows` rows of one residue each, the residues in turns: where tile `index` begins.
struct TileOfResidue {
  int residue = 0, row = 0;
};
constexpr TileOfResidue tile_of_residue(int index, int residues, int tile_rows) {
  return {.residue = index % residues, .row = index / residues * tile_rows};
}

// A row's own columns in memory that starts early, and which of its words of 8 elements hold none of another row.
struct OwnColumns {
  int begin = 0, end = 0;

  constexpr bool has(int col) const { return begin <= col && col < end; }
  constexpr int first_whole() const { return begin > 0 ? 8 : 0; }
  constexpr int end_whole() const { return end - end % 8; }
  constexpr bool whole(int word_col) const { return first_whole() <= word_col && word_col < end_whole(); }
};

}  // namespace tilewave
