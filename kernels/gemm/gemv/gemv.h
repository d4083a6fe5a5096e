// A GEMM with one to sixteen outputs or tokens is a matrix times a few vectors: what is read once is read from memory, and memory decides.
// The matrix is the operand of D's other dimension; a tile is so many of its rows, and all vectors.
#pragma once

#include <string>

#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr std::int64_t kMaxVectors = 16;
inline constexpr int kGemvWarps = 8;  // of a CTA

// Rows of the matrix by kMaxVectors, and the other way round where the vectors are A.
inline constexpr Tile kGemvTiles[] = {{16, 16}, {32, 16}, {64, 16}, {128, 16}, {16, 32}, {16, 64}, {16, 128}};

enum class MatrixLies : std::uint8_t { along_k, across_k };

// The problem as a matrix [rows, K] and vectors [vectors, K].
struct GemvSides {
  bool matrix_is_a = true;
  std::int64_t rows = 0, vectors = 0;
  bool matrix_along_k = false, vectors_along_k = false;
  std::int64_t matrix_alignment = 0, vectors_alignment = 0;
};
constexpr GemvSides gemv_sides(const GemmProblem& p, Tile tile) {
  const bool a_along_k = p.a_major == Major::k, b_along_k = p.b_major == Major::k;
  const bool matrix_is_a = tile.m != tile.n ? tile.m > tile.n : p.m >= p.n;
  if (matrix_is_a) return {true, p.m, p.n, a_along_k, b_along_k, p.a_alignment, p.b_alignment};
  return {false, p.n, p.m, b_along_k, a_along_k, p.b_alignment, p.a_alignment};
}
constexpr std::int64_t rows_of_tile(Tile tile) { return tile.m > tile.n ? tile.m : tile.n; }

// How a CTA's warps share a tile that each takes `rows` of at a time: side by side, and along K.
struct GemvWarps {
  int beside = 1, along_k = 1;
  int turns = 1;  // that a warp takes at rows
};
constexpr GemvWarps gemv_warps(std::int64_t tile_rows, std::int64_t rows) {
  const auto groups = static_cast<int>(ceil_div(tile_rows, rows));
  const int beside = groups < kGemvWarps ? groups : kGemvWarps;
  return {.beside = beside, .along_k = kGemvWarps / beside, .turns = groups / beside};
}

// Why it is no matrix times a few vectors whose matrix lies so; empty where it is.
std::string refuse_gemv(const GemmProblem& problem, const DeviceInfo& device, MatrixLies lies);
bool suits_matrix_along_k(const GemmProblem& problem, Tile tile);
bool suits_matrix_across_k(const GemmProblem& problem, Tile tile);

// What a kernel's warps do.
struct GemvModel {
  std::int64_t rows = 8;     // of the matrix that a warp has at a time
  std::int64_t depth = 128;  // of K that it takes at a time
  int ctas_per_sm = 2;
  double multiply_adds_per_cycle = 0.0;  // of an SM
  MatrixLies matrix = MatrixLies::along_k;
  int split = 0;  // of K in so many parts, as GemmKernel::own_plan has it
};
GemmPlan plan_gemv(const GemmProblem& problem, Tile tile, const DeviceInfo& device, const GemvModel& model);

// For one vector: so much of K a CTA asks for of its rows at a time, and of a round's latency what others do not hide.
struct GemvRung {
  std::int64_t depth = 1;
  int ctas_per_sm = 8;
  double round_share = 1.0;
};
GemmPlan plan_gemv_rung(const GemmProblem& problem, Tile tile, const DeviceInfo& device, const GemvRung& rung);
// What it refuses: sums of the matrix, and a matrix across K.
std::string refuse_gemv_rung(const GemmProblem& problem, const DeviceInfo& device);

// Parts of K meet in groups of so many, and then the groups do: the last CTA of a few reads little.
inline constexpr int kGemvGroup = 8;
constexpr int gemv_groups(int split) { return split > kGemvGroup ? (split + kGemvGroup - 1) / kGemvGroup : 0; }
constexpr std::int64_t gemv_flags(std::int64_t tiles, int split) { return split > 1 ? tiles * (1 + gemv_groups(split)) : 0; }

// The parts of K begin on what is a multiple of this, 16 bytes of every type.
constexpr std::int64_t gemv_part_depth(std::int64_t k, std::int64_t split) { return round_up(ceil_div(k, split), std::int64_t{16}); }

}  // namespace tilewave
