// A Context's memory, plans, step state, random places and names.
#include "framework/tensor/context.h"

#include "framework/ops/linear.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class ContextTest : public Fp64Test {};

TEST_F(ContextTest, PitchFollowsThePolicy) {
  Context packed(make_cpu_queue(1), context.device(), {.pitch = PitchPolicy::packed});
  EXPECT_EQ(context.tensor({2, 33708}, DType::bf16).pitch(), 33728);
  EXPECT_EQ(packed.tensor({2, 33708}, DType::bf16).pitch(), 33708);
  EXPECT_EQ(context.tensor({1, 33708}, DType::bf16).pitch(), 33708);
}

TEST_F(ContextTest, PersistentMemoryIsZeroAndCounted) {
  const std::int64_t before = context.persistent_bytes();
  const Tensor tensor = context.persistent({3, 5}, DType::f64);
  EXPECT_EQ(read_elements(context, tensor), std::vector<double>(15, 0.0));
  EXPECT_EQ(context.persistent_bytes() - before, 512);  // 3 rows of 128 bytes, in multiples of 256
}

TEST_F(ContextTest, PersistentMemoryIsNoStepMemory) {
  const auto recorder = std::make_shared<ArenaRecorder>();
  context.record_step_memory(recorder);
  context.begin_step();
  const Tensor kept = context.persistent({3, 5}, DType::f64), passing = context.tensor({3, 5}, DType::f64);
  context.end_step();
  context.tensor({3, 5}, DType::f64);
  EXPECT_EQ(recorder->layout().sizes, (std::vector<std::int64_t>{512}));
}

TEST_F(ContextTest, PlansAreChosenOnce) {
  const auto multiply = [&](std::int64_t rows) { linear(context, {.x = leaf({rows, 8}, 1), .weight = leaf({4, 8}, 2)}); };
  multiply(5);
  ASSERT_EQ(context.plans().size(), 1U);
  const GemmPlan* plan = &context.plans().begin()->second;
  multiply(5);
  ASSERT_EQ(context.plans().size(), 1U);
  EXPECT_EQ(&context.plans().begin()->second, plan);
  multiply(6);
  EXPECT_EQ(context.plans().size(), 2U);
}

TEST_F(ContextTest, ForcedPlansAreTaken) {
  Context forced(make_cpu_queue(1), context.device(), {.precision = Precision::fp64, .gemm = {.forced = "naive"}});
  linear(forced, {.x = random_leaf(forced, {5, 8}, 1), .weight = random_leaf(forced, {4, 8}, 2)});
  ASSERT_EQ(forced.plans().size(), 1U);
  EXPECT_EQ(forced.plans().begin()->second.composition.kernel, "naive");
}

TEST_F(ContextTest, StepStateGoesToTheDeviceAndBack) {
  context.write_step_state({.step = 3, .seed = 4, .learning_rate = 0.5, .loss_scale = 8.0, .real_tokens = 9, .found_nonfinite = 1});
  EXPECT_EQ(context.step_state()->real_tokens, 9);
  const StepState state = context.read_step_state();
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.seed, 4U);
  EXPECT_EQ(state.learning_rate, 0.5);
  EXPECT_EQ(state.loss_scale, 8.0);
  EXPECT_EQ(state.clip_factor, 1.0);
  EXPECT_EQ(state.found_nonfinite, 1);
}

TEST_F(ContextTest, RandomSitesStartAnewWithEachStep) {
  context.begin_step();
  EXPECT_EQ(context.next_random_site(), 0U);
  EXPECT_EQ(context.next_random_site(), 1U);
  context.end_step();
  context.begin_step();
  EXPECT_EQ(context.next_random_site(), 0U);
}

TEST_F(ContextTest, NamesLaunches) {
  Trace trace;
  log_of(context.queue()) = &trace;
  const Variable x = leaf({5, 8}, 1), weight = leaf({8, 8}, 2);
  {
    const LayerScope decoder(context, "decoder.3");
    {
      const LayerScope ffn(context, "ffn");
      linear(context, {.x = x, .weight = weight});
    }
    linear(context, {.x = x, .weight = weight});
  }
  linear(context, {.x = x, .weight = weight});
  log_of(context.queue()) = nullptr;
  std::vector<std::string> layers;
  for (const TraceEntry& entry : trace.entries) layers.push_back(entry.layer);
  EXPECT_EQ(layers, (std::vector<std::string>{"decoder.3.ffn", "decoder.3", ""}));
}

TEST_F(ContextTest, GradientModeComesBack) {
  {
    const NoGradient outer(context);
    { const NoGradient inner(context); }
    EXPECT_EQ(context.gradient_mode(), GradientMode::off);
  }
  EXPECT_EQ(context.gradient_mode(), GradientMode::on);
}

}  // namespace
}  // namespace tilewave
