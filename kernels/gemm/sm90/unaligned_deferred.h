// Blocks that stay, whose tiles take rows of one residue: 16-bit rows that start on any element, of the operand that D's rows come from
// or of D itself. What whole waves leave is taken in parts of K.
#pragma once

#include "kernels/gemm/facts/residues.h"
#include "kernels/gemm/facts/split.h"
#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr int kUnalignedDeferredConsumers = 2;
inline constexpr Tile kUnalignedDeferredTiles[] = {{256, 128}, {192, 128}, {128, 128}};
constexpr int unaligned_deferred_stages(Tile tile) { return stages_beside(kBarrierBytes, tile); }
constexpr std::int64_t unaligned_deferred_shared_bytes(Tile tile) { return shared_bytes_beside(kBarrierBytes, tile); }

// What of the column operand's coordinates moves as far as the rows begin early: K, where they are the row operand's; D's columns, where
// they are D's own.
enum class ResidueShift : std::uint8_t { k, columns };

// The tiles of D as it lies in memory. Those down it take the rows of one residue each; those across cover what begins early too.
struct ResidueTiles {
  ResidueShift shift = ResidueShift::k;
  std::int64_t residues = 1;  // by which rows are picked
  std::int64_t used = 1;      // that have rows
  std::int64_t down = 0, across = 0;
};
ResidueTiles residue_tiles(const GemmProblem& problem, Tile tile);

extern const GemmKernel kUnalignedDeferredKernel;
void launch_unaligned_deferred(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
