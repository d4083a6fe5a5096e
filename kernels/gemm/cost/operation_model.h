// What the predicted times of operations that are no GEMM are made of. What each number is stands in constants.cpp;
// CostModel::source says whose they are.
#pragma once

#include <span>
#include <string_view>

#include "kernels/core/trace.h"

namespace tilewave {

struct OperationModel {
  double launch_s = 1.0e-6;
  double element_latency_s = 0.7e-6, row_latency_s = 2.2e-6, channel_latency_s = 8.5e-6;
  double copy_fraction = 0.884;
  double activation_share = 0.95, activation_backward_share = 0.98;
  double adamw_share = 0.91, gradient_norm_share = 0.92;
  double add_share = 1.0, dropout_share = 0.5;
  double cross_entropy_share = 0.8;
  double embedding_share = 1.35, embedding_backward_share = 0.58;
  double layer_norm_share = 0.93, layer_norm_backward_share = 0.92;
  double softmax_share = 0.94, softmax_backward_share = 1.0;
  double squash_share = 0.9, squash_backward_share = 1.01;
  double silu_share = 0.9, silu_backward_share = 0.9;
  double rms_norm_share = 0.9, rms_norm_backward_share = 0.9;
  double rope_share = 0.9, repeat_heads_share = 0.9;
  double batch_norm_share = 0.48, batch_norm_backward_share = 0.6;
  double pool_share = 0.2, pool_backward_share = 0.13;
  double other_share = 0.9;
  double link_share = 0.62, link_start_s = 6.0e-6, link_hop_s = 2.0e-6;
  double attention_forward_fraction = 0.31, attention_forward_keys = 205.0, attention_forward_draws = 3.35;
  double warpgroup_forward_fraction = 0.49, warpgroup_forward_wide_fraction = 0.62, warpgroup_forward_keys = 250.0;
  double attention_backward_fraction = 0.355, attention_backward_wide_fraction = 0.33, attention_backward_keys = 215.0;
  double attention_backward_draws = 2.47;
  double warpgroup_backward_fraction = 0.775, warpgroup_backward_keys = 390.0;
  double warpgroup_backward_wide_fraction = 0.67, warpgroup_backward_wide_keys = 90.0;
  double warpgroup_backward_draws = 3.4;
  double segment_start_s = 4.1e-6, segment_forward_share = 0.79, segment_backward_share = 0.86;
  double segment_draws = 3.1;
  double cuda_core_forward_fraction = 0.41, cuda_core_backward_fraction = 0.34;
};

struct OperationConstant {
  std::string_view name, unit, meaning;
  OperationNumber value = nullptr;
};
std::span<const OperationConstant> operation_constants();

}  // namespace tilewave
