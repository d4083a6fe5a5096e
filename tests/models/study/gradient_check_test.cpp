// The check of a recipe: every variant of the tiny model passes, every operation's plant is found, names are known or listed, and
// what is made smaller is said.
#include "models/study/gradient_check.h"

#include <gtest/gtest.h>
#include <set>

#include "kernels/core/error.h"
#include "tests/kernels/gpu.h"
#include "tests/sanitized.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

Recipe recipe_of(const std::string& name, const std::vector<std::string>& overrides) {
  return read_recipe(test_environment().data / ".." / "recipes" / (name + ".toml"), overrides);
}

Recipe tiny(std::vector<std::string> overrides = {}) {
  const std::vector<std::string> narrow = {"model.d_model=12", "model.d_ff=20", "model.vocabulary=17", "data.kind=\"synthetic\""};
  overrides.insert(overrides.begin(), narrow.begin(), narrow.end());
  return recipe_of("tiny", overrides);
}

std::vector<std::string> decoder_only() {
  return {"model.architecture=\"decoder_only\"", "model.encoder_layers=0", "batch.source_tokens=0"};
}

Recipe seeing(std::vector<std::string> overrides = {}) {
  const std::vector<std::string> narrow = {"model.d_model=12", "model.d_ff=20", "model.heads=2", "model.encoder_layers=1"};
  overrides.insert(overrides.begin(), narrow.begin(), narrow.end());
  return recipe_of("vision_tiny", overrides);
}

void expect_passes(const Recipe& recipe, const GradientCheckOptions& options = {}) {
  const GradientCheckPlan plan = plan_gradient_check(recipe);
  std::set<std::string> layers;
  const GradientCheckReport report = check_gradients(plan, options);
  for (const GradientCheckRow& row : report.rows) {
    EXPECT_TRUE(row.passed) << row.layer << ' ' << row.tensor << " is off by " << row.error;
    EXPECT_GT(row.norm, 0.0) << row.layer << ' ' << row.tensor;
    EXPECT_GT(row.probes, 0);
    layers.insert(row.layer);
  }
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(layers, std::set<std::string>(plan.layers.begin(), plan.layers.end()));
}

class GradientCheckVariant : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(GradientCheckVariant, Passes) { expect_passes(tiny(GetParam())); }

class GpuGradientCheck : public testing_support::GpuTest, public testing::WithParamInterface<std::vector<std::string>> {
 protected:
  GradientCheckOptions here(const std::string& layer = "", const std::string& plant = "") const {
    return {.layer = layer, .plant = plant, .queue = queue_, .device = device_};
  }
};

TEST_P(GpuGradientCheck, Passes) { expect_passes(tiny(GetParam()), here()); }

TEST_P(GpuGradientCheck, FindsEveryPlant) {
  const GradientCheckPlan plan = plan_gradient_check(tiny(GetParam()));
  for (const std::string& layer : plan.layers) {
    if (layer == "model") continue;  // made of the others
    for (const std::string& operation : checked_operations(plan, here(layer))) {
      EXPECT_FALSE(check_gradients(plan, here(layer, operation)).passed()) << operation << " in " << layer;
    }
  }
}

std::vector<std::string> with(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

auto variants() {
  return testing::Values(
      std::vector<std::string>{}, std::vector<std::string>{"model.norm=\"post\"", "model.activation=\"gelu_erf\"", "model.tied=false"},
      std::vector<std::string>{"model.dropout=0.2", "model.attention_dropout=0.3", "optimizer.label_smoothing=0.1"},
      std::vector<std::string>{"model.norm=\"post\"", "model.dropout=0.2", "model.positions=\"learned\"", "model.activation=\"gelu_tanh\""},
      std::vector<std::string>{"guidelines.pad_vocabulary_to=8", "guidelines.row_pitch=\"packed\"", "model.positions=\"learned\""},
      with(decoder_only(), {"model.activation=\"gelu_tanh\"", "model.positions=\"learned\""}),
      with(decoder_only(), {"model.norm=\"post\"", "model.tied=false", "model.attention_dropout=0.3", "guidelines.pad_vocabulary_to=8"}),
      std::vector<std::string>{"model.norm_kind=\"rms_norm\"", "model.biases=\"none\"", "model.activation=\"silu\"", "model.epsilon=1e-3"},
      std::vector<std::string>{"model.activation=\"sigmoid\""},
      with(decoder_only(), {"model.activation=\"tanh\"", "guidelines.ffn_hidden_layout=\"feature_major\""}),
      std::vector<std::string>{"model.biases=\"qkv\"", "model.positions=\"rope\"", "model.kv_heads=1", "model.query_key_norm=true",
                               "model.norm=\"post\"", "model.dropout=0.2"},
      with(decoder_only(), {"model.norm_kind=\"rms_norm\"", "model.biases=\"none\"", "model.activation=\"swiglu\"",
                            "model.positions=\"rope\"", "model.rope_base=50", "model.heads=4", "model.kv_heads=2", "model.head_size=4",
                            "model.attention_scale=0.4", "model.query_key_norm=true"}),
      with(decoder_only(), {"model.activation=\"swiglu\"", "model.positions=\"rope\"", "model.rope_scaling=\"llama3\"",
                            "model.rope_original_positions=8", "guidelines.ffn_hidden_layout=\"feature_major\""}));
}
INSTANTIATE_TEST_SUITE_P(Tiny, GradientCheckVariant, variants());

std::vector<std::vector<std::string>> stems() {
  return {{"model.dropout=0.2", "data.channels=3"},
          {"model.stem=convolution", "model.patch=4", "model.norm=post", "model.activation=relu"},
          {"model.stem=convolution", "model.patch=2", "model.stem_norm=layer_norm", "model.norm_kind=rms_norm", "model.biases=none"},
          {"model.stem=convolution", "model.patch=4", "model.stem_pool=true", "data.channels=3", "optimizer.label_smoothing=0.1"}};
}

TEST(GradientCheck, OfModelsThatWriteWhatTheySee) {
  const std::vector<std::string> narrow = {"model.d_model=12", "model.d_ff=20", "model.heads=2", "model.encoder_layers=1"};
  for (const char* patch : {"model.patch=7", "model.patch=4"}) {
    std::vector<std::string> overrides = with(narrow, {patch, "model.dropout=0.2"});
    if (std::string(patch) == "model.patch=4") overrides.emplace_back("model.stem=convolution");
    const Recipe recipe = recipe_of("caption_tiny", overrides);
    expect_passes(recipe);
    EXPECT_EQ(plan_gradient_check(recipe).layers.front(), "stem");
  }
}

// Each stem: the gradients of every layer, and that a wrong term in any operation's backward pass is found.
TEST(GradientCheck, OfModelsThatSee) {
  std::set<std::string> planted;
  const std::vector<std::vector<std::string>> all = stems();
  for (const std::vector<std::string>& overrides : all) {
    if (kSanitized && &overrides != &all.back()) continue;  // which has every operation that is named below
    SCOPED_TRACE(testing::PrintToString(overrides));
    expect_passes(seeing(overrides));
    const GradientCheckPlan plan = plan_gradient_check(seeing(overrides));
    EXPECT_EQ(plan.layers.front(), "stem");
    for (const char* layer : {"stem", "self_attention", "head"}) {
      for (const std::string& operation : checked_operations(plan, {.layer = layer})) {
        EXPECT_FALSE(check_gradients(plan, {.layer = layer, .plant = operation}).passed()) << operation << " in " << layer;
        planted.insert(operation);
      }
    }
  }
  for (const char* operation : {"convolution", "batch_norm", "layer_norm", "max_pool", "average_pool"}) {
    EXPECT_TRUE(planted.contains(operation)) << operation;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuGradientCheck, variants());

// One key a query: its probability is 1 whatever query and key are, whose gradients are zero.
TEST(GradientCheck, OfSingleTokens) {
  EXPECT_TRUE(check_gradients(plan_gradient_check(tiny({"batch.sequence=1", "model.max_positions=1"})), {}).passed());
}

TEST(GradientCheck, OfAnyPrecisionIsInDoublePrecision) {
  const GradientCheckPlan plan = plan_gradient_check(tiny({"run.precision=\"bf16\""}));
  const GradientCheckReport report = check_gradients(plan, {.layer = "ffn"});
  EXPECT_TRUE(report.passed());
  for (const GradientCheckRow& row : report.rows) EXPECT_LT(row.error, 1e-6);
}

TEST(GradientCheck, FindsEveryPlant) {
  std::set<std::string> planted;
  const std::vector<std::string> blocks_of_today = with(
      decoder_only(), {"model.norm_kind=\"rms_norm\"", "model.biases=\"none\"", "model.activation=\"swiglu\"", "model.positions=\"rope\"",
                       "model.heads=4", "model.kv_heads=2", "model.head_size=4", "model.query_key_norm=true"});
  for (const std::vector<std::string>& overrides : {std::vector<std::string>{"model.dropout=0.2"}, decoder_only(), blocks_of_today}) {
    const GradientCheckPlan plan = plan_gradient_check(tiny(overrides));
    for (const std::string& layer : plan.layers) {
      if (layer == "model") continue;  // made of the others
      for (const std::string& operation : checked_operations(plan, {.layer = layer})) {
        EXPECT_FALSE(check_gradients(plan, {.layer = layer, .plant = operation}).passed()) << operation << " in " << layer;
        planted.insert(operation);
      }
    }
    for (const std::string& operation : checked_operations(plan, {})) EXPECT_EQ(planted.count(operation), 1U) << operation;
  }
  EXPECT_GE(planted.size(), 11U);
  for (const char* operation : {"rms_norm", "rope", "query_key_norm", "self_attention", "feed_forward"}) {
    EXPECT_TRUE(planted.contains(operation)) << operation;
  }
}

TEST(GradientCheck, FindsAPlantInTheModel) {
  const GradientCheckPlan plan = plan_gradient_check(tiny());
  const GradientCheckReport report = check_gradients(plan, {.layer = "model", .plant = "layer_norm"});
  EXPECT_FALSE(report.passed());
}

TEST(GradientCheck, ListsTheOperationsThereAre) {
  const GradientCheckPlan plan = plan_gradient_check(tiny());
  try {
    check_gradients(plan, {.layer = "ffn", .plant = "nobody"});
    FAIL() << "an unknown operation was planted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("--plant nobody"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("it has feed_forward, layer_norm."), std::string::npos) << error.what();
  }
}

TEST(GradientCheck, KnowsItsLayers) {
  const GradientCheckPlan plan = plan_gradient_check(tiny());
  const GradientCheckReport report = check_gradients(plan, {.layer = "cross_attention"});
  std::vector<std::string> tensors;
  for (const GradientCheckRow& row : report.rows) {
    EXPECT_EQ(row.layer, "cross_attention");
    tensors.push_back(row.tensor);
  }
  EXPECT_EQ(tensors, (std::vector<std::string>{"norm.weight", "norm.bias", "q.weight", "q.bias", "kv.weight", "kv.bias", "out.weight",
                                               "out.bias", "x", "memory"}));
  try {
    check_gradients(plan, {.layer = "crossattention"});
    FAIL() << "an unknown layer was checked";
  } catch (const InputError& error) {
    for (const std::string& layer : plan.layers) EXPECT_NE(std::string(error.what()).find(layer), std::string::npos) << error.what();
  }
}

TEST(GradientCheck, DependsOnTheSeedAlone) {
  const GradientCheckPlan plan = plan_gradient_check(tiny({"model.dropout=0.2"}));
  const auto norms = [&](const GradientCheckOptions& options) {
    std::vector<double> all;
    for (const GradientCheckRow& row : check_gradients(plan, options).rows) all.push_back(row.norm);
    return all;
  };
  const std::vector<double> one = norms({.layer = "ffn", .seed = 1});
  EXPECT_EQ(norms({.layer = "ffn", .seed = 1}), one);
  EXPECT_NE(norms({.layer = "ffn", .seed = 2}), one);
}

TEST(GradientCheck, SaysWhatItMakesSmaller) {
  EXPECT_TRUE(plan_gradient_check(tiny()).reductions.empty());
  const GradientCheckPlan plan = plan_gradient_check(
      tiny({"model.d_model=1024", "model.d_ff=4096", "model.heads=16", "model.encoder_layers=6", "model.decoder_layers=6",
            "model.vocabulary=33708", "guidelines.pad_vocabulary_to=8", "model.max_positions=256"}));
  const std::vector<Reduction> expected = {
      {"model.heads", 16, 4},         {"model.d_model", 1024, 128},     {"model.d_ff", 4096, 512},       {"model.encoder_layers", 6, 2},
      {"model.decoder_layers", 6, 2}, {"model.vocabulary", 33708, 505}, {"model.max_positions", 256, 64}};
  EXPECT_EQ(plan.reductions, expected);
  EXPECT_EQ(plan.resolved.recipe.model.d_model, 128);
  EXPECT_EQ(plan.resolved.shapes.vocabulary, 505);
  EXPECT_EQ(plan.resolved.shapes.vocabulary_padded, 512);
  const std::vector<Reduction> of_pictures = {{"model.d_ff", 1024, 512}, {"model.encoder_layers", 9, 4}, {"data.picture_size", 28, 14}};
  EXPECT_EQ(plan_gradient_check(seeing({"model.d_ff=1024", "model.encoder_layers=9"})).reductions, of_pictures);
}

TEST(GradientCheck, HasGhostRowsAndUnevenSequences) {
  const GradientCheckPlan plan = plan_gradient_check(tiny());
  std::int64_t tokens = 0;
  for (const std::int64_t length : plan.target_lengths) tokens += length;
  EXPECT_GT(plan.resolved.shapes.target_rows, tokens);
  EXPECT_NE(plan.target_lengths[0], plan.target_lengths[1]);
  EXPECT_NE(plan.source_lengths, plan.target_lengths);
}

}  // namespace
}  // namespace tilewave
