// Llama, Qwen2 and Qwen3 of transformers (tests/fixtures/make_llama.py): their logits within 1e-5 in fp32, configurations in and out, and
// runs that go back bit for bit.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/io/checkpoint.h"
#include "framework/io/safetensors_writer.h"
#include "models/exchange/llama_config.h"
#include "models/exchange/model_export.h"
#include "models/transformer/weight_files.h"
#include "tests/models/exchange/exchanged.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

fs::path llama_fixture(const std::string& name) { return test_environment().data / "fixtures" / "llama" / name; }

Recipe llama_recipe(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Recipe recipe = import_config(llama_fixture(name)).recipe;
  recipe.data.kind = DataKind::synthetic;
  std::vector<Section> sections = sections_of(recipe);
  for (const std::string& one : overrides) set_key(one, sections);
  return recipe;
}

std::vector<double> llama_logits(const std::string& name, const fs::path& weights, const std::vector<std::string>& overrides = {}) {
  return logits_of(llama_recipe(name, overrides), weights, exchanged("batch.safetensors"));
}

class LlamaModel : public testing::TestWithParam<std::string> {
 protected:
  // A run's folder as far as an export looks at it.
  void make_run(const Recipe& recipe, const fs::path& weights) {
    ExchangedModel model(recipe);
    model.load(weights);
    write_text(run_ / "recipe.toml", to_toml(recipe));
    save_checkpoint(run_, {.step = 3, .weights = weight_contents(model.step.model().parameters()), .optimizer = {}, .state = "{}"}, 1);
  }
  static std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<std::byte>>> tensors_of(const fs::path& path) {
    std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<std::byte>>> tensors;
    const SafetensorsReader reader(path);
    for (const StoredTensor& tensor : reader.tensors()) {
      auto& [shape, bytes] = tensors[tensor.name];
      shape = tensor.shape;
      bytes.resize(static_cast<std::size_t>(tensor.bytes));
      reader.read(tensor, bytes);
    }
    return tensors;
  }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run", out_ = folder_.path() / "out";
};

TEST_P(LlamaModel, SaysWhatTransformersSays) {
  const std::vector<double> expected = stored_doubles(llama_fixture(GetParam() + "_expected.safetensors"), "logits");
  EXPECT_LT(largest_difference(llama_logits(GetParam(), llama_fixture(GetParam())), expected), 1e-5);
  EXPECT_LT(largest_difference(llama_logits(GetParam(), llama_fixture(GetParam()), {"run.precision=fp64"}), expected), 1e-5);
  // Each block's numbers are seen.
  for (const char* other : {"model.rope_base=77", "model.epsilon=0.1", "model.attention_scale=0.3"})
    EXPECT_GT(largest_difference(llama_logits(GetParam(), llama_fixture(GetParam()), {other}), expected), 1e-5) << other;
}

TEST_P(LlamaModel, GoesBackBitForBit) {
  const Recipe recipe = llama_recipe(GetParam());
  make_run(recipe, llama_fixture(GetParam()));
  export_model(run_, out_);
  EXPECT_EQ(tensors_of(out_ / "model.safetensors"), tensors_of(llama_fixture(GetParam()) / "model.safetensors"));
  EXPECT_EQ(import_config(out_).recipe.model, recipe.model);
  const nlohmann::json theirs = nlohmann::json::parse(file_text(llama_fixture(GetParam()) / "config.json")),
                       ours = nlohmann::json::parse(file_text(out_ / "config.json"));
  for (const char* field : {"architectures", "model_type", "hidden_act", "hidden_size", "intermediate_size", "max_position_embeddings",
                            "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps", "rope_parameters",
                            "tie_word_embeddings", "vocab_size", "attention_bias", "mlp_bias", "head_dim"}) {
    EXPECT_EQ(ours.contains(field), theirs.contains(field)) << field;
    if (ours.contains(field) && theirs.contains(field)) {
      EXPECT_EQ(ours.at(field), theirs.at(field)) << field;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LlamaModel, testing::Values("llama", "qwen2", "qwen3"));

class LlamaConfig : public testing::Test {
 protected:
  // The model of a changed config.json; the sentence of a refusal goes to `said`.
  ModelConfig model(const std::string& name, const nlohmann::json& changes) {
    nlohmann::json config = nlohmann::json::parse(file_text(llama_fixture(name) / "config.json"));
    config.merge_patch(changes);
    write_text(folder_.path() / "config.json", config.dump());
    try {
      said = "";
      return import_config(folder_.path()).recipe.model;
    } catch (const InputError& error) {
      said = error.what();
      return {};
    }
  }
  void expect_refusal(const std::string& name, const nlohmann::json& changes, const std::string& part) {
    model(name, changes);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }

  TemporaryFolder folder_;
  std::string said;
};

TEST_F(LlamaConfig, EveryFieldIsUsedOrListed) {
  const ImportedConfig imported = import_config(llama_fixture("llama"));
  EXPECT_EQ(imported.family, "Llama");
  EXPECT_EQ(imported.recipe.model, (ModelConfig{.architecture = Architecture::decoder_only,
                                                .d_model = 16,
                                                .d_ff = 24,
                                                .heads = 4,
                                                .kv_heads = 2,
                                                .head_size = 8,
                                                .encoder_layers = 0,
                                                .decoder_layers = 2,
                                                .vocabulary = 37,
                                                .max_positions = 48,
                                                .norm_kind = NormKind::rms_norm,
                                                .epsilon = 1e-5,
                                                .biases = Biases::none,
                                                .activation = FeedForwardActivation::swiglu,
                                                .positions = Positions::rope,
                                                .rope_base = 500.0,
                                                .rope_scaling = RopeScaling::llama3,
                                                .rope_factor = 4.0,
                                                .rope_low_frequency = 1.0,
                                                .rope_high_frequency = 3.0,
                                                .rope_original_positions = 24,
                                                .tied = false}));
  EXPECT_EQ(imported.used.size() + imported.harmless.size(), nlohmann::json::parse(file_text(llama_fixture("llama/config.json"))).size());
  EXPECT_EQ(import_config(llama_fixture("qwen2")).recipe.model.biases, Biases::qkv);
  EXPECT_TRUE(import_config(llama_fixture("qwen3")).recipe.model.query_key_norm);
}

// transformers before version 5 kept the base beside what stretches.
TEST_F(LlamaConfig, OlderFieldsOfRotaryPositions) {
  const nlohmann::json older = {{"rope_parameters", nullptr}, {"rope_theta", 300.0}, {"rope_scaling", nullptr}};
  EXPECT_EQ(model("llama", older).rope_base, 300.0) << said;
  EXPECT_EQ(model("llama", older).rope_scaling, RopeScaling::none);
  nlohmann::json stretched = older;
  stretched["rope_scaling"] = {{"type", "llama3"}, {"factor", 2.0}, {"original_max_position_embeddings", 30}};
  const ModelConfig read = model("llama", stretched);
  EXPECT_EQ(read.rope_scaling, RopeScaling::llama3) << said;
  EXPECT_EQ(read.rope_factor, 2.0);
  EXPECT_EQ(read.rope_original_positions, 30);
}

TEST_F(LlamaConfig, WhatTheModelIsNotIsRefusedByItsField) {
  for (const char* type : {"yarn", "dynamic", "longrope", "linear"})
    expect_refusal("llama", {{"rope_parameters", {{"rope_type", type}}}}, concat("rope_parameters.rope_type = \"", type, "\""));
  expect_refusal("llama", {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}, "rope_parameters.partial_rotary_factor = 0.5");
  expect_refusal("llama", {{"hidden_act", "gelu"}}, "hidden_act = \"gelu\": tilewave has \"silu\" alone");
  expect_refusal("llama", {{"attention_bias", true}}, "attention_bias = true: mlp_bias is false");
  EXPECT_EQ(model("llama", {{"attention_bias", true}, {"mlp_bias", true}}).biases, Biases::all) << said;
  expect_refusal("llama", {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping = 50.0: tilewave does not know this field");
  expect_refusal("llama", {{"sliding_window", 16}}, "sliding_window = 16: tilewave does not know this field");
  expect_refusal("qwen3", {{"attention_bias", true}}, "attention_bias = true");
  expect_refusal("qwen2", {{"use_sliding_window", true}}, "use_sliding_window = true: tilewave has no sliding windows");
  expect_refusal("qwen2", {{"layer_types", {"full_attention", "sliding_attention"}}}, "layer_types = a list");
  expect_refusal("qwen2", {{"num_key_value_heads", 3}}, "model.kv_heads = 3 does not divide");
  expect_refusal("llama", {{"model_type", "gemma2"}}, "tilewave imports \"gpt2\", \"llama\", \"qwen2\" and \"qwen3\"");
  expect_refusal("llama", {{"architectures", {"LlamaForSequenceClassification"}}}, "LlamaForCausalLM");
}

TEST_F(LlamaConfig, OtherFormsAreNotWritten) {
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"norm", "post"}, {"activation", "silu"}, {"positions", "learned"}, {"attention_scale", "0.5"}}) {
    const std::vector<std::string> plain = {"model.rope_scaling=none", concat("model.", key, "=", value)};
    try {
      llama_config(llama_recipe("llama", plain), DType::f32);
      ADD_FAILURE() << key;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find(concat("model.", key, " = ")), 0U) << error.what();
    }
  }
  EXPECT_THROW(llama_config(llama_recipe("qwen3", {"model.biases=qkv"}), DType::f32), InputError);
  EXPECT_THROW(llama_config(llama_recipe("llama", {"model.biases=qkv"}), DType::f32), InputError) << "heads as wide as no Qwen2's";
}

// Shapes that add up to the model's and are not its parts.
TEST(LlamaWeights, EveryPartHasTheModelsShape) {
  TemporaryFolder folder;
  const auto refusal = [](const fs::path& path, const Recipe& recipe) {
    try {
      ExchangedModel(recipe).load(path);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no refusal");
  };
  // 4 heads of queries and 2 of keys have the rows of 6 and 1.
  const std::string said = refusal(llama_fixture("llama"), llama_recipe("llama", {"model.heads=6", "model.kv_heads=1"}));
  EXPECT_NE(said.find("\"model.layers.0.self_attn.q_proj.weight\" [32, 16] where the model has [48, 16]"), std::string::npos) << said;
  EXPECT_NE(said.find("\"model.layers.0.self_attn.k_proj.weight\" [16, 16] where the model has [8, 16]"), std::string::npos) << said;
  const std::string biased = refusal(llama_fixture("llama"), llama_recipe("llama", {"model.biases=qkv"}));
  EXPECT_NE(biased.find("it has no tensor \"model.layers.0.self_attn.q_proj.bias\" [32] (decoder.0.self_attention.qkv.bias)"),
            std::string::npos)
      << biased;
  const std::string unbiased = refusal(llama_fixture("qwen2"), llama_recipe("qwen2", {"model.biases=none"}));
  EXPECT_NE(unbiased.find("no parameter is made of \"model.layers.0.self_attn.k_proj.bias\" [8]"), std::string::npos) << unbiased;
}

TEST(LlamaWeights, APartThatIsMissingLeavesTheWholeInitial) {
  const SafetensorsReader whole(llama_fixture("llama") / "model.safetensors");
  SafetensorsContents some{.tensors = {}, .metadata = {}};
  for (const StoredTensor& tensor : whole.tensors()) {
    if (tensor.name == "model.layers.1.mlp.up_proj.weight") continue;
    some.tensors.push_back(
        {.name = tensor.name, .type = tensor.type, .shape = tensor.shape, .stream = [&whole, &tensor](const ByteSink& sink) {
           std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
           whole.read(tensor, bytes);
           sink(bytes);
         }});
  }
  TemporaryFolder folder;
  write_safetensors(folder.path() / "some.safetensors", some);
  ExchangedModel model(llama_recipe("llama"));
  const std::vector<double> gate_and_up = model.values("decoder.1.ffn.up.weight"), other = model.values("decoder.0.ffn.up.weight");
  const WeightOrigin origin = model.load(folder.path() / "some.safetensors", WeightFit::partial);
  EXPECT_EQ(origin.names, "Llama");
  EXPECT_EQ(origin.loaded, std::ssize(model.step.model().parameters().all()) - 1);
  EXPECT_EQ(origin.kept_initial, std::vector<std::string>{"\"model.layers.1.mlp.up_proj.weight\" [24, 16] (decoder.1.ffn.up.weight)"});
  EXPECT_EQ(model.values("decoder.1.ffn.up.weight"), gate_and_up);
  EXPECT_NE(model.values("decoder.0.ffn.up.weight"), other);
}

}  // namespace
}  // namespace tilewave
