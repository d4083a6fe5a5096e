// The catalog's rows in the order of the ladder.
#include "kernels/gemm/catalog.h"

#include <algorithm>

#include "kernels/gemm/cpu/amx_tiles.h"
#include "kernels/gemm/cpu/dot_products.h"
#include "kernels/gemm/cpu/packed_pairs.h"
#include "kernels/gemm/cpu/packed_tiles.h"
#include "kernels/gemm/ladder/bulk_copy_wgmma.h"
#include "kernels/gemm/ladder/tensor_core.h"
#include "kernels/gemm/ladder/warp_specialized.h"
#include "kernels/gemm/reference/guide.h"
#include "kernels/gemm/reference/libraries.h"
#include "kernels/gemm/reference/naive.h"
#include "kernels/gemm/simt/cuda_cores.h"
#include "kernels/gemm/simt/shared_memory_tiles.h"
#include "kernels/gemm/sm80/bulk_copy_mma.h"
#include "kernels/gemm/sm80/tensor_core_persistent.h"
#include "kernels/gemm/sm80/tensor_core_pipelined.h"
#include "kernels/gemm/sm80/tensor_core_residues.h"
#include "kernels/gemm/sm90/cluster_split_k.h"
#include "kernels/gemm/sm90/paired_k.h"
#include "kernels/gemm/sm90/persistent_cooperative.h"
#include "kernels/gemm/sm90/persistent_late_derivative.h"
#include "kernels/gemm/sm90/persistent_late_store.h"
#include "kernels/gemm/sm90/persistent_ping_pong.h"
#include "kernels/gemm/sm90/persistent_residues.h"
#include "kernels/gemm/sm90/realigned_fragments.h"
#include "kernels/gemm/sm90/repacked.h"
#include "kernels/gemm/sm90/sliced_k.h"
#include "kernels/gemm/sm90/stream_k.h"
#include "kernels/gemm/sm90/transposed_ping_pong.h"
#include "kernels/gemm/sm90/transposed_tiles.h"
#include "kernels/gemm/sm90/workspace_split_k.h"

namespace tilewave {

std::span<const GemmKernel* const> gemm_catalog() {
  static constexpr const GemmKernel* rows[] = {&kNaiveKernel,
                                               &kDotProductsKernel,
                                               &kPackedTilesKernel,
                                               &kPackedPairsKernel,
                                               &kAmxTilesKernel,
                                               &kCudaNaiveKernel,
                                               &kCudaCoresKernel,
                                               &kSharedMemoryTilesKernel,
                                               &kTensorCoreKernel,
                                               &kTensorCorePipelinedKernel,
                                               &kTensorCorePersistentKernel,
                                               &kTensorCoreResiduesKernel,
                                               &kBulkCopyMmaKernel,
                                               &kBulkCopyWgmmaKernel,
                                               &kWarpSpecializedKernel,
                                               &kTransposedTilesKernel,
                                               &kPersistentCooperativeKernel,
                                               &kPersistentLateStoreKernel,
                                               &kPersistentLateDerivativeKernel,
                                               &kPersistentPingPongKernel,
                                               &kTransposedPingPongKernel,
                                               &kClusterSplitKKernel,
                                               &kWorkspaceSplitKKernel,
                                               &kSlicedKKernel,
                                               &kPairedKKernel,
                                               &kStreamKKernel,
                                               &kPersistentResiduesKernel,
                                               &kRealignedFragmentsKernel,
                                               &kRepackedKernel,
                                               &kCublasKernel,
                                               &kCublasLtKernel,
                                               &kGuideTensorCoresKernel,
                                               &kGuideCudaCoresKernel};
  return rows;
}

const GemmKernel* find_gemm_kernel(Backend backend, std::string_view name) {
  for (const GemmKernel* row : gemm_catalog()) {
    if (row->backend == backend && row->name == name) return row;
  }
  return nullptr;
}

const GemmKernel* find_gemm_kernel(std::string_view name) {
  const GemmKernel* row = find_gemm_kernel(Backend::cpu, name);
  return row != nullptr ? row : find_gemm_kernel(Backend::cuda, name);
}

std::vector<std::string_view> gemm_kernel_names() {
  std::vector<std::string_view> names;
  for (const GemmKernel* row : gemm_catalog()) {
    if (std::find(names.begin(), names.end(), row->name) == names.end()) names.push_back(row->name);
  }
  return names;
}

}  // namespace tilewave
