// The catalog's rows in the order of the ladder.
#include "kernels/gemm/catalog.h"

#include <algorithm>

#include "kernels/gemm/rows/amx_tiles.h"
#include "kernels/gemm/rows/bulk_copy_mma.h"
#include "kernels/gemm/rows/bulk_copy_wgmma.h"
#include "kernels/gemm/rows/cluster_split_k.h"
#include "kernels/gemm/rows/cuda_cores.h"
#include "kernels/gemm/rows/dot_products.h"
#include "kernels/gemm/rows/guide.h"
#include "kernels/gemm/rows/libraries.h"
#include "kernels/gemm/rows/naive.h"
#include "kernels/gemm/rows/packed_pairs.h"
#include "kernels/gemm/rows/packed_tiles.h"
#include "kernels/gemm/rows/paired_k.h"
#include "kernels/gemm/rows/persistent_cooperative.h"
#include "kernels/gemm/rows/persistent_late_derivative.h"
#include "kernels/gemm/rows/persistent_late_store.h"
#include "kernels/gemm/rows/persistent_ping_pong.h"
#include "kernels/gemm/rows/persistent_residues.h"
#include "kernels/gemm/rows/realigned_fragments.h"
#include "kernels/gemm/rows/repacked.h"
#include "kernels/gemm/rows/shared_memory_tiles.h"
#include "kernels/gemm/rows/sliced_k.h"
#include "kernels/gemm/rows/stream_k.h"
#include "kernels/gemm/rows/tensor_core.h"
#include "kernels/gemm/rows/tensor_core_persistent.h"
#include "kernels/gemm/rows/tensor_core_pipelined.h"
#include "kernels/gemm/rows/tensor_core_residues.h"
#include "kernels/gemm/rows/transposed_ping_pong.h"
#include "kernels/gemm/rows/transposed_tiles.h"
#include "kernels/gemm/rows/warp_specialized.h"
#include "kernels/gemm/rows/workspace_split_k.h"

namespace tilewave {

std::span<const GemmRow* const> gemm_catalog() {
  static constexpr const GemmRow* rows[] = {&kNaiveRow,
                                            &kDotProductsRow,
                                            &kPackedTilesRow,
                                            &kPackedPairsRow,
                                            &kAmxTilesRow,
                                            &kCudaNaiveRow,
                                            &kCudaCoresRow,
                                            &kSharedMemoryTilesRow,
                                            &kTensorCoreRow,
                                            &kTensorCorePipelinedRow,
                                            &kTensorCorePersistentRow,
                                            &kTensorCoreResiduesRow,
                                            &kBulkCopyMmaRow,
                                            &kBulkCopyWgmmaRow,
                                            &kWarpSpecializedRow,
                                            &kTransposedTilesRow,
                                            &kPersistentCooperativeRow,
                                            &kPersistentLateStoreRow,
                                            &kPersistentLateDerivativeRow,
                                            &kPersistentPingPongRow,
                                            &kTransposedPingPongRow,
                                            &kClusterSplitKRow,
                                            &kWorkspaceSplitKRow,
                                            &kSlicedKRow,
                                            &kPairedKRow,
                                            &kStreamKRow,
                                            &kPersistentResiduesRow,
                                            &kRealignedFragmentsRow,
                                            &kRepackedRow,
                                            &kCublasRow,
                                            &kCublasLtRow,
                                            &kGuideTensorCoresRow,
                                            &kGuideCudaCoresRow};
  return rows;
}

const GemmRow* find_gemm_row(Backend backend, std::string_view name) {
  for (const GemmRow* row : gemm_catalog()) {
    if (row->backend == backend && row->name == name) return row;
  }
  return nullptr;
}

const GemmRow* find_gemm_row(std::string_view name) {
  const GemmRow* row = find_gemm_row(Backend::cpu, name);
  return row != nullptr ? row : find_gemm_row(Backend::cuda, name);
}

std::vector<std::string_view> gemm_row_names() {
  std::vector<std::string_view> names;
  for (const GemmRow* row : gemm_catalog()) {
    if (std::find(names.begin(), names.end(), row->name) == names.end()) names.push_back(row->name);
  }
  return names;
}

}  // namespace tilewave
