// Blocks that stay, whose 16-bit results leave under the products of the next tile: as they are or through an activation
// (persistent_deferred_store.h), or through ReLU's derivative (persistent_deferred_derivative.h).
#pragma once

#include "kernels/gemm/sm90/persistent_deferred_derivative.h"
#include "kernels/gemm/sm90/persistent_deferred_store.h"

namespace tilewave {

// A derivative's are those of kPersistentDeferredDerivativeTiles.
std::int64_t persistent_deferred_shared_bytes(Tile tile);

extern const GemmKernel kPersistentDeferredKernel;
void launch_persistent_deferred(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
