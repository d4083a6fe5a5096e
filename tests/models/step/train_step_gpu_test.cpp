// A whole step on a GPU: the CPU's numbers within rounding, equal bits from run to run and captured or not, and what does not
// belong to the mathematics changes nothing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/gemm/catalog.h"
#include "models/study/same_loss.h"
#include "tests/kernels/gpu.h"
#include "tests/models/training/small_runs.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

using testing_support::GpuTest;

class GpuTrainStep : public GpuTest {
 protected:
  SmallRun on_gpu(const std::vector<std::string>& overrides) { return {small_recipe(overrides), queue_, device_}; }

  // ||a - b|| / ||b||
  static double difference(const std::vector<double>& a, const std::vector<double>& b) {
    EXPECT_EQ(a.size(), b.size());
    double difference = 0.0, norm = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
    EXPECT_GT(norm, 0.0);
    return std::sqrt(difference / norm);
  }

  static std::vector<std::string> with(std::vector<std::string> base, const std::vector<std::string>& more) {
    base.insert(base.end(), more.begin(), more.end());
    return base;
  }

  // The mean loss of steps 181 to 200 of recipes/toy_translation.toml.
  double toy_loss(const std::vector<std::string>& overrides) {
    SmallRun run(read_recipe(test_environment().data / ".." / "recipes" / "toy_translation.toml", overrides), queue_, device_);
    run.step.use_step_memory(trace_step(run.resolved, device_));
    const std::vector<double> losses = run.losses(200);
    EXPECT_LT(losses.back(), 0.5 * losses.front());
    return std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20.0;
  }

  const std::vector<std::vector<std::string>> kModels = {{}, {"model.norm=post", "model.tied=false"}, kDecoderOnly};
  const std::vector<std::string> kThreePasses = {"batch.accumulate=3", "model.norm=post"};
};

// Weights move by some hundredths of themselves in five steps, so that their movement is compared too: a run that does not update
// differs by all of it.
TEST_F(GpuTrainStep, FollowsTheCpu) {
  struct Bound {
    const char* precision;
    double losses, weights, movement;
  };
  const auto minus = [](std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
  };
  std::vector<std::vector<std::string>> models = kModels;
  models.push_back(kThreePasses);
  for (const auto& model : models) {
    SmallRun reference(small_recipe(with(model, {"run.precision=fp64"})));
    const std::vector<double> first = reference.weights(), losses = reference.losses(5), weights = reference.weights();
    for (const Bound& bound : {Bound{"fp64", 1e-12, 1e-10, 1e-7},
                               {"fp32", 1e-5, 1e-3, 0.2},
                               {"tf32", 2e-3, 2e-2, 0.5},
                               {"bf16", 1e-2, 5e-2, 0.5},
                               {"fp16", 3e-3, 2e-2, 0.5}}) {
      SCOPED_TRACE(bound.precision);
      SmallRun run = on_gpu(with(model, {concat("run.precision=", bound.precision)}));
      std::vector<double> own;
      for (int step = 0; step < 5; ++step) {
        const StepReport report = run.advance();
        EXPECT_TRUE(report.finite);
        own.push_back(report.loss);
      }
      EXPECT_LE(difference(own, losses), bound.losses);
      EXPECT_LE(difference(run.weights(), weights), bound.weights);
      EXPECT_LE(difference(minus(run.weights(), first), minus(weights, first)), bound.movement);
    }
  }
}

TEST_F(GpuTrainStep, CapturedAndSeparateLaunchesGiveTheSameBits) {
  std::vector<std::vector<std::string>> models = kModels;
  models.push_back(kThreePasses);
  for (const auto& model : models) {
    for (const char* precision : {"run.precision=fp32", "run.precision=bf16", "run.precision=fp16"}) {
      SCOPED_TRACE(precision);
      SmallRun heap = on_gpu(with(model, {precision})), separate = on_gpu(with(model, {precision})),
               captured = on_gpu(with(model, {precision}));
      separate.step.use_step_memory(trace_step(separate.resolved, device_), Launches::separate);
      captured.step.use_step_memory(trace_step(captured.resolved, device_), Launches::captured);
      const std::vector<double> losses = heap.losses(5), weights = heap.weights();
      EXPECT_EQ(losses, separate.losses(5));
      EXPECT_EQ(losses, captured.losses(5));
      EXPECT_EQ(weights, separate.weights());
      EXPECT_EQ(weights, captured.weights());
    }
  }
}

// One that joined NCCL all the same does what each of many does: sums beside the backward pass, shares that are the whole, gathers.
TEST_F(GpuTrainStep, ARankThatJoinedTakesTheStepsOfOneAlone) {
  const FoundLibrary nccl = find_nccl();
  if (nccl.path.empty()) GTEST_SKIP() << nccl.refused << " The steps of ranks were NOT tried.";
  const Communicator ranks = join_nccl(device_.index, make_nccl_id(), 0, 1);
  for (const auto& model : {std::vector<std::string>{}, kThreePasses, with(kDecoderOnly, {"model.decoder_layers=5"})}) {
    for (const auto& [precision, tolerance] : {std::pair{"fp64", 1e-12}, {"fp32", 1e-5}, {"bf16", 1e-2}, {"fp16", 3e-3}}) {
      const std::vector<std::string> base = with(model, {concat("run.precision=", precision)});
      SmallRun alone = on_gpu(base);
      const std::vector<double> losses = alone.losses(6);
      for (const auto& [shard, type] : {std::pair{"none", "fp32"},
                                        {"optimizer", "fp32"},
                                        {"gradients", "fp32"},
                                        {"none", "bf16"},
                                        {"optimizer", "bf16"},
                                        {"gradients", "bf16"}}) {
        const bool rounds = std::string_view(type) == "bf16";
        if (rounds && std::string_view(precision) == "fp64") continue;
        SCOPED_TRACE(concat(precision, ", ", shard, ", summed in ", type));
        const Recipe recipe = small_recipe(with(base, {concat("run.shard=", shard), concat("run.gradient_reduction=", type)}));
        SmallRun separate(recipe, queue_, device_, ranks), captured(recipe, queue_, device_, ranks);
        const StepTrace trace = trace_step(captured.resolved, device_, {.ranks = ranks});
        EXPECT_FALSE(trace.beside.entries.empty());
        separate.step.use_step_memory(trace, Launches::separate);
        captured.step.use_step_memory(trace, Launches::captured);
        const std::vector<double> own = captured.losses(6);
        EXPECT_LE(difference(own, losses), rounds ? 1e-2 : tolerance);  // that of numbers rounded to 8 bits
        EXPECT_EQ(own, separate.losses(6));
        if (separate.step.shares() || rounds) continue;
        EXPECT_LE(difference(captured.weights(), alone.weights()), 5.0 * tolerance);
        EXPECT_EQ(captured.weights(), separate.weights());
      }
    }
  }
}

// Graphs of passes are replayed with each pass's own batch and dropout, also where the host is far ahead.
TEST_F(GpuTrainStep, ManyPassesReplayOneGraph) {
  const std::vector<std::string> passes = {"run.precision=fp32", "batch.accumulate=20"};
  SmallRun separate = on_gpu(passes), captured = on_gpu(passes);
  separate.step.use_step_memory(trace_step(separate.resolved, device_), Launches::separate);
  captured.step.use_step_memory(trace_step(captured.resolved, device_), Launches::captured);
  EXPECT_EQ(separate.losses(4), captured.losses(4));
  EXPECT_EQ(separate.weights(), captured.weights());
  captured.step.repeat();  // as it is timed
  EXPECT_TRUE(captured.step.collect().finite);
}

TEST_F(GpuTrainStep, SeedsDecideEverything) {
  SmallRun a = on_gpu({"run.precision=bf16"}), b = on_gpu({"run.precision=bf16"}), other = on_gpu({"run.precision=bf16", "run.seed=2"});
  const std::vector<double> losses = a.losses(4);
  EXPECT_EQ(losses, b.losses(4));
  EXPECT_NE(losses, other.losses(4));
}

TEST_F(GpuTrainStep, PaddingPitchAndGhostRowsAreInvisible) {
  for (const auto& model : kModels) {
    for (const auto& [precision, tolerance] : {std::pair{"fp64", 1e-12}, {"fp32", 1e-5}, {"bf16", 1e-2}}) {
      const std::vector<std::string> base =
          with(model, {concat("run.precision=", precision), "model.dropout=0", "model.attention_dropout=0"});
      SmallRun plain = on_gpu(base);
      const Batch batch = *plain.stream.next();
      const double loss = plain.step.run(std::vector<Batch>{batch}, 1).loss;
      const std::vector<double> weights = plain.weights();
      for (const char* change : {"guidelines.pad_vocabulary_to=64", "guidelines.row_pitch=packed", "guidelines.batch_multiple_of=64",
                                 "guidelines.ffn_hidden_layout=feature_major"}) {
        SCOPED_TRACE(concat(precision, " ", change));
        SmallRun run = on_gpu(with(base, {change}));
        const StepReport report = run.step.run(std::vector<Batch>{repacked(batch, batch_shape(run.resolved))}, 1);
        EXPECT_NEAR(report.loss / loss, 1.0, tolerance);
        EXPECT_LE(difference(run.weights(), weights), tolerance);
        EXPECT_TRUE(report.finite);
      }
    }
  }
}

TEST_F(GpuTrainStep, TraceIsTheLogOfARealStep) {
  for (const char* passes : {"batch.accumulate=1", "batch.accumulate=4"}) {
    SmallRun run = on_gpu({"run.precision=bf16", passes});
    const StepTrace traced = trace_step(run.resolved, device_);
    const std::vector<TraceEntry> expected = every_launch(traced.trace);
    Trace log;
    log_of(run.context.queue()) = &log;
    run.advance();
    ASSERT_EQ(expected.size(), log.entries.size());
    for (std::size_t i = 0; i < log.entries.size(); ++i) {
      EXPECT_TRUE(expected[i] == log.entries[i]) << "launch " << i << ": " << log.entries[i].operation << " in " << log.entries[i].layer;
    }
    EXPECT_EQ(traced.persistent_bytes, run.context.persistent_bytes());
  }
}

TEST_F(GpuTrainStep, LearnsAsTheCpuDoes) {
  SmallRun run = on_gpu({"run.precision=bf16", "optimizer.learning_rate=5e-3", "model.dropout=0", "model.attention_dropout=0"});
  run.step.use_step_memory(trace_step(run.resolved, device_));
  const std::vector<double> losses = run.losses(60);
  EXPECT_LT(losses.back(), 0.8 * losses.front());
  EXPECT_GT(run.step.validate(run.corpus.validation(batch_shape(run.resolved))), 0.0);
}

TEST_F(GpuTrainStep, AStepThatOverflowsIsSkippedAndLowersTheLossScale) {
  for (const Launches launches : {Launches::separate, Launches::captured}) {
    SmallRun run = on_gpu({"run.precision=fp16"});
    run.step.use_step_memory(trace_step(run.resolved, device_), launches);
    EXPECT_TRUE(run.advance().finite);
    StepState state = run.context.read_step_state();
    EXPECT_EQ(state.loss_scale, kFirstLossScale);
    state.loss_scale = 0x1p40;  // times a gradient of 1 / 50 tokens: far beyond fp16
    run.context.write_step_state(state);
    std::vector<double> weights = run.weights();
    double scale = state.loss_scale;
    StepReport report = run.advance();
    for (; report.skipped() && scale > 1.0; report = run.advance()) {
      EXPECT_EQ(report.loss_scale, scale /= 2.0);
      EXPECT_EQ(run.weights(), weights);
    }
    EXPECT_LT(scale, 0x1p40);
    EXPECT_TRUE(report.finite);
    EXPECT_EQ(report.loss_scale, scale);
    EXPECT_TRUE(std::isfinite(report.loss));
    const std::vector<double> moved = run.weights();
    EXPECT_NE(moved, weights);
    EXPECT_TRUE(std::ranges::all_of(moved, [](double weight) { return std::isfinite(weight); }));
  }
}

TEST_F(GpuTrainStep, HoppersRowsFollowThePortableOnes) {
  if (device_.capability != 90) GTEST_SKIP() << "this GPU has no wgmma of compute capability 9.0";
  const std::vector<std::string> base = {"run.precision=bf16",    "model.d_model=256",       "model.d_ff=1024",
                                         "model.vocabulary=1001", "batch.source_tokens=501", "batch.target_tokens=501"};
  SmallRun portable = on_gpu(with(base, {"gemm.choice=tensor_core_persistent"}));
  const std::vector<double> losses = portable.losses(5), weights = portable.weights();
  for (const auto& layout : {std::vector<std::string>{}, {"guidelines.ffn_hidden_layout=feature_major", "guidelines.row_pitch=packed"}}) {
    SCOPED_TRACE(layout.size());
    SmallRun run = on_gpu(with(base, layout));
    EXPECT_LE(difference(run.losses(5), losses), 1e-2);
    EXPECT_LE(difference(run.weights(), weights), 5e-2);
    DeviceInfo older = device_;
    older.capability = 80;
    const auto plans = run.context.plans();
    EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), [&](const auto& one) {
      return !kernel_of(Backend::cuda, one.second).refuse(one.first, older).empty();
    })) << "no plan is of one of Hopper's own rows";
  }
}

TEST_F(GpuTrainStep, StrictAlignmentKeepsTensorCoresToMultiplesOf8) {
  const std::vector<std::string> base = {"run.precision=bf16",    "guidelines.row_pitch=packed", "model.d_model=256",      "model.d_ff=512",
                                         "model.vocabulary=1001", "batch.source_tokens=500",     "batch.target_tokens=504"};
  SmallRun any = on_gpu(base), strict = on_gpu(with(base, {"gemm.alignment_policy=strict"}));
  EXPECT_LE(difference(strict.losses(3), any.losses(3)), 1e-2);
  int on_tensor_cores = 0, off_them = 0, odd_tokens = 0;
  for (const auto& [problem, plan] : strict.context.plans()) {
    const GemmKernel* const row = &kernel_of(Backend::cuda, plan);
    ASSERT_NE(row, nullptr);
    EXPECT_TRUE(strictly_aligned(problem) || !row->tensor_cores) << name_of(plan.composition);
    ++(row->tensor_cores ? on_tensor_cores : off_them);
    odd_tokens += row->tensor_cores && problem.n % 8 != 0 ? 1 : 0;
  }
  EXPECT_GT(off_them, 0);
  EXPECT_GT(odd_tokens, 0) << "500 tokens are nobody's fastest-varying dimension in forward and dgrad";
  for (const auto& [problem, plan] : any.context.plans()) on_tensor_cores += kernel_of(Backend::cuda, plan).tensor_cores ? 1 : 0;
  EXPECT_GT(on_tensor_cores, 0);
}

TEST_F(GpuTrainStep, StrictAlignmentKeepsTf32OffTensorCores) {
  const std::vector<std::string> base = {"run.precision=tf32", "model.d_model=256", "model.d_ff=512", "batch.source_tokens=504",
                                         "batch.target_tokens=504"};
  SmallRun any = on_gpu(base), strict = on_gpu(with(base, {"gemm.alignment_policy=strict"}));
  EXPECT_LE(difference(strict.losses(3), any.losses(3)), 1e-2);
  const auto on_tensor_cores = [](const auto& one) { return kernel_of(Backend::cuda, one.second).tensor_cores; };
  const auto strict_plans = strict.context.plans(), any_plans = any.context.plans();
  EXPECT_FALSE(strict_plans.empty());
  EXPECT_TRUE(std::none_of(strict_plans.begin(), strict_plans.end(), on_tensor_cores));
  EXPECT_TRUE(std::any_of(any_plans.begin(), any_plans.end(), on_tensor_cores));
}

// A run of 200 steps, whose last ones have small rates; GpuTrainer.ToyTranslationLearnsInBf16AsInFp32 has the recipe's own.
TEST_F(GpuTrainStep, AnAnnealedToyTranslationLearnsInBf16AsInFp32) {
  EXPECT_NEAR(toy_loss({"run.precision=bf16", "run.steps=200"}) / toy_loss({"run.precision=fp32", "run.steps=200"}), 1.0, 0.005);
}

}  // namespace
}  // namespace tilewave
