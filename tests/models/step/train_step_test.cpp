// A step is what its trace says it is, and what does not belong to the mathematics does not change it: threads, step memory,
// padding, pitch, padding rows and the way a batch is cut into passes.
#include "models/step/train_step.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/core/device_profiles.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

// A rank's bytes of weights, gradients and moments fall as its share does. On a GPU in bf16 a parameter has 18: a master, two moments and a
// gradient of 4, 2 that are computed with; a CPU in fp32 computes with the master.
TEST(ShardedStep, ARankHoldsItsShare) {
  constexpr int kRanks = 4;
  const auto bytes = [](const DeviceInfo& device, const std::string& precision, const std::string& shard) {
    const Recipe recipe = small_recipe({"model.d_model=256", "model.d_ff=1024", "model.decoder_layers=20", "model.vocabulary=2000",
                                        "run.precision=" + precision, "run.ranks=" + std::to_string(kRanks), "run.shard=" + shard,
                                        "batch.source_tokens=192", "batch.target_tokens=192"});
    const StepTrace trace = trace_step(resolve(recipe), device);
    return static_cast<double>(trace.persistent_bytes) / static_cast<double>(trace.parameters);
  };
  const DeviceInfo gpu = device_profile("h100").device;
  EXPECT_NEAR(bytes(probe_cpu(1), "fp32", "none"), 16.0, 0.03 * 16.0);
  EXPECT_NEAR(bytes(probe_cpu(1), "fp32", "optimizer"), 8.0 + 8.0 / kRanks, 0.03 * 10.0);
  EXPECT_NEAR(bytes(gpu, "bf16", "none"), 18.0, 0.03 * 18.0);
  EXPECT_NEAR(bytes(gpu, "bf16", "optimizer"), 6.0 + 12.0 / kRanks, 0.03 * 9.0);
  // Of the gradients the shares, two layers of twenty, and what has no like: the embedding and the encoder's one layer.
  EXPECT_LT(bytes(gpu, "bf16", "gradients"), 2.0 + 16.0 / kRanks + 4.0 * 0.2);
  EXPECT_GT(bytes(gpu, "bf16", "gradients"), 2.0 + 16.0 / kRanks);
}

// Of several passes the shares are told in each, the loss once.
TEST(ShardedStep, EveryPassSumsGradientsThatTakeTurns) {
  const auto launches = [](const std::string& shard, std::string_view operation) {
    const Recipe recipe = small_recipe({"run.ranks=2", "run.shard=" + shard, "batch.accumulate=3"});
    std::int64_t count = 0;
    for (const TraceEntry& entry : trace_step(resolve(recipe), probe_cpu(1)).trace.entries) {
      if (entry.operation == operation) count += entry.times;
    }
    return count;
  };
  const std::int64_t layers = launches("optimizer", "all_gather");
  EXPECT_GT(layers, 4);
  EXPECT_EQ(launches("optimizer", "reduce_scatter"), layers);
  EXPECT_EQ(launches("gradients", "reduce_scatter"), 3 * layers);
  EXPECT_EQ(launches("gradients", "all_gather"), layers);
  EXPECT_EQ(launches("none", "all_reduce"), layers + 1);  // and the loss
  EXPECT_EQ(launches("gradients", "all_reduce"), 2);      // the loss and the norm
  EXPECT_EQ(launches("none", "all_gather"), 0);
}

// In bf16 half the bytes go over the links, in as many sums; every rank has a copy of the largest layer's gradients in 2 bytes beside.
TEST(ShardedStep, SumsInBf16SendHalfTheBytes) {
  struct Traced {
    std::int64_t sums = 0, bytes = 0, conversions = 0, most = 0, persistent_bytes = 0;
  };
  const auto traced = [](const std::string& shard, const std::string& type, const std::string& passes) {
    const Recipe recipe = small_recipe(
        {"run.ranks=2", "run.shard=" + shard, "run.gradient_reduction=" + type, "batch.accumulate=" + passes, "run.precision=bf16"});
    const StepTrace trace = trace_step(resolve(recipe), device_profile("h100").device);
    Traced result{.persistent_bytes = trace.persistent_bytes};
    for (std::size_t i = 0; i < trace.trace.entries.size(); ++i) {
      const TraceEntry& entry = trace.trace.entries[i];
      if (entry.operation == "convert") {
        result.conversions += entry.times;
        EXPECT_TRUE(std::ranges::binary_search(trace.beside.entries, i)) << "a conversion holds up the pass";
      }
      // Of the loss and of the norm a few doubles are summed.
      if (!entry.collective || entry.collective->kind == CollectiveKind::all_gather || entry.collective->bytes <= 16) continue;
      result.sums += entry.times;
      result.bytes += entry.times * entry.collective->bytes;
      result.most = std::max(result.most, entry.collective->bytes);
    }
    return result;
  };
  for (const std::string shard : {"none", "optimizer", "gradients"}) {
    for (const std::string passes : {"1", "3"}) {
      SCOPED_TRACE(concat(shard, ", ", passes));
      const Traced wide = traced(shard, "fp32", passes), narrow = traced(shard, "bf16", passes);
      EXPECT_GT(wide.sums, 4);
      EXPECT_EQ(narrow.sums, wide.sums);
      EXPECT_EQ(2 * narrow.bytes, wide.bytes);
      EXPECT_EQ(wide.conversions, 0);
      EXPECT_EQ(narrow.conversions, 2 * narrow.sums);
      EXPECT_EQ(narrow.persistent_bytes - wide.persistent_bytes, narrow.most);
    }
  }
  const auto alone = [](const std::string& type) {
    return trace_step(resolve(small_recipe({"run.gradient_reduction=" + type})), probe_cpu(1));
  };
  EXPECT_TRUE(alone("bf16").trace.entries == alone("fp32").trace.entries) << "one rank sends nothing";
  EXPECT_EQ(alone("bf16").bytes(), alone("fp32").bytes());
}

class TrainStepOf : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static std::vector<std::string> with(std::vector<std::string> more) {
    more.insert(more.begin(), GetParam().begin(), GetParam().end());
    return more;
  }
};

// Also of several passes, of which the trace has two.
TEST_P(TrainStepOf, TraceIsTheLogOfARealStep) {
  for (const char* passes : {"batch.accumulate=1", "batch.accumulate=2", "batch.accumulate=4"}) {
    SCOPED_TRACE(passes);
    SmallRun run(small_recipe(with({passes})));
    const StepTrace traced = trace_step(run.resolved, run.context.device());
    const std::vector<TraceEntry> expected = every_launch(traced.trace);
    Trace log;
    log_of(run.context.queue()) = &log;
    run.advance();
    ASSERT_GT(log.entries.size(), 50u);
    ASSERT_EQ(expected.size(), log.entries.size());
    ASSERT_EQ(traced.trace.launches(), std::ssize(log.entries));
    for (std::size_t i = 0; i < log.entries.size(); ++i) {
      EXPECT_TRUE(expected[i] == log.entries[i]) << "launch " << i << ": " << expected[i].operation << " in " << expected[i].layer
                                                 << " traced, " << log.entries[i].operation << " in " << log.entries[i].layer << " run";
    }
  }
}

// Neither the trace of a step nor its memory grows with its passes; its work does.
TEST_P(TrainStepOf, PassesAreTracedTwiceAtMost) {
  const auto traced = [&](const char* passes) { return trace_step(resolve(small_recipe(with({passes}))), probe_cpu(2)); };
  const StepTrace one = traced("batch.accumulate=1"), two = traced("batch.accumulate=2"), most = traced("batch.accumulate=65536");
  EXPECT_LT(two.trace.entries.size(), 2 * one.trace.entries.size() + 10);
  EXPECT_EQ(most.trace.entries.size(), two.trace.entries.size());
  EXPECT_EQ(two.matrix_flops(), 2 * one.matrix_flops());
  EXPECT_EQ(most.matrix_flops(), 65536 * one.matrix_flops());
  EXPECT_EQ(most.persistent_bytes, one.persistent_bytes);
  EXPECT_EQ(most.bytes(), two.bytes());
  EXPECT_EQ(most.trace.launches() - two.trace.launches(), 65534 * (two.trace.launches() - one.trace.launches()));
}

// And the step runs in that memory, in which all passes take turns.
TEST_P(TrainStepOf, PassesTakeTurnsInTheMemoryOfOne) {
  SmallRun heap(small_recipe(with({"batch.accumulate=5"}))), arena(small_recipe(with({"batch.accumulate=5"}))),
      one(small_recipe(GetParam()));
  arena.step.use_step_memory(trace_step(arena.resolved, arena.context.device()));
  EXPECT_EQ(arena.context.persistent_bytes(), one.context.persistent_bytes());
  EXPECT_EQ(heap.losses(3), arena.losses(3));
  EXPECT_EQ(heap.weights(), arena.weights());
}

// Dropout draws anew in each pass, as if all were one: of two passes over one batch the second has masks of its own.
TEST_P(TrainStepOf, EveryPassDrawsItsOwnDropout) {
  SmallRun once(small_recipe(GetParam())), twice(small_recipe(with({"batch.accumulate=2"})));
  const Batch batch = *once.stream.next();
  const double first = once.step.run(std::vector<Batch>{batch}, 1, Update::no).loss;
  const double mean = twice.step.run(std::vector<Batch>{batch, batch}, 1, Update::no).loss;
  EXPECT_GT(std::abs(mean / first - 1.0), 1e-5);
  const std::vector<std::string> still = {"model.dropout=0", "model.attention_dropout=0"};
  SmallRun dry(small_recipe(with(still))), dry_twice(small_recipe(with({still[0], still[1], "batch.accumulate=2"})));
  EXPECT_NEAR(dry_twice.step.run(std::vector<Batch>{batch, batch}, 1, Update::no).loss,
              dry.step.run(std::vector<Batch>{batch}, 1, Update::no).loss, 1e-6);
}

TEST_P(TrainStepOf, EstimateIsTheAllocation) {
  SmallRun run(small_recipe(GetParam()));
  const StepTrace traced = trace_step(run.resolved, run.context.device());
  EXPECT_EQ(traced.persistent_bytes, run.context.persistent_bytes());
  run.step.use_step_memory(traced);
  for (int i = 0; i < 3; ++i) {  // an allocation that differs from the traced one throws
    run.advance();
    run.step.validate(run.corpus.validation(batch_shape(run.resolved)));
  }
  EXPECT_GT(traced.validation.bytes, 0);
  EXPECT_LT(traced.validation.bytes, traced.first_pass.bytes);
  EXPECT_EQ(traced.bytes(), traced.persistent_bytes + traced.first_pass.bytes);
}

TEST_P(TrainStepOf, StepMemoryChangesNoBit) {
  SmallRun heap(small_recipe(GetParam())), arena(small_recipe(GetParam()));
  arena.step.use_step_memory(trace_step(arena.resolved, arena.context.device()));
  EXPECT_EQ(heap.losses(3), arena.losses(3));
  EXPECT_EQ(heap.step.validate(heap.corpus.validation(batch_shape(heap.resolved))),
            arena.step.validate(arena.corpus.validation(batch_shape(arena.resolved))));
  EXPECT_EQ(heap.losses(2), arena.losses(2));
  EXPECT_EQ(heap.weights(), arena.weights());
}

TEST_P(TrainStepOf, ThreadsChangeNoBit) {
  SmallRun one(small_recipe(GetParam()), 1), three(small_recipe(GetParam()), 3);
  EXPECT_EQ(one.losses(5), three.losses(5));
  EXPECT_EQ(one.weights(), three.weights());
}

TEST_P(TrainStepOf, SeedsDecideEverything) {
  SmallRun a(small_recipe(GetParam())), b(small_recipe(GetParam())), other(small_recipe(with({"run.seed=2"})));
  const std::vector<double> losses = a.losses(4);
  EXPECT_EQ(losses, b.losses(4));
  EXPECT_NE(losses, other.losses(4));
}

TEST_P(TrainStepOf, PaddingAndPitchAreInvisible) {
  SmallRun plain(small_recipe(GetParam()));
  SmallRun padded(small_recipe(with({"guidelines.pad_vocabulary_to=64"})));
  SmallRun packed(small_recipe(with({"guidelines.row_pitch=packed"})));
  const std::vector<double> losses = plain.losses(5);
  EXPECT_EQ(padded.resolved.shapes.vocabulary_padded, 64);
  EXPECT_EQ(losses, padded.losses(5));
  EXPECT_EQ(losses, packed.losses(5));
  const std::vector<double> weights = plain.weights();
  EXPECT_EQ(weights, padded.weights());
  EXPECT_EQ(weights, packed.weights());
  for (const Parameter& parameter : padded.step.model().parameters().all()) {
    const std::vector<double> stored = read_elements(padded.context, parameter.master);
    const auto logical = static_cast<std::ptrdiff_t>(parameter.shape().elements());
    EXPECT_TRUE(std::all_of(stored.begin() + logical, stored.end(), [](double value) { return value == 0.0; })) << parameter.spec.name;
  }
}

// The hidden activation lies the other way round in five of a feed-forward layer's six GEMMs, and the sums are the same.
TEST_P(TrainStepOf, FeatureMajorHiddenActivationsAreInvisible) {
  for (const char* pitch : {"guidelines.row_pitch=aligned", "guidelines.row_pitch=packed"}) {
    SmallRun tokens(small_recipe(with({pitch, "run.precision=fp64"})));
    SmallRun features(small_recipe(with({pitch, "run.precision=fp64", "guidelines.ffn_hidden_layout=feature_major"})));
    const StepTrace trace = trace_step(features.resolved, features.context.device());
    features.step.use_step_memory(trace);
    for (int i = 0; i < 5; ++i) {
      const StepReport expected = tokens.advance(), report = features.advance();
      EXPECT_NEAR(report.loss, expected.loss, 1e-12 * expected.loss);
      EXPECT_NEAR(report.gradient_norm, expected.gradient_norm, 1e-11 * expected.gradient_norm);
    }
    std::int64_t turned = 0;
    for (const TraceEntry& entry : trace.trace.entries) {
      if (!entry.gemm || entry.layer.find(".ffn.") == std::string::npos) continue;
      const GemmProblem& gemm = *entry.gemm;
      const std::int64_t features_a_token = features.resolved.recipe.model.d_ff;
      const bool hidden_is_d = gemm.role != GemmRole::wgrad && gemm.m == features_a_token;
      EXPECT_EQ(gemm.d_major, hidden_is_d ? Major::n : Major::m) << entry.layer;
      turned += hidden_is_d ? 1 : 0;
    }
    const ModelConfig& model = features.resolved.recipe.model;
    EXPECT_EQ(turned, 2 * (model.encoder_layers + model.decoder_layers));
  }
}

// The gradients of a step whose rows are computed in any number of passes, or with padding rows among them, are the same up to rounding.
TEST_P(TrainStepOf, PassesAndGhostsAreInvisible) {
  const std::vector<std::string> still = {"model.dropout=0", "model.attention_dropout=0", "run.precision=fp64"};
  const auto gradients = [](SmallRun& run, const std::vector<Batch>& batches) {
    const StepReport report = run.step.run(batches, 1, Update::no);
    std::vector<double> all = {report.loss};
    for (const Parameter& parameter : run.step.model().parameters().all()) {
      const std::vector<double> own = read_elements(run.context, parameter.logical_gradient());
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  };
  const auto expect_near = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    double difference = 0.0, norm = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference = std::hypot(difference, a[i] - b[i]);
      norm = std::hypot(norm, b[i]);
    }
    EXPECT_GT(norm, 1.0);
    EXPECT_LT(difference, 1e-12 * norm);
  };

  SmallRun whole(small_recipe(with(still)));
  const Batch batch = *whole.stream.next();
  const std::vector<double> expected = gradients(whole, {batch});

  // The same sequences in more rows: the others are padding rows.
  const BatchShape shape = batch_shape(whole.resolved);
  SmallRun wide(small_recipe(with({still[0], still[1], still[2], "batch.target_tokens=77"})));
  const auto repack = [&](const BatchShape& into, std::size_t first, std::size_t count) {
    Packer packer(into);
    std::size_t source = 0, target = 0;
    for (std::size_t s = 0; s < first + count; ++s) {
      const auto source_length = batch.source_lengths.empty() ? std::size_t{0} : static_cast<std::size_t>(batch.source_lengths[s]);
      const auto target_length = static_cast<std::size_t>(batch.target_lengths[s]);
      if (s >= first) {
        EXPECT_TRUE(packer.add({.source = std::span(batch.source_ids).subspan(source, source_length),
                                .target_in = std::span(batch.target_in).subspan(target, target_length),
                                .target_out = std::span(batch.target_out).subspan(target, target_length)}));
      }
      source += source_length;
      target += target_length;
    }
    return std::move(packer).take();
  };
  const std::size_t sequences = batch.target_lengths.size();
  ASSERT_GE(sequences, 2u);
  BatchShape wider = shape;
  wider.target_rows = 77;
  expect_near(gradients(wide, {repack(wider, 0, sequences)}), expected);

  // Two passes of unequal size, normalised by the tokens of both.
  SmallRun twice(small_recipe(with({still[0], still[1], still[2], "batch.accumulate=2"})));
  expect_near(gradients(twice, {repack(shape, 0, 1), repack(shape, 1, sequences - 1)}), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, TrainStepOf,
                         testing::Values(std::vector<std::string>{}, kDecoderOnly,
                                         std::vector<std::string>{"model.norm=post", "model.tied=false", "model.activation=gelu_erf"}));

TEST(TrainStep, ALossFalls) {
  SmallRun run(small_recipe({"optimizer.learning_rate=3e-3", "model.dropout=0", "model.attention_dropout=0"}));
  const std::vector<double> losses = run.losses(150);
  EXPECT_LT(losses.back(), 0.8 * losses.front());
}

TEST(TrainStep, ValidationStopsWhereItIsAskedTo) {
  SmallRun run(small_recipe());
  run.advance();
  const auto stream = [&] { return run.corpus.validation(batch_shape(run.resolved)); };
  int asked = 0;
  EXPECT_FALSE(run.step.validate(stream(), [&] { return ++asked == 1; }));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(run.step.validate(stream(), [] { return false; })->loss, run.step.validate(stream()));
}

TEST(TrainStep, ValidationLeavesNoTrace) {
  SmallRun run(small_recipe()), beside(small_recipe());
  run.losses(2);
  beside.losses(2);
  const double loss = run.step.validate(run.corpus.validation(batch_shape(run.resolved)));
  EXPECT_GT(loss, 0.0);
  EXPECT_EQ(run.losses(2), beside.losses(2));
}

TEST(TrainStep, ANonFiniteWeightStopsEveryUpdate) {
  SmallRun run(small_recipe());
  const Parameter& poisoned = *run.step.model().parameters().find("decoder.1.ffn.up.weight");
  write_elements(run.context, poisoned.master.slice_rows(3, 1).columns(5, 1), std::vector<double>{NAN});
  const std::vector<double> before = run.weights();
  EXPECT_FALSE(run.advance().finite);
  const std::vector<double> after = run.weights();
  std::size_t changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i] && !std::isnan(before[i]) ? 1 : 0;
  EXPECT_EQ(changed, 0u);
  EXPECT_FALSE(run.advance().finite) << "the flag holds until the host clears it";
}

TEST(StepTrace, FlopsThatNobodyCanCountAreRefused) {
  for (const char* tokens : {"batch.target_tokens=16777216", "batch.target_tokens=4194304"}) {  // of one product, of their sum
    const Recipe recipe = small_recipe(
        {"data.kind=synthetic", "data.tokenizer=bytes", "model.vocabulary=16777216", "model.d_model=32768", "model.heads=1", tokens});
    EXPECT_THROW(trace_step(resolve(recipe), probe_cpu(2)), InputError) << tokens;
  }
}

}  // namespace
}  // namespace tilewave
