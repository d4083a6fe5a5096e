// The catalog's kernels in the order of the ladder.
#include "kernels/gemm/catalog.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "kernels/gemm/cpu/amx_tiles.h"
#include "kernels/gemm/cpu/dot_products.h"
#include "kernels/gemm/cpu/packed_pairs.h"
#include "kernels/gemm/cpu/packed_tiles.h"
#include "kernels/gemm/gemv/gemv_axpy.h"
#include "kernels/gemm/gemv/gemv_axpy_mma.h"
#include "kernels/gemm/gemv/gemv_block_rows.h"
#include "kernels/gemm/gemv/gemv_dot.h"
#include "kernels/gemm/gemv/gemv_dot_mma.h"
#include "kernels/gemm/gemv/gemv_thread_rows.h"
#include "kernels/gemm/gemv/gemv_warp_rows.h"
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
#include "kernels/gemm/sm90/one_wave_paired_k.h"
#include "kernels/gemm/sm90/one_wave_sliced_k.h"
#include "kernels/gemm/sm90/one_wave_swap_ab.h"
#include "kernels/gemm/sm90/persistent_data_parallel.h"
#include "kernels/gemm/sm90/persistent_deferred.h"
#include "kernels/gemm/sm90/persistent_ping_pong.h"
#include "kernels/gemm/sm90/persistent_ping_pong_swap_ab.h"
#include "kernels/gemm/sm90/repacked.h"
#include "kernels/gemm/sm90/split_k.h"
#include "kernels/gemm/sm90/split_k_cluster.h"
#include "kernels/gemm/sm90/stream_k.h"
#include "kernels/gemm/sm90/unaligned.h"
#include "kernels/gemm/sm90/unaligned_deferred.h"

namespace tilewave {

std::span<const GemmKernel* const> gemm_catalog() {
  static constexpr const GemmKernel* kernels[] = {&kNaiveKernel,
                                                  &kDotProductsKernel,
                                                  &kPackedTilesKernel,
                                                  &kPackedPairsKernel,
                                                  &kAmxTilesKernel,
                                                  &kCudaNaiveKernel,
                                                  &kCudaCoresKernel,
                                                  &kSharedMemoryTilesKernel,
                                                  &kGemvThreadRowsKernel,
                                                  &kGemvWarpRowsKernel,
                                                  &kGemvBlockRowsKernel,
                                                  &kGemvDotKernel,
                                                  &kGemvDotMmaKernel,
                                                  &kGemvAxpyKernel,
                                                  &kGemvAxpyMmaKernel,
                                                  &kTensorCoreKernel,
                                                  &kTensorCorePipelinedKernel,
                                                  &kTensorCorePersistentKernel,
                                                  &kTensorCoreResiduesKernel,
                                                  &kBulkCopyMmaKernel,
                                                  &kBulkCopyWgmmaKernel,
                                                  &kWarpSpecializedKernel,
                                                  &kOneWaveSwapAbKernel,
                                                  &kPersistentDataParallelKernel,
                                                  &kPersistentDeferredKernel,
                                                  &kPersistentPingPongKernel,
                                                  &kPersistentPingPongSwapAbKernel,
                                                  &kSplitKClusterKernel,
                                                  &kSplitKKernel,
                                                  &kOneWaveSlicedKKernel,
                                                  &kOneWavePairedKKernel,
                                                  &kStreamKKernel,
                                                  &kUnalignedDeferredKernel,
                                                  &kUnalignedKernel,
                                                  &kRepackedKernel,
                                                  &kCublasKernel,
                                                  &kCublasGemvKernel,
                                                  &kCublasLtKernel,
                                                  &kGuideTensorCoresKernel,
                                                  &kGuideCudaCoresKernel};
  return kernels;
}

const GemmKernel* find_gemm_kernel(Backend backend, std::string_view name) {
  for (const GemmKernel* kernel : gemm_catalog()) {
    if (kernel->backend == backend && name_of(*kernel) == present_name(name)) return kernel;
  }
  return nullptr;
}

const GemmKernel* find_gemm_kernel(std::string_view name) {
  const GemmKernel* kernel = find_gemm_kernel(Backend::cpu, name);
  return kernel != nullptr ? kernel : find_gemm_kernel(Backend::cuda, name);
}

const GemmKernel* find_gemm_kernel(Backend backend, const GemmComposition& composition) {
  for (const GemmKernel* kernel : gemm_catalog()) {
    if (kernel->backend == backend && kernel->composition == composition) return kernel;
  }
  return nullptr;
}

const GemmKernel& kernel_of(Backend backend, const GemmPlan& plan) {
  const GemmKernel* const kernel = find_gemm_kernel(backend, plan.composition);
  TW_CHECK(kernel != nullptr, "no ", backend == Backend::cpu ? "CPU" : "CUDA", " kernel is called \"", name_of(plan.composition),
           "\"; choose() makes a plan.");
  return *kernel;
}

std::vector<std::string> gemm_kernel_names() {
  std::vector<std::string> names;
  for (const GemmKernel* kernel : gemm_catalog()) {
    if (std::ranges::count(names, name_of(*kernel)) == 0) names.push_back(name_of(*kernel));
  }
  return names;
}

}  // namespace tilewave
