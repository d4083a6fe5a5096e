// What each operation launches, and the arithmetic of attention.
#include "kernels/operation_time.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/device_profiles.h"
#include "kernels/error.h"
#include "kernels/gemm/tiling.h"
#include "kernels/gemm/time_model.h"

namespace tilewave {
namespace {

using M = OperationModel;

struct OperationFacts {
  std::string_view operation;
  int launches = 1;
  double M::*share = &M::other_share;
};
constexpr OperationFacts kFacts[] = {{"activation", 1, &M::activation_share},
                                     {"activation_backward", 1, &M::activation_backward_share},
                                     {"adamw", 1, &M::adamw_share},
                                     {"add", 1, &M::add_share},
                                     {"attention", 3},  // spans cleared, spans written, attention
                                     {"attention_backward", 2},
                                     {"convert"},
                                     {"cross_entropy", 2, &M::cross_entropy_share},
                                     {"dropout", 1, &M::dropout_share},
                                     {"embedding", 1, &M::embedding_share},
                                     {"embedding_backward", 4, &M::embedding_backward_share},  // ranked rows take 2, sorted ones 7
                                     {"fill"},
                                     {"gradient_norm", 3, &M::gradient_norm_share},
                                     {"layer_norm", 1, &M::layer_norm_share},
                                     {"layer_norm_backward", 2, &M::layer_norm_backward_share},
                                     {"softmax", 1, &M::softmax_share},
                                     {"softmax_backward", 1, &M::softmax_backward_share}};

const OperationFacts& facts_of(std::string_view operation) {
  const auto* const found =
      std::find_if(std::begin(kFacts), std::end(kFacts), [&](const OperationFacts& facts) { return facts.operation == operation; });
  TW_CHECK(found != std::end(kFacts), "there is no time model of ", operation, "; it has no line in kernels/operation_time.cpp.");
  return *found;
}

// Queries that a block owns, and the keys that pass by one: those of all segments that its rows lie in.
constexpr std::int64_t kWindow = 128, kWarpgroupWindow = 64;
double keys_of_window(const AttentionWork& work, std::int64_t window) {
  const std::int64_t keys = std::max(work.keys, std::min(window, work.query_rows));
  return work.causal && keys > window ? 0.5 * static_cast<double>(keys + window) : static_cast<double>(keys);
}

double attention_seconds(const AttentionWork& work, bool backward, const DeviceInfo& device) {
  const M& model = time_model_of(device).operations;
  const bool wide = work.head_size > 64;
  const bool tensor_cores = size_of(work.dtype) == 2 && (work.head_size == 32 || work.head_size == 64 || work.head_size == 128);
  const bool warpgroups = !backward && device.capability == 90 && tensor_cores && work.head_size >= 64;
  const double fraction = !tensor_cores ? (backward ? model.cuda_core_backward_fraction : model.cuda_core_forward_fraction)
                          : warpgroups  ? (wide ? model.warpgroup_forward_wide_fraction : model.warpgroup_forward_fraction)
                          : !backward   ? model.attention_forward_fraction
                          : wide        ? model.attention_backward_wide_fraction
                                        : model.attention_backward_fraction;
  const double peak = peak_flops_per_s(device, tensor_cores || work.dtype == DType::f64 ? work.dtype : DType::f32, MathMode::ieee);
  if (peak <= 0.0) return 0.0;
  // Products of a query and a key: scores and sums; backward in two passes, seven in all.
  const double flops_a_key = (backward ? 7.0 : 2.0) * 2.0 * static_cast<double>(work.head_size);
  const double beside = backward ? model.attention_backward_keys : warpgroups ? model.warpgroup_forward_keys : model.attention_forward_keys;
  const std::int64_t window = warpgroups && !wide ? kWarpgroupWindow : kWindow;
  const double keys = keys_of_window(work, window);
  const std::int64_t blocks = std::max(ceil_div(work.query_rows, window) * work.heads, device.sm_count);
  const auto rows = static_cast<double>(blocks * window);
  const double draws = (backward ? 0.5 * model.attention_backward_draws : model.attention_forward_draws) * device.clock_hz *
                       static_cast<double>(device.sm_count);
  return rows * (keys + beside) * flops_a_key / (fraction * peak) + (work.dropout ? rows * keys / draws : 0.0);
}

}  // namespace

std::span<const OperationConstant> operation_constants() {
  static constexpr OperationConstant constants[] = {{"operation_launch_s", &M::launch_s},
                                                    {"copy_fraction", &M::copy_fraction},
                                                    {"activation_share", &M::activation_share},
                                                    {"activation_backward_share", &M::activation_backward_share},
                                                    {"adamw_share", &M::adamw_share},
                                                    {"gradient_norm_share", &M::gradient_norm_share},
                                                    {"add_share", &M::add_share},
                                                    {"dropout_share", &M::dropout_share},
                                                    {"cross_entropy_share", &M::cross_entropy_share},
                                                    {"embedding_share", &M::embedding_share},
                                                    {"embedding_backward_share", &M::embedding_backward_share},
                                                    {"layer_norm_share", &M::layer_norm_share},
                                                    {"layer_norm_backward_share", &M::layer_norm_backward_share},
                                                    {"softmax_share", &M::softmax_share},
                                                    {"softmax_backward_share", &M::softmax_backward_share},
                                                    {"other_share", &M::other_share},
                                                    {"attention_forward_fraction", &M::attention_forward_fraction},
                                                    {"attention_forward_keys", &M::attention_forward_keys},
                                                    {"attention_forward_draws", &M::attention_forward_draws},
                                                    {"warpgroup_forward_fraction", &M::warpgroup_forward_fraction},
                                                    {"warpgroup_forward_wide_fraction", &M::warpgroup_forward_wide_fraction},
                                                    {"warpgroup_forward_keys", &M::warpgroup_forward_keys},
                                                    {"attention_backward_fraction", &M::attention_backward_fraction},
                                                    {"attention_backward_wide_fraction", &M::attention_backward_wide_fraction},
                                                    {"attention_backward_keys", &M::attention_backward_keys},
                                                    {"attention_backward_draws", &M::attention_backward_draws},
                                                    {"cuda_core_forward_fraction", &M::cuda_core_forward_fraction},
                                                    {"cuda_core_backward_fraction", &M::cuda_core_backward_fraction}};
  return constants;
}

double predicted_seconds(const TraceEntry& entry, const DeviceInfo& device) {
  TW_CHECK(!entry.gemm, "a GEMM's plan says what it takes.");
  if (device.bandwidth_bytes_per_s <= 0.0) return 0.0;
  const M& model = time_model_of(device).operations;
  const OperationFacts& facts = facts_of(entry.operation);
  const double copy = model.copy_fraction * device.bandwidth_bytes_per_s;
  const double memory_s = static_cast<double>(entry.cost.bytes) / (entry.attention ? copy : model.*facts.share * copy);
  const double attention_s =
      entry.attention ? attention_seconds(*entry.attention, entry.operation == AttentionBackwardArgs::kOperation, device) : 0.0;
  return facts.launches * model.launch_s + std::max(memory_s, attention_s);
}

}  // namespace tilewave
