// Passes around a row that wants aligned rows: what starts anywhere is copied to rows on multiples of 128 bytes and back.
#pragma once

#include "kernels/gemm/sm90/persistent_data_parallel.h"
#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr std::span<const Tile> kRepackedTiles = kPersistentDataParallelTiles;

// What is copied: a matrix whose rows do not start on multiples of 16 bytes, and of D and what lies like it all or none.
struct Repacked {
  bool a = false, b = false, d = false;
};
constexpr Repacked repacked(const GemmProblem& p) { return {p.a_alignment < 16, p.b_alignment < 16, p.d_alignment < 16}; }

// Elements from one of the copy's rows to the next, and the bytes that it takes of the workspace.
constexpr std::int64_t repacked_pitch(std::int64_t cols) { return round_up(cols, 64); }
constexpr std::int64_t repacked_bytes(std::int64_t rows, std::int64_t cols, std::int64_t element_bytes) {
  return round_up(rows * repacked_pitch(cols) * element_bytes, 128);
}

// Who multiplies the copies of `problem` in such tiles: persistent_deferred_store where it can and D's rows are whole eights of elements,
// else persistent_data_parallel.
const GemmKernel& kernel_of_repacked(const GemmProblem& problem, Tile tile, const DeviceInfo& device);

extern const GemmKernel kRepackedKernel;
void launch_repacked(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
