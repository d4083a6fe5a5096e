// Blocks that stay, whose row operand goes through registers: rows of K that start on any element come into line on the way, as in the
// wgrad of a vocabulary that no one padded.
#pragma once

#include "kernels/gemm/facts/residues.h"
#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kUnalignedTiles[] = {{256, 128}, {192, 128}, {128, 128}};

inline constexpr int kRealignedConsumers = 2, kRealignedStagingBuffers = 1, kRealignedWarps = 4 * kRealignedConsumers;
inline constexpr std::int64_t kRealignedStagingBytes = kStagingBytesOfWarp * kRealignedStagingBuffers * kRealignedWarps;
// Beside the boxes of a stage, the 8 columns after the rows' last box that their shift brings in.
inline constexpr std::int64_t kRealignedEdgeBytes = kKTile * 16;
constexpr std::int64_t realigned_stage_bytes(Tile tile) { return stage_bytes(tile) + kRealignedEdgeBytes; }
// As many stages as fit beside the strips in a block's 227 KB.
constexpr int realigned_stages(Tile tile) {
  return static_cast<int>((kBlockBytes - kRealignedStagingBytes - kOnesBytes - kBarrierBytes) / realigned_stage_bytes(tile));
}
constexpr std::int64_t unaligned_shared_bytes(Tile tile) {
  return realigned_stages(tile) * realigned_stage_bytes(tile) + kRealignedStagingBytes + kOnesBytes + kBarrierBytes;
}

// The byte of a stage where k of column `col` of the row operand lies: in boxes of 64 k of 64 columns, swizzled as TMA
// swizzles them, and from `boxes` columns on in lines of 8 at `edge`. And how far from there the k lies that is 8 more.
constexpr unsigned in_stage(unsigned k, unsigned col, unsigned boxes, unsigned edge) {
  if (col >= boxes) return edge + k * 16 + (col - boxes) * 2;
  return col / 64 * 8192 + k * 128 + ((col / 8 ^ k) % 8) * 16 + col % 8 * 2;
}
constexpr unsigned next_8_k(unsigned byte, unsigned edge) { return byte >= edge ? 8 * 16 : 8 * 128; }

// Residues of K, and those that have any.
struct ResiduesOfK {
  std::int64_t residues = 1, used = 1;
  std::int64_t blocks = 0;  // of 64 k, in all
};
ResiduesOfK residues_of_k(const GemmProblem& problem);

extern const GemmKernel kUnalignedKernel;
void launch_unaligned(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
