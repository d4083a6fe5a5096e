// Every constant of the cost model: name, unit, meaning. The values beside the members are an H200's, fitted by `tilewave bench calibrate`
// (docs/results/gemm-choice-h200.md; memory-bound-h200.md and attention-h200.md for what is no GEMM; a launch's is what measured steps
// leave). Fractions are of the device's own peaks and cycles of its highest clock, so that one GPU's numbers scale to another.
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

std::span<const CostConstant> cost_constants() {
  using M = CostModel;
  static constexpr CostConstant constants[] = {
      {"launch_s", "s", "a launch, from one to the next", &M::launch_s},
      {"sustained_fraction", "of the peak rate", "what power leaves of it from launch to launch", &M::sustained_fraction},
      {"l2_bytes_per_cycle", "bytes per cycle", "what an SM reads of the second-level cache while all of them read",
       &M::l2_bytes_per_cycle},
      {"multicast_fraction", "of the traffic", "of two loads, what one load for two CTAs still makes", &M::multicast_fraction},
      {"memory_fraction", "of the bandwidth", "loads and stores of a GEMM at once", &M::memory_fraction},
      {"wgmma_fraction", "of the tensor cores' rate", "kernels on wgmma; in general loops of what kernels/gemm/sm90/warpgroup_time.h says",
       &M::wgmma_fraction},
      {"unspecialized_fraction", "of wgmma_fraction", "where warpgroups load and multiply in turn", &M::unspecialized_fraction},
      {"registers_fraction", "of shared memory's rate", "where warps read the row operand word by word", &M::registers_fraction},
      {"row_sums_fraction", "more MMAs", "where the bias gradient rides on them", &M::row_sums_fraction},
      {"fill_cycles", "cycles", "of a launch until its first MMA, on wgmma", &M::fill_cycles},
      {"tile_cycles", "cycles", "from a tile's last MMAs to the next one's first, beside its epilogue, where CTAs stay", &M::tile_cycles},
      {"packing_cycles", "cycles", "likewise where they pack its accumulators and store them under the next one's MMAs",
       &M::packing_cycles},
      {"turn_cycles", "cycles", "likewise where another consumer's MMAs of a swapped tile come next", &M::turn_cycles},
      {"last_turn_cycles", "cycles", "and behind the last of these", &M::last_turn_cycles},
      {"block_cycles", "cycles", "likewise where each tile has a CTA of its own", &M::block_cycles},
      {"store_bytes_per_cycle", "bytes per cycle", "an epilogue's stores by TMA", &M::store_bytes_per_cycle},
      {"direct_store_bytes_per_cycle", "bytes per cycle", "an epilogue's stores by warps", &M::direct_store_bytes_per_cycle},
      {"finish_cycles", "cycles per element", "of an epilogue in one warpgroup, where D is not stored as it was accumulated",
       &M::finish_cycles},
      {"activation_cycles", "cycles per element", "for a GELU", &M::activation_cycles},
      {"derivative_cycles", "cycles per element", "for a GELU's derivative", &M::derivative_cycles},
      {"narrow_store_cycles", "cycles per element", "where D's rows do not start on 16 bytes", &M::narrow_store_cycles},
      {"late_side_cycles", "cycles per element", "that is loaded or stored beside D's and delays the next tile's MMAs that it runs under",
       &M::late_side_cycles},
      {"late_input_cycles", "cycles per element", "likewise, of one that leaves or comes with a result in nobody's way",
       &M::late_input_cycles},
      {"late_activation_cycles", "cycles per element", "likewise, for a GELU or its derivative", &M::late_activation_cycles},
      {"exchange_bytes_per_cycle", "bytes per cycle", "of accumulators that a cluster's CTAs leave and fetch",
       &M::exchange_bytes_per_cycle},
      {"sharing_cycles", "cycles", "of a launch that shares out tiles", &M::sharing_cycles},
      {"link_cycles", "cycles", "of a launch all of whose CTAs leave their last accumulators to others", &M::link_cycles},
      {"meeting_cycles", "cycles", "of a launch whose CTAs wait for all others of their tile: the last come", &M::meeting_cycles},
      {"mma_fraction", "of mma.sync's rate", "kernels on mma.sync", &M::mma_fraction},
      {"mma_bulk_copy_fraction", "of mma.sync's rate", "likewise, where TMA brings the stages", &M::mma_bulk_copy_fraction},
      {"mma_pipelined_fraction", "of mma.sync's rate", "likewise, in a CTA for each tile", &M::mma_pipelined_fraction},
      {"mma_narrow_8_fraction", "of mma.sync's rate", "likewise, with loads of 8 bytes", &M::mma_narrow_8_fraction},
      {"mma_narrow_4_fraction", "of mma.sync's rate", "likewise, of 4 bytes", &M::mma_narrow_4_fraction},
      {"mma_narrow_2_fraction", "of mma.sync's rate", "likewise, of 2 bytes", &M::mma_narrow_2_fraction},
      {"mma_one_stage_fraction", "of mma.sync's rate", "likewise, with one stage", &M::mma_one_stage_fraction},
      {"mma_tf32_fraction", "of these again", "in TF32", &M::mma_tf32_fraction},
      {"mma_fill_cycles", "cycles", "of a launch until its first MMA, on mma.sync", &M::mma_fill_cycles},
      {"mma_store_cycles", "cycles per element", "of D", &M::mma_store_cycles},
      {"mma_bulk_copy_store_cycles", "cycles per element", "likewise, of an accumulator that TMA stores", &M::mma_bulk_copy_store_cycles},
      {"mma_pass_cycles", "cycles per element", "in each further pass over D's shape", &M::mma_pass_cycles},
      {"cuda_core_fraction", "of CUDA cores' rate", "kernels on CUDA cores", &M::cuda_core_fraction},
      {"one_output_fraction", "of CUDA cores' rate", "likewise, where a thread has one output", &M::one_output_fraction},
      {"gemv_memory_fraction", "of the bandwidth", "loads of a matrix that is multiplied by a few vectors", &M::gemv_memory_fraction},
      {"gemv_round_cycles", "cycles", "from what a warp asks for of such a matrix at once until it asks again", &M::gemv_round_cycles},
      {"gemv_cta_cycles", "cycles", "of a CTA beside its warps' rounds, and of one that adds the parts of others", &M::gemv_cta_cycles},
      {"neighbours_fraction", "of the traffic", "of columns that neighbouring CTAs load alike at the same time", &M::neighbours_fraction},
      {"patches_fraction", "of the traffic", "where tiles with operands in common lie in one GPC", &M::patches_fraction},
      {"narrow_side_cycles", "cycles per element", "beside D's, where D's rows do not start on 16 bytes", &M::narrow_side_cycles},
      {"repack_fraction", "of the bandwidth", "of a pass from rows that start anywhere to aligned ones or back", &M::repack_fraction},
  };
  return constants;
}

std::span<const OperationConstant> operation_constants() {
  using M = OperationModel;
  static constexpr OperationConstant constants[] = {
      {"operation_launch_s", "s", "from one launch of a captured step to the next, which waits for its end", &M::launch_s},
      {"copy_fraction", "of the bandwidth", "what a device copy moves, reads and writes both counted", &M::copy_fraction},
      {"activation_share", "of a copy's rate", "activation", &M::activation_share},
      {"activation_backward_share", "of a copy's rate", "its backward pass", &M::activation_backward_share},
      {"adamw_share", "of a copy's rate", "AdamW", &M::adamw_share},
      {"gradient_norm_share", "of a copy's rate", "gradient norm", &M::gradient_norm_share},
      {"add_share", "of a copy's rate", "addition", &M::add_share},
      {"dropout_share", "of a copy's rate", "dropout", &M::dropout_share},
      {"cross_entropy_share", "of a copy's rate", "cross entropy", &M::cross_entropy_share},
      {"embedding_share", "of a copy's rate", "embedding; above 1: what is read again lies in the second-level cache", &M::embedding_share},
      {"embedding_backward_share", "of a copy's rate", "its backward pass", &M::embedding_backward_share},
      {"layer_norm_share", "of a copy's rate", "LayerNorm", &M::layer_norm_share},
      {"layer_norm_backward_share", "of a copy's rate", "its backward pass", &M::layer_norm_backward_share},
      {"softmax_share", "of a copy's rate", "softmax", &M::softmax_share},
      {"softmax_backward_share", "of a copy's rate", "its backward pass", &M::softmax_backward_share},
      {"other_share", "of a copy's rate", "fill and convert, which were not measured", &M::other_share},
      {"attention_forward_fraction", "of the peak rate", "attention on tensor cores, while keys pass by", &M::attention_forward_fraction},
      {"attention_forward_keys", "keys", "what a CTA costs beside that", &M::attention_forward_keys},
      {"attention_forward_draws", "draws per cycle of an SM", "for dropout", &M::attention_forward_draws},
      {"warpgroup_forward_fraction", "of the peak rate", "the same on wgmma", &M::warpgroup_forward_fraction},
      {"warpgroup_forward_wide_fraction", "of the peak rate", "the same of heads above 64 columns", &M::warpgroup_forward_wide_fraction},
      {"warpgroup_forward_keys", "keys", "what a CTA costs beside that", &M::warpgroup_forward_keys},
      {"attention_backward_fraction", "of the peak rate", "backward on tensor cores", &M::attention_backward_fraction},
      {"attention_backward_wide_fraction", "of the peak rate", "the same of heads above 64 columns: a CTA keeps fewer rows",
       &M::attention_backward_wide_fraction},
      {"attention_backward_keys", "keys", "what a CTA costs beside that", &M::attention_backward_keys},
      {"attention_backward_draws", "draws per cycle of an SM", "for dropout, in each of its two passes", &M::attention_backward_draws},
      {"warpgroup_backward_fraction", "of the peak rate", "backward on wgmma, heads of 64: a warpgroup's rows in a CTA's place",
       &M::warpgroup_backward_fraction},
      {"warpgroup_backward_keys", "keys", "what a warpgroup costs beside that", &M::warpgroup_backward_keys},
      {"warpgroup_backward_wide_fraction", "of the peak rate", "the same of heads of 128", &M::warpgroup_backward_wide_fraction},
      {"warpgroup_backward_wide_keys", "keys", "likewise", &M::warpgroup_backward_wide_keys},
      {"warpgroup_backward_draws", "draws per cycle of an SM", "for dropout", &M::warpgroup_backward_draws},
      {"segment_start_s", "s", "short segments: from a launch to the first segment's end", &M::segment_start_s},
      {"segment_forward_share", "of a copy's rate", "short segments, forward", &M::segment_forward_share},
      {"segment_backward_share", "of a copy's rate", "short segments, backward", &M::segment_backward_share},
      {"segment_draws", "draws per cycle of an SM", "short segments, for dropout", &M::segment_draws},
      {"cuda_core_forward_fraction", "of CUDA cores' rate", "attention on CUDA cores, forward", &M::cuda_core_forward_fraction},
      {"cuda_core_backward_fraction", "of CUDA cores' rate", "and backward", &M::cuda_core_backward_fraction},
  };
  return constants;
}

}  // namespace tilewave
