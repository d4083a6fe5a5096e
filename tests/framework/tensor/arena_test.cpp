// Layouts of random lifetimes (nothing alive overlaps, and they take no more than the sum and no less than the peak), and steps in
// an arena: the trace's memory and entries are the real step's, addresses repeat, results are those of the heap.
#include "framework/tensor/arena.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "framework/ops/add.h"
#include "framework/ops/attention.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/dropout.h"
#include "framework/ops/feed_forward.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/linear.h"
#include "framework/optimizer/adamw.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Lifetime {
  std::int64_t bytes = 0;
  std::size_t birth = 0, death = 0;  // ends before `death`
};

TEST(ArenaLayoutTest, OfRandomLifetimes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    ArenaRecorder recorder;
    std::vector<Lifetime> lifetimes;
    std::vector<std::size_t> alive;
    std::int64_t living = 0, peak = 0;
    const std::size_t events = 1 + random() % 120;
    for (std::size_t now = 0; now < events; ++now) {
      if (!alive.empty() && random() % 5 < 2) {
        const std::size_t place = random() % alive.size();
        recorder.release(alive[place]);
        lifetimes[alive[place]].death = now;
        living -= lifetimes[alive[place]].bytes;
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(place));
      } else {
        const auto bytes = static_cast<std::int64_t>(random() % 5000);
        const std::size_t allocation = recorder.allocate(bytes);
        ASSERT_EQ(allocation, lifetimes.size());
        lifetimes.push_back({.bytes = round_up(std::max<std::int64_t>(bytes, 1), kAlignment), .birth = now, .death = events});
        alive.push_back(allocation);
        peak = std::max(peak, living += lifetimes.back().bytes);
      }
    }
    const ArenaLayout layout = recorder.layout();
    ASSERT_EQ(layout.offsets.size(), lifetimes.size());
    ASSERT_EQ(layout.sizes.size(), lifetimes.size());
    EXPECT_GE(layout.bytes, peak);
    EXPECT_LE(layout.bytes, std::accumulate(layout.sizes.begin(), layout.sizes.end(), std::int64_t{0}));
    for (std::size_t a = 0; a < lifetimes.size(); ++a) {
      EXPECT_EQ(layout.sizes[a], lifetimes[a].bytes);
      EXPECT_EQ(layout.offsets[a] % kAlignment, 0);
      EXPECT_GE(layout.offsets[a], 0);
      EXPECT_LE(layout.offsets[a] + layout.sizes[a], layout.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const bool together = lifetimes[a].birth < lifetimes[b].death && lifetimes[b].birth < lifetimes[a].death;
        const bool apart =
            layout.offsets[a] + layout.sizes[a] <= layout.offsets[b] || layout.offsets[b] + layout.sizes[b] <= layout.offsets[a];
        ASSERT_TRUE(apart || !together) << a << " and " << b << " in round " << round;
      }
    }
  }
}

// The rule, literally: by decreasing size, each to the lowest gap between those alive with it.
TEST(ArenaLayoutTest, TakesTheLowestGaps) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    ArenaRecorder recorder;
    std::vector<Lifetime> lifetimes;
    std::vector<std::size_t> alive;
    const std::size_t events = 1 + random() % 300, kinds = 1 + random() % 12;
    for (std::size_t now = 0; now < events; ++now) {
      if (!alive.empty() && random() % 5 < 2) {
        const std::size_t place = random() % 3 == 0 ? random() % alive.size() : alive.size() - 1;
        recorder.release(alive[place]);
        lifetimes[alive[place]].death = now;
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(place));
      } else {
        const auto bytes = static_cast<std::int64_t>(1 + random() % kinds * 700);
        alive.push_back(recorder.allocate(bytes));
        lifetimes.push_back({.bytes = round_up(bytes, kAlignment), .birth = now, .death = events});
      }
    }
    const ArenaLayout layout = recorder.layout();
    std::vector<std::size_t> by_size(lifetimes.size());
    std::iota(by_size.begin(), by_size.end(), 0U);
    std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
    for (std::size_t i = 0; i < by_size.size(); ++i) {
      const Lifetime& own = lifetimes[by_size[i]];
      std::int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t j = 0; j < i; ++j) {
          const Lifetime& other = lifetimes[by_size[j]];
          const std::int64_t begin = layout.offsets[by_size[j]], end = begin + other.bytes;
          if (own.birth >= other.death || other.birth >= own.death || end <= offset || begin >= offset + own.bytes) continue;
          offset = end;
          moved = true;
        }
      }
      ASSERT_EQ(layout.offsets[by_size[i]], offset) << by_size[i] << " in round " << round;
    }
  }
}

TEST(ArenaLayoutTest, ReusesWhatIsGivenBack) {
  ArenaRecorder recorder;
  for (int i = 0; i < 10; ++i) recorder.release(recorder.allocate(1000));
  EXPECT_EQ(recorder.layout().bytes, 1024);
}

// As an accumulated step does: thousands of passes with nothing alive between them.
TEST(ArenaLayoutTest, LaysOutEveryPassLikeTheFirst) {
  ArenaRecorder recorder;
  constexpr std::size_t kPasses = 2000, kAllocations = 40;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    std::mt19937_64 random(2);
    std::vector<std::size_t> alive;
    for (std::size_t i = 0; i < kAllocations; ++i) {
      alive.push_back(recorder.allocate(static_cast<std::int64_t>(1 + random() % 5000)));
      if (random() % 2 == 0 && alive.size() > 1) {
        recorder.release(alive.front());
        alive.erase(alive.begin());
      }
    }
    for (const std::size_t allocation : alive) recorder.release(allocation);
  }
  const ArenaLayout layout = recorder.layout();
  ASSERT_EQ(layout.offsets.size(), kPasses * kAllocations);
  for (std::size_t i = kAllocations; i < layout.offsets.size(); ++i) ASSERT_EQ(layout.offsets[i], layout.offsets[i % kAllocations]) << i;
}

TEST(ArenaLayoutTest, OfNothing) { EXPECT_EQ(ArenaRecorder().layout().bytes, 0); }

TEST(ArenaTest, HoldsAStepToItsTrace) {
  Queue queue = make_cpu_queue(1);
  ArenaRecorder recorder;
  recorder.allocate(100);
  recorder.allocate(1000);
  const ArenaLayout layout = recorder.layout();
  EXPECT_THROW(Arena(allocate_step_memory(queue, layout.bytes - 1), layout), Error);
  Arena arena(allocate_step_memory(queue, layout.bytes), layout);
  arena.begin_step();
  const void* first = arena.allocate(100);
  expect_error([&] { arena.allocate(2000); }, {"allocation 1", "2048", "1024"});
  arena.allocate(1000);
  expect_error([&] { arena.allocate(1); }, {"allocation 2"});
  arena.begin_step();
  EXPECT_EQ(arena.allocate(100), first);
}

// A step with every kind of memory in it: activations, statistics, workspace, dropout, a loss in place, the optimizer.
class Step {
 public:
  static constexpr std::int64_t kTokens = 6, kWidth = 8, kVocabulary = 5;

  explicit Step(Context& context)
      : context_(context),
        parameters_(context, 1),
        ids_(context.persistent({1, kTokens}, DType::i32)),
        segments_(context.persistent({2, 4}, DType::i32)) {
    write_ids(context, ids_, {1, 4, 0, 2, -1, 3});
    write_ids(context, segments_, {0, 2, 0, 2, 2, 4, 2, 4});
    const auto weight = [&](const char* name, Shape shape) {
      return parameters_.add({.name = name, .shape = shape, .initialization = {.mean = 0.1, .deviation = 0.5}});
    };
    const auto vector = [&](const char* name, std::int64_t cols) {
      return parameters_.add({.name = name, .shape = {1, cols}, .kind = ParameterKind::bias, .initialization = {.mean = 1.0}});
    };
    x_ = weight("x", {kTokens, kWidth});
    qkv_ = weight("qkv", {3 * kWidth, kWidth});
    up_ = weight("up", {13, kWidth});
    up_bias_ = vector("up_bias", 13);
    down_ = weight("down", {kWidth, 13});
    down_bias_ = vector("down_bias", kWidth);
    gamma_ = vector("gamma", kWidth);
    beta_ = vector("beta", kWidth);
    out_ = weight("out", {kVocabulary, kWidth});
    optimizer_.emplace(parameters_, AdamWOptions{});
  }

  void run() {
    context_.begin_step();
    parameters_.reset_gradients();
    {
      const LayerScope scope(context_, "layer");
      const Variable norm = layer_norm(context_, {.x = x_, .gamma = gamma_, .beta = beta_});
      const Variable qkv = linear(context_, {.x = norm, .weight = qkv_});
      const Variable mixed = self_attention(context_, qkv, {.segments = segments_, .heads = 2, .mask = Mask::causal, .dropout = 0.2});
      const Variable dropped = dropout(context_, {.x = mixed, .residual = norm, .probability = 0.3});
      const Variable hidden = feed_forward(context_, {.x = dropped,
                                                      .up_weight = up_,
                                                      .up_bias = up_bias_,
                                                      .down_weight = down_,
                                                      .down_bias = down_bias_,
                                                      .residual = dropped,
                                                      .activation = FeedForwardActivation::gelu_tanh});
      addresses = {norm.value().data(), qkv.value().data(), mixed.value().data(), dropped.value().data(), hidden.value().data()};
      const Variable logits = linear(context_, {.x = hidden, .weight = out_});
      backward(context_, cross_entropy(context_, {.logits = logits, .labels = ids_, .vocabulary = kVocabulary, .smoothing = 0.1}));
    }
    optimizer_->update();
    context_.end_step();
  }

  std::vector<double> weights() {
    std::vector<double> all;
    for (const Parameter& parameter : parameters_.all()) {
      for (const double element : read_elements(context_, parameter.master)) all.push_back(element);
    }
    return all;
  }

  std::vector<const void*> addresses;

 private:
  Context& context_;
  Parameters parameters_;
  Tensor ids_, segments_;
  Variable x_, qkv_, up_, up_bias_, down_, down_bias_, gamma_, beta_, out_;
  std::optional<AdamW> optimizer_;
};

struct Traced {
  Trace trace;
  ArenaLayout layout;
  std::int64_t persistent_bytes = 0;
};

class ArenaStep : public testing::TestWithParam<Precision> {
 protected:
  Traced trace() {
    Traced traced;
    Context context(TraceQueue{}, device, {.precision = GetParam()});
    Step step(context);
    traced.persistent_bytes = context.persistent_bytes();
    const auto recorder = std::make_shared<ArenaRecorder>();
    context.record_step_memory(recorder);
    log_of(context.queue()) = &traced.trace;
    step.run();
    traced.layout = recorder->layout();
    return traced;
  }
  static void prepare(Context& context) { context.write_step_state({.step = 1, .seed = 5, .learning_rate = 0.01, .real_tokens = 5}); }

  const DeviceInfo device = probe_cpu(2);
};

TEST_P(ArenaStep, OfATraceIsThatOfTheRealStep) {
  const Traced traced = trace();
  Context context(make_cpu_queue(2), device, {.precision = GetParam()});
  Step step(context);
  EXPECT_EQ(context.persistent_bytes(), traced.persistent_bytes);
  const auto recorder = std::make_shared<ArenaRecorder>();
  context.record_step_memory(recorder);
  Trace log;
  log_of(context.queue()) = &log;
  prepare(context);
  step.run();
  log_of(context.queue()) = nullptr;

  const ArenaLayout layout = recorder->layout();
  EXPECT_EQ(layout.sizes, traced.layout.sizes);
  EXPECT_EQ(layout.offsets, traced.layout.offsets);
  EXPECT_EQ(layout.bytes, traced.layout.bytes);
  ASSERT_EQ(log.entries.size(), traced.trace.entries.size());
  int gemms = 0;
  for (std::size_t i = 0; i < log.entries.size(); ++i) {
    EXPECT_EQ(log.entries[i], traced.trace.entries[i])
        << "entry " << i << ": " << log.entries[i].operation << " and " << traced.trace.entries[i].operation;
    gemms += log.entries[i].gemm.has_value() && log.entries[i].plan.has_value() ? 1 : 0;
  }
  EXPECT_EQ(gemms, 3 + 6 + 3);  // qkv, feed forward, projection: forward, dgrad, wgrad each
}

TEST_P(ArenaStep, RepeatsItsAddressesAndTheHeapsResults) {
  const Traced traced = trace();
  Context context(make_cpu_queue(2), device, {.precision = GetParam()}), heap(make_cpu_queue(2), device, {.precision = GetParam()});
  Step step(context), other(heap);
  const auto arena = std::make_shared<Arena>(allocate_step_memory(context.queue(), traced.layout.bytes), traced.layout);
  EXPECT_EQ(arena->bytes(), traced.layout.bytes);
  context.use_arena(arena);
  const std::vector<double> before = step.weights();
  prepare(context);
  prepare(heap);
  step.run();
  other.run();
  const std::vector<const void*> addresses = step.addresses;
  const std::vector<double> after = step.weights();
  EXPECT_NE(after, before);
  EXPECT_EQ(after, other.weights());
  for (int i = 0; i < 2; ++i) {
    step.run();
    other.run();
    EXPECT_EQ(step.addresses, addresses);
    EXPECT_EQ(step.weights(), other.weights());
  }
  EXPECT_LT(traced.layout.bytes, std::accumulate(traced.layout.sizes.begin(), traced.layout.sizes.end(), std::int64_t{0}));
}

INSTANTIATE_TEST_SUITE_P(Precisions, ArenaStep, testing::Values(Precision::fp32, Precision::fp64),
                         [](const testing::TestParamInfo<Precision>& precision) { return std::string(name_of(precision.param)); });

}  // namespace
}  // namespace tilewave
