// Predicted times of operations that are no GEMMs, against those measured on an H200 (docs/results); what scales with a GPU, and what
// is no prediction.
#include "kernels/gemm/cost/operation_time.h"

#include <gtest/gtest.h>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/add.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/collective.h"
#include "kernels/ops/convert.h"
#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/fill.h"
#include "kernels/ops/gradient_norm.h"
#include "kernels/ops/layer_norm.h"
#include "kernels/ops/softmax.h"

namespace tilewave {
namespace {

const DeviceInfo& device(std::string_view key) { return device_profile(key).device; }

template <class Args>
TraceEntry moving(double megabytes) {
  return {.operation = Args::kOperation,
          .layer = {},
          .cost = {.flops = 0, .bytes = static_cast<std::int64_t>(1e6 * megabytes)},
          .time = Args::kTime};
}

TEST(OperationTime, IsWhatMemoryBoundOperationsTake) {
  struct Measured {
    TraceEntry entry;
    double us;
  };
  // docs/results/memory-bound-h200.md
  for (const auto& [entry, us] : {Measured{moving<LayerNormArgs>(269.0), 69.9},
                                  {moving<LayerNormBackwardArgs>(407.5), 109.0},
                                  {moving<SoftmaxArgs>(268.4), 67.6},
                                  {moving<SoftmaxBackwardArgs>(402.7), 95.2},
                                  {moving<ActivationArgs>(268.4), 66.9},
                                  {moving<ActivationBackwardArgs>(402.7), 97.3},
                                  {moving<DropoutArgs>(268.4), 126.5},
                                  {moving<AddArgs>(402.7), 95.0},
                                  {moving<CrossEntropyArgs>(690.4), 203.1},
                                  {moving<EmbeddingArgs>(403.2), 70.4},
                                  {moving<EmbeddingBackwardArgs>(272.8), 119.4},
                                  {moving<AdamWArgs>(6291.5), 1626.0},
                                  {moving<GradientNormArgs>(838.9), 214.6}}) {
    EXPECT_NEAR(1e6 * predicted_seconds(entry, device("h200")) / us, 1.0, 0.07) << entry.operation;
  }
}

TraceEntry attention(bool backward, std::int64_t sequences, std::int64_t heads, std::int64_t length, std::int64_t head_size, bool causal,
                     bool dropout = false) {
  const std::int64_t rows = sequences * length;
  return {.operation = backward ? AttentionBackwardArgs::kOperation : AttentionArgs::kOperation,
          .layer = {},
          .cost = {.flops = 1, .bytes = (backward ? 8 : 4) * rows * heads * head_size * 2},
          .time = backward ? AttentionBackwardArgs::kTime : AttentionArgs::kTime,
          .gemm = {},
          .plan = {},
          .attention = AttentionWork{.backward = backward,
                                     .queries = rows,
                                     .pairs = rows * length,
                                     .longest = length,
                                     .heads = heads,
                                     .head_size = head_size,
                                     .dtype = DType::bf16,
                                     .causal = causal,
                                     .dropout = dropout}};
}

TEST(OperationTime, IsWhatAttentionTakes) {
  struct Measured {
    std::int64_t sequences, heads, length, head_size;
    bool causal, dropout;
    double forward_us, backward_us;
  };
  // docs/results/attention-h200.md
  for (const Measured& m : {Measured{80, 16, 64, 64, false, false, 17.5, 27.6},
                            {80, 16, 64, 64, true, false, 17.9, 27.6},
                            {80, 16, 64, 64, false, true, 24.5, 33.6},
                            {40, 16, 64, 128, false, false, 17.2, 31.9},
                            {160, 8, 32, 64, false, false, 11.0, 15.5},
                            {350, 8, 15, 32, false, false, 8.4, 10.8},
                            {350, 8, 15, 32, false, true, 9.9, 12.4},
                            {128, 4, 12, 32, true, false, 5.4, 6.1},
                            {64, 12, 1024, 64, true, false, 315.6, 793.1},
                            {16, 16, 4096, 64, true, false, 1305.8, 3301.8},
                            {16, 16, 1024, 128, true, false, 192.5, 459.7},
                            {4, 16, 4096, 128, true, false, 520.4, 1504.2},
                            {4, 16, 4096, 128, false, false, 911.2, 3033.1},
                            {64, 12, 1024, 64, true, true, 793.2, 1826.2}}) {
    for (const bool backward : {false, true}) {
      const TraceEntry entry = attention(backward, m.sequences, m.heads, m.length, m.head_size, m.causal, m.dropout);
      EXPECT_NEAR(1e6 * predicted_seconds(entry, device("h200")) / (backward ? m.backward_us : m.forward_us), 1.0, 0.13)
          << entry.operation << " " << m.length << " " << m.head_size << (m.causal ? " causal" : "") << (m.dropout ? " dropout" : "");
    }
  }
}

// What no segment is longer than decides which kernel runs, and nothing else.
TEST(OperationTime, OfAttentionIsThatOfItsPairs) {
  for (const bool backward : {false, true}) {
    const TraceEntry known = attention(backward, 64, 12, 128, 64, true);
    TraceEntry bounded = known;
    bounded.attention->longest = 1024;
    EXPECT_EQ(predicted_seconds(bounded, device("h200")), predicted_seconds(known, device("h200")));
    TraceEntry halved = known;
    halved.attention->pairs /= 2;
    halved.attention->queries /= 2;
    EXPECT_LT(predicted_seconds(halved, device("h200")), predicted_seconds(known, device("h200"))) << "padding rows take no time";
    TraceEntry brief = known;
    brief.attention->longest = 64;
    EXPECT_NE(predicted_seconds(brief, device("h200")), predicted_seconds(known, device("h200")));
  }
}

// Heads that Tensor Cores do not take are as slow in bf16 as in fp32: CUDA cores sum either in fp32.
TEST(OperationTime, HeadsOfOtherWidthsAreOnCudaCores) {
  for (const bool backward : {false, true}) {
    const TraceEntry narrow = attention(backward, 64, 12, 1024, 64, true), wide = attention(backward, 64, 8, 1024, 96, true);
    TraceEntry full = wide;
    full.attention->dtype = DType::f32;
    EXPECT_DOUBLE_EQ(predicted_seconds(wide, device("h200")), predicted_seconds(full, device("h200")));
    EXPECT_GT(predicted_seconds(wide, device("h200")), 5.0 * predicted_seconds(narrow, device("h200"))) << "of as many products";
  }
}

TEST(OperationTime, ScalesWithBandwidthAndPeak) {
  DeviceInfo half = device("h200");
  half.name = "half of one";
  half.bandwidth_bytes_per_s *= 0.5;
  const double launch_s = OperationModel{}.launch_s, begun_s = launch_s + OperationModel{}.element_latency_s;
  const TraceEntry add = moving<AddArgs>(100.0);
  EXPECT_NEAR(predicted_seconds(add, half) - begun_s, 2.0 * (predicted_seconds(add, device("h200")) - begun_s), 1e-9);
  const TraceEntry long_attention = attention(false, 16, 16, 4096, 64, true);
  EXPECT_GT(predicted_seconds(long_attention, device("a100")), 2.5 * predicted_seconds(long_attention, device("h200")));
  EXPECT_GT(predicted_seconds(attention(false, 16, 16, 4096, 64, false), device("h200")),
            1.7 * predicted_seconds(long_attention, device("h200")));
  // Short and small: no faster than its bytes, and than a block on each SM.
  const TraceEntry tiny = attention(true, 1, 1, 8, 64, false);
  EXPECT_LT(predicted_seconds(tiny, device("h200")), 30e-6);
  EXPECT_GT(predicted_seconds(tiny, device("h200")), 2.0 * launch_s);
}

// A ring of ranks: twice around for a sum that all have, once for shares. Links are slower than memory.
TEST(OperationTime, OfRanksIsThatOfTheirLinks) {
  const OperationModel model;
  const DeviceInfo& h200 = device("h200");
  const auto entry = [](CollectiveKind kind, std::int64_t bytes, int ranks) {
    TraceEntry one = moving<AllReduceArgs>(2e-6 * static_cast<double>(bytes));
    one.collective = CollectiveWork{.kind = kind, .bytes = bytes, .ranks = ranks};
    return one;
  };
  const std::int64_t bytes = 250'000'000;
  const double rate = model.link_share * h200.link_bytes_per_s;
  using enum CollectiveKind;
  struct Expected {
    CollectiveKind kind;
    int ranks, hops;
    double times;  // that the tensor's bytes pass a link
  };
  for (const auto& [kind, ranks, hops, times] : {Expected{all_reduce, 2, 2, 1.0},
                                                 {all_reduce, 8, 14, 1.75},
                                                 {reduce_scatter, 8, 7, 0.875},
                                                 {all_gather, 4, 3, 0.75},
                                                 {broadcast, 8, 7, 1.0}}) {
    EXPECT_NEAR(predicted_seconds(entry(kind, bytes, ranks), h200),
                model.launch_s + model.link_start_s + hops * model.link_hop_s + times * static_cast<double>(bytes) / rate, 1e-9)
        << static_cast<int>(kind) << " of " << ranks;
  }
  EXPECT_NEAR(predicted_seconds(entry(all_reduce, 4, 1024), h200), 2046 * model.link_hop_s, 1e-4) << "hops alone";
  DeviceInfo unknown = h200, fast = h200;
  unknown.link_bytes_per_s = 0.0;
  EXPECT_EQ(predicted_seconds(entry(all_reduce, bytes, 2), unknown), 0.0) << "its links are not known";
  fast.link_bytes_per_s = 1e15;
  EXPECT_GT(predicted_seconds(entry(all_reduce, bytes, 2), fast), 2.0 * static_cast<double>(bytes) / h200.bandwidth_bytes_per_s)
      << "no faster than its own memory";
  // A rank alone: nothing, or a copy.
  TraceEntry alone = entry(all_reduce, bytes, 1);
  EXPECT_NEAR(predicted_seconds(alone, h200), predicted_seconds(moving<FillArgs>(500.0), h200), 1e-9);
  EXPECT_EQ(predicted_seconds(alone, unknown), predicted_seconds(alone, h200)) << "which needs no links";
  alone.cost = {};
  EXPECT_EQ(predicted_seconds(alone, h200), 0.0);
}

TEST(OperationTime, OfAGemmIsItsPlans) {
  const TraceEntry filled = moving<FillArgs>(1.0), converted = moving<ConvertArgs>(1.0);
  for (const TraceEntry& entry : {filled, converted}) {
    EXPECT_GT(predicted_seconds(entry, device("h200")), 0.0) << entry.operation;
    EXPECT_EQ(predicted_seconds(entry, probe_cpu(1)), 0.0) << "a CPU's bandwidth is not known";
  }
  TraceEntry gemm = filled;
  gemm.gemm = GemmProblem{};
  EXPECT_THROW(predicted_seconds(gemm, device("h200")), Error);
}

}  // namespace
}  // namespace tilewave
