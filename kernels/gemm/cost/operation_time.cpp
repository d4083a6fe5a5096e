// The arithmetic of attention, and of a ring of ranks.
#include "kernels/gemm/cost/operation_time.h"

#include <algorithm>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

using M = OperationModel;

bool on_tensor_cores(const AttentionWork& work) {
  return size_of(work.dtype) == 2 && (work.head_size == 32 || work.head_size == 64 || work.head_size == 128);
}

// What keys that pass by cost on the way that attention takes.
struct Passing {
  double fraction;      // of the peak
  double keys;          // what a window costs beside them, as keys
  double draws;         // a cycle of an SM
  std::int64_t window;  // queries that a block or a warpgroup owns
};
Passing passing_of(const AttentionWork& work, const DeviceInfo& device) {
  const M& m = cost_model_of(device).operations;
  const bool wide = work.head_size > 64;
  const double forward_draws = m.attention_forward_draws, backward_draws = 0.5 * m.attention_backward_draws;
  if (!on_tensor_cores(work)) {
    return work.backward ? Passing{m.cuda_core_backward_fraction, m.attention_backward_keys, backward_draws, 128}
                         : Passing{m.cuda_core_forward_fraction, m.attention_forward_keys, forward_draws, 128};
  }
  if (device.capability != 90 || work.head_size < 64) {
    return !work.backward ? Passing{m.attention_forward_fraction, m.attention_forward_keys, forward_draws, 128}
           : wide         ? Passing{m.attention_backward_wide_fraction, m.attention_backward_keys, backward_draws, 128}
                          : Passing{m.attention_backward_fraction, m.attention_backward_keys, backward_draws, 128};
  }
  if (work.backward) {
    return wide ? Passing{m.warpgroup_backward_wide_fraction, m.warpgroup_backward_wide_keys, 0.5 * m.warpgroup_backward_draws, 64}
                : Passing{m.warpgroup_backward_fraction, m.warpgroup_backward_keys, 0.5 * m.warpgroup_backward_draws, 64};
  }
  return wide ? Passing{m.warpgroup_forward_wide_fraction, m.warpgroup_forward_keys, forward_draws, 128}
              : Passing{m.warpgroup_forward_fraction, m.warpgroup_forward_keys, forward_draws, 64};
}

// Keys that pass by a window: those of all segments that its rows lie in.
double keys_of_window(const AttentionWork& work, std::int64_t window) {
  const auto rows = static_cast<double>(window);
  const double keys = std::max(work.keys(), static_cast<double>(std::min(window, work.queries)));
  return work.causal && keys > rows ? 0.5 * (keys + rows) : keys;
}

// Segments that a block has whole: memory's time, and what a block waits for at either end.
bool is_short(const std::optional<AttentionWork>& work) { return work && on_tensor_cores(*work) && work->longest <= kShortSegment; }
double short_attention_seconds(const TraceEntry& entry, const DeviceInfo& device) {
  const M& model = cost_model_of(device).operations;
  const AttentionWork& work = *entry.attention;
  const double share = work.backward ? model.segment_backward_share : model.segment_forward_share;
  const double draws = work.dropout ? static_cast<double>(work.pairs) * static_cast<double>(work.heads) : 0.0;
  return model.segment_start_s + static_cast<double>(entry.cost.bytes) / (share * model.copy_fraction * device.bandwidth_bytes_per_s) +
         draws / (model.segment_draws * device.clock_hz * static_cast<double>(device.sm_count));
}

double attention_seconds(const AttentionWork& work, const DeviceInfo& device) {
  const bool own_type = on_tensor_cores(work) || work.dtype == DType::f64;  // CUDA cores take 16 bits as fp32
  const double peak = peak_flops_per_s(device, own_type ? work.dtype : DType::f32, MathMode::ieee);
  if (peak <= 0.0) return 0.0;
  const Passing passing = passing_of(work, device);
  // Products of a query and a key: scores and sums; backward in two passes, seven in all.
  const double flops_a_key = (work.backward ? 7.0 : 2.0) * 2.0 * static_cast<double>(work.head_size);
  const double keys = keys_of_window(work, passing.window);
  const std::int64_t blocks = std::max(ceil_div(work.queries, passing.window) * work.heads, device.sm_count);
  const auto rows = static_cast<double>(blocks * passing.window);
  const double draws = passing.draws * device.clock_hz * static_cast<double>(device.sm_count);
  return rows * (keys + passing.keys) * flops_a_key / (passing.fraction * peak) + (work.dropout ? rows * keys / draws : 0.0);
}

double collective_seconds(const TraceEntry& entry, const DeviceInfo& device) {
  const M& model = cost_model_of(device).operations;
  const double memory_s =
      static_cast<double>(entry.cost.bytes) / (model.*entry.time.copy_share * model.copy_fraction * device.bandwidth_bytes_per_s);
  if (entry.collective->ranks == 1) return entry.cost.bytes > 0 ? model.launch_s + model.element_latency_s + memory_s : 0.0;
  if (device.link_bytes_per_s <= 0.0) return 0.0;
  const Ring ring = ring_of(*entry.collective);
  const double link_s = ring.link_bytes / (model.link_share * device.link_bytes_per_s);
  return model.launch_s + model.link_start_s + static_cast<double>(ring.hops) * model.link_hop_s + std::max(link_s, memory_s);
}

// Before an operation's bytes flow and after the last did: a sum over a row, or over a channel that many CTAs share, waits for others.
double latency_of(OperationNumber copy_share, const M& model) {
  for (const OperationNumber rows : {&M::layer_norm_share, &M::layer_norm_backward_share, &M::rms_norm_share, &M::rms_norm_backward_share,
                                     &M::softmax_share, &M::softmax_backward_share, &M::cross_entropy_share}) {
    if (copy_share == rows) return model.row_latency_s;
  }
  const bool channels = copy_share == &M::batch_norm_share || copy_share == &M::batch_norm_backward_share;
  return channels ? model.channel_latency_s : model.element_latency_s;
}

}  // namespace

Ring ring_of(const CollectiveWork& work) {
  const std::int64_t others = work.ranks - 1;
  const auto bytes = static_cast<double>(work.bytes);
  const double once = bytes * static_cast<double>(others) / static_cast<double>(work.ranks);
  switch (work.kind) {
    case CollectiveKind::all_reduce:
      return {.hops = 2 * others, .link_bytes = 2.0 * once};
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return {.hops = others, .link_bytes = once};
    case CollectiveKind::broadcast:
      return {.hops = others, .link_bytes = bytes};
  }
  return {};
}

double predicted_seconds(const TraceEntry& entry, const DeviceInfo& device) {
  TW_CHECK(!entry.gemm, "a GEMM's plan says what it takes.");
  if (device.bandwidth_bytes_per_s <= 0.0) return 0.0;
  const M& model = cost_model_of(device).operations;
  if (entry.collective) return collective_seconds(entry, device);
  if (is_short(entry.attention)) return model.launch_s + short_attention_seconds(entry, device);
  const double copy = model.copy_fraction * device.bandwidth_bytes_per_s;
  const double share = entry.time.copy_share != nullptr ? model.*entry.time.copy_share : 1.0;
  const double memory_s = static_cast<double>(entry.cost.bytes) / (share * copy);
  const double attention_s = entry.attention ? attention_seconds(*entry.attention, device) : 0.0;
  const double latency_s = entry.attention ? 0.0 : latency_of(entry.time.copy_share, model);
  return entry.time.launches * model.launch_s + latency_s + std::max(memory_s, attention_s);
}

}  // namespace tilewave
