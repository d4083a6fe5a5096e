// A deep model's plan is that of the whole step, from a few layers of it.
#include "models/planning/layered_plan.h"

#include <gtest/gtest.h>

#include "kernels/core/device_profiles.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

void expect_same(const StepPlan& few, const StepPlan& whole) {
  ASSERT_EQ(few.gemms.size(), whole.gemms.size());
  for (std::size_t i = 0; i < whole.gemms.size(); ++i) {
    EXPECT_EQ(few.gemms[i].layer, whole.gemms[i].layer);
    EXPECT_EQ(few.gemms[i].count, whole.gemms[i].count) << whole.gemms[i].layer;
    EXPECT_TRUE(few.gemms[i].problem == whole.gemms[i].problem && few.gemms[i].plan == whole.gemms[i].plan) << whole.gemms[i].layer;
  }
  ASSERT_EQ(few.operations.size(), whole.operations.size());
  for (const OperationLine& line : whole.operations) {
    const auto same = std::find_if(few.operations.begin(), few.operations.end(), [&](const OperationLine& other) {
      return other.layer == line.layer && other.operation == line.operation;
    });
    ASSERT_NE(same, few.operations.end()) << line.operation;
    EXPECT_EQ(same->count, line.count) << line.operation;
    EXPECT_EQ(same->cost, line.cost) << line.operation;
    EXPECT_NEAR(same->predicted_s, line.predicted_s, 1e-12 * whole.predicted_s()) << line.operation;
  }
  EXPECT_NEAR(few.gemm_s / whole.gemm_s, 1.0, 1e-12);
  EXPECT_NEAR(few.other_s / whole.other_s, 1.0, 1e-12);
  EXPECT_EQ(few.rows, whole.rows);
  EXPECT_EQ(few.parameters, whole.parameters);
  EXPECT_EQ(few.matrix_flops, whole.matrix_flops);
  EXPECT_NEAR(static_cast<double>(few.bytes) / static_cast<double>(whole.bytes), 1.0, 0.02);
}

TEST(LayeredPlan, IsTheWholeStepsPlan) {
  const DeviceInfo& h200 = device_profile("h200").device;
  std::vector<std::string> deep = kDecoderOnly;
  for (const char* more : {"model.decoder_layers=30", "batch.accumulate=3", "run.precision=bf16", "batch.target_tokens=512"}) {
    deep.emplace_back(more);
  }
  for (const std::vector<std::string>& overrides :
       {deep,
        {"model.encoder_layers=14", "model.decoder_layers=9", "run.precision=bf16", "batch.source_tokens=400", "batch.target_tokens=512"},
        {"model.encoder_layers=1", "model.decoder_layers=20", "model.tied=false"},
        {"model.encoder_layers=16", "model.decoder_layers=2", "model.norm=post"}}) {
    const ResolvedRecipe resolved = resolve(small_recipe(overrides));
    ASSERT_TRUE(is_deep(resolved.recipe.model));
    expect_same(plan_by_layers(resolved, h200), plan_step(resolved, h200));
  }
}

// No more is traced for more of them: so many would take minutes and gigabytes.
TEST(LayeredPlan, OfVeryManyLayersIsTheSameLines) {
  const DeviceInfo& h200 = device_profile("h200").device;
  ResolvedRecipe resolved = resolve(small_recipe(kDecoderOnly));
  resolved.recipe.model.decoder_layers = 1'000'000;
  const StepPlan plan = plan_by_layers(resolved, h200);
  for (const GemmLine& line : plan.gemms) {
    EXPECT_TRUE(!line.layer.starts_with("decoder.*.") || line.count % 1'000'000 == 0) << line.layer << ", " << line.count;
  }
  EXPECT_GT(plan.bytes, std::int64_t{1'000'000} * 32 * 32);
}

TEST(LayeredPlan, OfAFewLayersIsExact) {
  const ResolvedRecipe resolved = resolve(small_recipe());
  ASSERT_FALSE(is_deep(resolved.recipe.model));
  const StepPlan few = plan_by_layers(resolved, probe_cpu(1)), whole = plan_step(resolved, probe_cpu(1));
  EXPECT_EQ(few.bytes, whole.bytes);
  EXPECT_EQ(few.predicted_s(), whole.predicted_s());
}

}  // namespace
}  // namespace tilewave
