// The blocks of today's models in a whole Transformer: which parameters it has, that decoding with a cache says what the whole model says,
// and that it learns.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

#include "models/decoding/decode_launches.h"
#include "tests/models/whole_model.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

using Overrides = std::vector<std::string>;

// Everything at once, as no model of today has it, and what each of them has.
const std::vector<Overrides> kBlocks = {
    {"model.norm_kind=rms_norm", "model.biases=none", "model.activation=swiglu", "model.positions=rope", "model.heads=4",
     "model.kv_heads=2", "model.head_size=6", "model.query_key_norm=true", "model.attention_scale=0.3", "model.epsilon=1e-3"},
    {"model.positions=rope", "model.kv_heads=1", "model.rope_base=10"},
    {"model.positions=rope", "model.rope_scaling=llama3", "model.rope_original_positions=6", "model.rope_base=30", "model.biases=qkv"},
    {"model.activation=silu", "model.norm=post", "model.norm_kind=rms_norm"},
};

Overrides blocks_in_fp64(const Overrides& blocks) {
  Overrides all = blocks;
  all.emplace_back("run.precision=fp64");
  return all;
}

std::set<std::string> parameter_names(const Recipe& recipe) {
  SmallRun run(recipe);
  std::set<std::string> names;
  for (const Parameter& parameter : run.step.model().parameters().all()) names.insert(parameter.spec.name);
  return names;
}

Overrides decoder_only_with(const Overrides& more) {
  Overrides all = kDecoderOnly;
  all.insert(all.end(), more.begin(), more.end());
  all.emplace_back("model.decoder_layers=1");
  return all;
}

TEST(Blocks, BiasesAreThoseThatTheRecipeAsksFor) {
  const auto biases_of = [](const Overrides& overrides) {
    std::set<std::string> biases;
    for (const std::string& name : parameter_names(small_recipe(decoder_only_with(overrides)))) {
      if (name.ends_with(".bias")) biases.insert(name);
    }
    return biases;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(biases_of({}),
            (Names{"decoder.0.ffn.down.bias", "decoder.0.ffn.norm.bias", "decoder.0.ffn.up.bias", "decoder.0.self_attention.norm.bias",
                   "decoder.0.self_attention.out.bias", "decoder.0.self_attention.qkv.bias", "decoder.norm.bias"}));
  EXPECT_EQ(biases_of({"model.biases=none"}), Names());
  EXPECT_EQ(biases_of({"model.biases=qkv"}), (Names{"decoder.0.self_attention.qkv.bias"}));
  EXPECT_EQ(biases_of({"model.norm_kind=rms_norm"}), (Names{"decoder.0.ffn.down.bias", "decoder.0.ffn.up.bias",
                                                            "decoder.0.self_attention.out.bias", "decoder.0.self_attention.qkv.bias"}));
}

TEST(Blocks, RotaryPositionsHaveNoTableToTrain) {
  const std::set<std::string> names = parameter_names(small_recipe(decoder_only_with({"model.positions=rope"})));
  EXPECT_FALSE(names.contains("embedding.position.weight"));
  EXPECT_TRUE(names.contains("embedding.token.weight"));
}

TEST(Blocks, MatricesHaveTheRowsOfTheirHeads) {
  SmallRun run(small_recipe(decoder_only_with(kBlocks.front())));
  const auto shape = [&](const char* name) { return run.step.model().parameters().find(name)->shape(); };
  EXPECT_EQ(shape("decoder.0.self_attention.qkv.weight"), (Shape{(4 + 2 * 2) * 6, 32}));
  EXPECT_EQ(shape("decoder.0.self_attention.out.weight"), (Shape{32, 4 * 6}));
  EXPECT_EQ(shape("decoder.0.self_attention.key_norm.weight"), (Shape{1, 6}));
  EXPECT_EQ(shape("decoder.0.ffn.up.weight"), (Shape{2 * 48, 32}));
}

// Logits of every position of a text, alone in its batch.
std::vector<std::vector<double>> text_logits(SmallRun& run, const std::vector<std::int32_t>& text) {
  const NoGradient scope(run.context);
  const auto rows = static_cast<std::int64_t>(text.size());
  const BatchShape shape{.source_rows = 0, .target_rows = rows, .sequence = rows};
  Packer packer(shape);
  EXPECT_TRUE(packer.add({.source = {}, .target_in = text, .target_out = text}));
  const BatchTensors tensors = make_batch_tensors(run.context, shape);
  upload(run.context, std::move(packer).take(), tensors);
  const Tensor logits = run.step.model().logits(tensors, rows, {}).value();
  std::vector<std::vector<double>> all;
  for (std::int64_t row = 0; row < rows; ++row) all.push_back(read_elements(run.context, logits.slice_rows(row, 1)));
  return all;
}

void expect_logits(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  double most = 0.0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-11);
    most = std::max(most, std::abs(expected[i]));
  }
  EXPECT_GT(most, 0.01);
}

class CachedBlocks : public testing::TestWithParam<int> {
 protected:
  const Overrides& blocks() const { return kBlocks[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(CachedBlocks, ATextReadInPiecesSaysWhatItSaysWhole) {
  Overrides all = kDecoderOnly;
  all.insert(all.end(), {"model.positions=sinusoidal"});
  for (const std::string& one : blocks_in_fp64(blocks())) all.push_back(one);
  SmallRun run(small_recipe(all));
  const std::vector<std::int32_t> text = {7, 33, 5, 41, 60, 12, 12, 9, 50, 4};
  const std::vector<std::vector<double>> whole = text_logits(run, text);
  const NoGradient scope(run.context);
  CachedText cached(run.step.model(), 12);
  std::size_t read = 0;
  for (const std::size_t piece : {4, 1, 3, 1, 1}) {
    const std::span<const std::int32_t> tokens(text.data() + read, piece);
    read += piece;
    expect_logits(read_elements(run.context, cached.logits(tokens)), whole[read - 1]);
  }
  cached.forget();
  expect_logits(read_elements(run.context, cached.logits(std::span(text).first(2))), whole[1]);
}

TEST_P(CachedBlocks, TargetsOfSeveralSourcesSayWhatEachSaysAlone) {
  SmallRun run(small_recipe(blocks_in_fp64(blocks())));
  const std::vector<std::vector<std::int32_t>> sources = {{9, 14, 33}, {21, 8, 40, 40, 7}}, targets = {{5, 6, 7}, {50, 9, 12}};
  std::vector<std::vector<std::vector<double>>> whole;
  for (std::size_t s = 0; s < 2; ++s) whole.push_back(whole_logits(run, sources[s], targets[s]));
  const NoGradient scope(run.context);
  std::vector<DecodedSource> group;
  for (const std::vector<std::int32_t>& source : sources) group.push_back({.rows = std::ssize(source), .ids = source, .pixels = {}});
  SourceGroup launches(run.step.model(), group, {.capacity = 6});
  for (std::int64_t position = 0; position < 4; ++position) {
    std::vector<std::int32_t> last;
    for (const auto& target : targets) last.push_back(position == 0 ? kBeginId : target[static_cast<std::size_t>(position - 1)]);
    const Tensor logits = launches.logits(last, position);
    for (std::size_t s = 0; s < 2; ++s) {
      const Tensor row = logits.slice_rows(static_cast<std::int64_t>(s), 1).columns(0, run.resolved.shapes.vocabulary);
      expect_logits(read_elements(run.context, row), whole[s][static_cast<std::size_t>(position)]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, CachedBlocks, testing::Range(0, 4));

TEST(Blocks, ThreadsDoNotChangeBits) {
  const Recipe recipe = small_recipe(kBlocks.front());
  SmallRun one(recipe, 1), three(recipe, 3);
  EXPECT_EQ(one.losses(3), three.losses(3));
  EXPECT_EQ(one.weights(), three.weights());
}

TEST(Blocks, LlamaTinyLearns) {
  const Recipe recipe = read_recipe(test_environment().data / ".." / "recipes" / "llama_tiny.toml");
  SmallRun run(recipe);
  const std::vector<double> losses = run.losses(40);
  EXPECT_LT(losses.back(), losses.front() - 0.5);
}

}  // namespace
}  // namespace tilewave
