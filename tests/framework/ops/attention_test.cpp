// Self- and cross-attention over packed rows against the formula, segment by segment: uneven lengths, causal masks, padding rows,
// dropout; and their gradients.
#include "framework/ops/attention.h"

#include <algorithm>

#include "framework/ops/add.h"
#include "kernels/core/device_profiles.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr std::int64_t kHeads = 2, kWidth = 6;

struct Case {
  std::string name;
  Mask mask;
  double dropout;
};

struct Operands {
  HostMatrix q, k, v;
};

HostMatrix part(const HostMatrix& matrix, std::int64_t first, std::int64_t count) {
  HostMatrix columns(matrix.rows(), count);
  for (std::int64_t r = 0; r < matrix.rows(); ++r) {
    for (std::int64_t c = 0; c < count; ++c) columns(r, c) = matrix(r, first + c);
  }
  return columns;
}

// softmax(q k^T / sqrt(D)) v, head by head and segment by segment.
HostMatrix formula(const Operands& operands, const std::vector<std::int32_t>& segments, Mask mask) {
  const auto& [q, k, v] = operands;
  const std::int64_t depth = q.cols() / kHeads;
  HostMatrix out(q.rows(), q.cols());
  for (std::size_t s = 0; s < segments.size(); s += 4) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t i = 0; i < segments[s + 1]; ++i) {
        const std::int64_t visible = mask == Mask::causal
                                         ? std::min(segments[s + 3], segments[s + 3] - segments[s + 1] + static_cast<std::int32_t>(i) + 1)
                                         : segments[s + 3];
        std::vector<double> weights;
        double sum = 0.0;
        for (std::int64_t j = 0; j < visible; ++j) {
          double score = 0.0;
          for (std::int64_t d = head * depth; d < (head + 1) * depth; ++d) score += q(segments[s] + i, d) * k(segments[s + 2] + j, d);
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(depth))));
          sum += weights.back();
        }
        for (std::int64_t j = 0; j < visible; ++j) {
          for (std::int64_t d = head * depth; d < (head + 1) * depth; ++d) {
            out(segments[s] + i, d) += weights[static_cast<std::size_t>(j)] / sum * v(segments[s + 2] + j, d);
          }
        }
      }
    }
  }
  return out;
}

class Attention : public Fp64Test, public testing::WithParamInterface<Case> {
 protected:
  AttentionOptions options(const std::vector<std::int32_t>& segments) {
    return {.segments = segments_of(segments), .heads = kHeads, .mask = GetParam().mask, .dropout = GetParam().dropout};
  }

  // Rows 0 to 2 and 3 to 7 are sequences, row 8 is a padding row; one slot for a sequence is unused.
  const Variable qkv = leaf({9, 3 * kWidth}, 1);
  const std::vector<std::int32_t> self = {0, 3, 0, 3, 3, 5, 3, 5, 0, 0, 0, 0};
  // Queries of 2 and 4 rows see 5 and 1 keys; with a causal mask the last query sees all keys, and some queries see none.
  const Variable q = leaf({7, kWidth}, 2), kv = leaf({8, 2 * kWidth}, 3);
  const std::vector<std::int32_t> cross = {0, 2, 1, 5, 2, 4, 6, 1, 0, 0, 0, 0};
};

class AttentionWithoutDropout : public Attention {};

TEST_P(AttentionWithoutDropout, FollowsItsFormula) {
  const HostMatrix packed(context, qkv), queries(context, q), keys(context, kv);
  expect_near(HostMatrix(context, self_attention(context, qkv, options(self))),
              formula({part(packed, 0, kWidth), part(packed, kWidth, kWidth), part(packed, 2 * kWidth, kWidth)}, self, GetParam().mask));
  expect_near(HostMatrix(context, cross_attention(context, q, kv, options(cross))),
              formula({queries, part(keys, 0, kWidth), part(keys, kWidth, kWidth)}, cross, GetParam().mask));
}

TEST_P(Attention, SelfGradients) {
  const AttentionOptions chosen = options(self);
  expect_gradients(context, "self_attention", [&](Context& c) { return self_attention(c, qkv, chosen); }, {{"qkv", qkv}});
}

TEST_P(Attention, CrossGradients) {
  const AttentionOptions chosen = options(cross);
  expect_gradients(context, "cross_attention", [&](Context& c) { return cross_attention(c, q, kv, chosen); }, {{"q", q}, {"kv", kv}});
}

TEST_P(Attention, GradientsOfKeysReadTwice) {
  const AttentionOptions chosen = options(cross);
  const auto twice = [&](Context& c) { return cross_attention(c, cross_attention(c, q, kv, chosen), kv, chosen); };
  expect_gradients(context, "cross_attention", twice, {{"q", q}, {"kv", kv}});
}

TEST_P(Attention, GradientsOfQueriesAndProjectionReadTwice) {
  const AttentionOptions chosen = options(self);
  const auto twice = [&](Context& c) { return add(c, self_attention(c, qkv, chosen), self_attention(c, qkv, chosen)); };
  expect_gradients(context, "self_attention", twice, {{"qkv", qkv}});
}

INSTANTIATE_TEST_SUITE_P(Cases, Attention,
                         testing::Values(Case{"full", Mask::none, 0.0}, Case{"causal", Mask::causal, 0.0},
                                         Case{"full_dropout", Mask::none, 0.4}, Case{"causal_dropout", Mask::causal, 0.4}),
                         [](const testing::TestParamInfo<Case>& chosen) { return chosen.param.name; });
INSTANTIATE_TEST_SUITE_P(Cases, AttentionWithoutDropout, testing::Values(Case{"full", Mask::none, 0.0}, Case{"causal", Mask::causal, 0.0}),
                         [](const testing::TestParamInfo<Case>& chosen) { return chosen.param.name; });

// Groups of queries that share a head of keys and values: as if each had a copy of it.
class GroupedQueries : public Fp64Test {
 protected:
  static constexpr std::int64_t kQueryHeads = 4, kSize = 3;

  // Columns of `kv_heads` heads as many times as there are heads of queries.
  static HostMatrix copied(const HostMatrix& matrix, std::int64_t first, std::int64_t kv_heads) {
    HostMatrix all(matrix.rows(), kQueryHeads * kSize);
    for (std::int64_t r = 0; r < all.rows(); ++r) {
      for (std::int64_t c = 0; c < all.cols(); ++c) all(r, c) = matrix(r, first + c / kSize / (kQueryHeads / kv_heads) * kSize + c % kSize);
    }
    return all;
  }
  AttentionOptions options(const std::vector<std::int32_t>& segments, std::int64_t kv_heads, double scale = 0.0) {
    return {.segments = segments_of(segments), .heads = kQueryHeads, .kv_heads = kv_heads, .scale = scale, .mask = Mask::causal};
  }

  const std::vector<std::int32_t> self = {0, 3, 0, 3, 3, 5, 3, 5, 0, 0, 0, 0}, cross = {0, 2, 1, 5, 2, 4, 6, 1, 0, 0, 0, 0};
};

TEST_F(GroupedQueries, AreTheSameWithCopiesOfTheirKeys) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    const std::int64_t queries = kQueryHeads * kSize, keys = kv_heads * kSize;
    const Variable qkv = leaf({9, queries + 2 * keys}, 1);
    const HostMatrix packed(context, qkv), k = copied(packed, queries, kv_heads), v = copied(packed, queries + keys, kv_heads);
    HostMatrix spread(9, 3 * queries);
    for (std::int64_t r = 0; r < 9; ++r) {
      for (std::int64_t c = 0; c < queries; ++c) {
        spread(r, c) = packed(r, c);
        spread(r, queries + c) = k(r, c);
        spread(r, 2 * queries + c) = v(r, c);
      }
    }
    const Variable whole(tensor_of({9, 3 * queries}, spread.elements()));
    expect_near(HostMatrix(context, self_attention(context, qkv, options(self, kv_heads))),
                HostMatrix(context, self_attention(context, whole, options(self, kQueryHeads))), 0.0);
  }
}

TEST_F(GroupedQueries, Gradients) {
  for (const std::int64_t kv_heads : {1, 2}) {
    const Variable qkv = leaf({9, (kQueryHeads + 2 * kv_heads) * kSize}, 1);
    const Variable q = leaf({7, kQueryHeads * kSize}, 2), kv = leaf({8, 2 * kv_heads * kSize}, 3);
    const AttentionOptions own = options(self, kv_heads), others = options(cross, kv_heads, 0.7);
    expect_gradients(context, "self_attention", [&](Context& c) { return self_attention(c, qkv, own); }, {{"qkv", qkv}});
    expect_gradients(context, "cross_attention", [&](Context& c) { return cross_attention(c, q, kv, others); }, {{"q", q}, {"kv", kv}});
  }
}

// What a step launches: a CPU reads and sums shared heads itself; a GPU reads them, and each head's own gradients are summed behind; where
// it takes segments whole, heads are repeated before.
TEST(GroupedQueriesTrace, RepeatsHeadsWhereTheBackEndMust) {
  const auto launches = [](const DeviceInfo& device, std::int64_t sequence) {
    Trace trace;
    Context context(TraceQueue{.log = &trace}, device, {.precision = device.backend == Backend::cpu ? Precision::fp32 : Precision::bf16});
    const auto tensor = [&](const Shape& shape) { return context.tensor(shape, context.precision().activation); };
    const Variable qkv = Variable::leaf(tensor({256, 8 * 64}), tensor({256, 8 * 64}));
    const Tensor segments = context.tensor({8, 4}, DType::i32);
    const Variable out = self_attention(context, qkv, {.segments = segments, .heads = 4, .kv_heads = 2, .sequence = sequence});
    backward(context, out, tensor(out.shape()));
    std::vector<std::string> names;
    for (const TraceEntry& entry : trace.entries) {
      if (entry.operation.find("attention") != std::string_view::npos || entry.operation.find("heads") != std::string_view::npos) {
        names.emplace_back(entry.operation);
      }
    }
    return names;
  };
  using Names = std::vector<std::string>;
  const DeviceInfo& h200 = device_profile("h200").device;
  EXPECT_EQ(launches(probe_cpu(1), 64), (Names{"attention", "attention_backward"}));
  EXPECT_EQ(launches(h200, 256), (Names{"attention", "attention_backward", "repeat_heads_backward"}));
  EXPECT_EQ(launches(h200, 64), (Names{"repeat_heads", "attention", "repeat_heads", "attention_backward", "repeat_heads_backward"}));
}

TEST_F(GroupedQueries, AScaleMultipliesScores) {
  const Variable qkv = leaf({9, 6 * kSize}, 1);
  HostMatrix scaled(context, qkv);
  for (std::int64_t r = 0; r < 9; ++r) {
    for (std::int64_t c = 0; c < kQueryHeads * kSize; ++c) scaled(r, c) *= 0.3 * std::sqrt(static_cast<double>(kSize));
  }
  const Variable by_hand(tensor_of({9, 6 * kSize}, scaled.elements()));
  expect_near(HostMatrix(context, self_attention(context, qkv, options(self, 1, 0.3))),
              HostMatrix(context, self_attention(context, by_hand, options(self, 1))));
}

TEST_F(GroupedQueries, NeedADivisorOfTheHeads) {
  expect_error(
      [&] {
        self_attention(context, leaf({9, 10 * kSize}, 1), options(self, 3));
      },
      {"self_attention: 4 heads of queries cannot share 3 of keys and values"});
}

class AttentionOperation : public Fp64Test {};

// With one-hot values the result is the attention probabilities themselves.
TEST_F(AttentionOperation, DropoutKeepsProbabilitiesOrDropsThem) {
  const Variable q = leaf({6, 6}, 1);
  const HostMatrix keys(context, leaf({6, 6}, 2));
  HostMatrix packed(6, 12);
  for (std::int64_t r = 0; r < 6; ++r) {
    for (std::int64_t c = 0; c < 6; ++c) packed(r, c) = keys(r, c);
    packed(r, 6 + r) = 1.0;
  }
  const Variable kv(tensor_of({6, 12}, packed.elements()));
  const auto probabilities = [&](double dropout, StepState state) {
    context.write_step_state(state);
    context.begin_step();
    return HostMatrix(context, cross_attention(context, q, kv, {.segments = segments_of({0, 6, 0, 6}), .heads = 1, .dropout = dropout}));
  };
  const HostMatrix all = probabilities(0.0, {}), some = probabilities(0.5, {.step = 1, .seed = 3});
  int kept = 0;
  for (std::int64_t r = 0; r < 6; ++r) {
    for (std::int64_t c = 0; c < 6; ++c) {
      if (some(r, c) == 0.0) continue;
      EXPECT_NEAR(some(r, c), all(r, c) / 0.5, 1e-12);
      ++kept;
    }
  }
  EXPECT_GT(kept, 6);
  EXPECT_LT(kept, 30);
  EXPECT_EQ(some.elements(), probabilities(0.5, {.step = 1, .seed = 3}).elements());
  EXPECT_NE(some.elements(), probabilities(0.5, {.step = 2, .seed = 3}).elements());
  EXPECT_NE(some.elements(), probabilities(0.5, {.step = 1, .seed = 4}).elements());
}

TEST_F(AttentionOperation, NamesWhatDoesNotFit) {
  const Tensor segments = segments_of({0, 2, 0, 2});
  expect_error([&] { self_attention(context, leaf({2, 7}, 1), {.segments = segments}); }, {"self_attention", "[2, 7]"});
  expect_error([&] { self_attention(context, leaf({2, 9}, 1), {.segments = segments, .heads = 2}); }, {"self_attention", "2 heads"});
  expect_error(
      [&] {
        cross_attention(context, leaf({2, 4}, 1), leaf({2, 6}, 2), {.segments = segments});
      },
      {"cross_attention", "[2, 4]", "[2, 6]"});
  expect_error([&] { self_attention(context, leaf({2, 6}, 1), {.segments = ids_of({0, 2})}); }, {"self_attention", "[1, 2]"});
}

}  // namespace
}  // namespace tilewave
