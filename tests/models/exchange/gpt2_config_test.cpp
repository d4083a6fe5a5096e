// config.json in and out: what is used, what changes nothing, and every kind of thing that is refused.
#include "models/exchange/gpt2_config.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/exchange/import_config.h"
#include "tests/models/exchange/exchanged.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class Gpt2Config : public testing::Test {
 protected:
  // The sentence that refuses a changed config.json; empty where it is taken.
  std::string refusal(const std::string& field, const nlohmann::json& value) {
    nlohmann::json config = nlohmann::json::parse(file_text(exchanged("sharded/config.json")));
    config[field] = value;
    write_text(folder_.path() / "config.json", config.dump());
    try {
      import_config(folder_.path());
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
};

TEST_F(Gpt2Config, EveryFieldIsUsedOrListed) {
  const ImportedConfig imported = import_config(exchanged("bf16"));
  const ModelConfig& model = imported.recipe.model;
  EXPECT_EQ(model, (ModelConfig{.architecture = Architecture::decoder_only,
                                .d_model = 16,
                                .d_ff = 40,
                                .heads = 2,
                                .encoder_layers = 0,
                                .decoder_layers = 2,
                                .vocabulary = 37,
                                .max_positions = 12,
                                .norm = Norm::pre,
                                .activation = FeedForwardActivation::gelu_erf,
                                .positions = Positions::learned,
                                .tied = false}));
  const nlohmann::json config = nlohmann::json::parse(file_text(exchanged("bf16/config.json")));
  EXPECT_EQ(imported.used.size() + imported.harmless.size(), config.size());
  EXPECT_EQ(std::ranges::count(imported.harmless, "initializer_range"), 1);
  EXPECT_EQ(std::ranges::count(imported.used, "n_inner"), 1);
  EXPECT_EQ(import_config(exchanged("sharded")).recipe.model.d_ff, 64) << "n_inner = null is four times the width";
}

TEST_F(Gpt2Config, WhatTheModelIsNotIsRefusedByItsField) {
  EXPECT_EQ(refusal("n_layer", 3), "");
  EXPECT_EQ(refusal("dropout_of_another_kind", nullptr).find("dropout_of_another_kind = null: tilewave does not know this field"),
            folder_.path().string().size() + std::string("/config.json: ").size());
  for (const auto& [field, value] : std::map<std::string, nlohmann::json>{{"layer_norm_epsilon", 0.0},
                                                                          {"scale_attn_weights", false},
                                                                          {"scale_attn_by_inverse_layer_idx", true},
                                                                          {"add_cross_attention", true},
                                                                          {"activation_function", "silu"},
                                                                          {"n_head", "two"},
                                                                          {"n_embd", 0},
                                                                          {"resid_pdrop", 0.5},
                                                                          {"attn_pdrop", 1.0},
                                                                          {"n_ctx", 11},
                                                                          {"pruned_heads", {{"0", {1}}}},
                                                                          {"tie_word_embeddings", "yes"},
                                                                          {"architectures", {"GPT2ForSequenceClassification"}}}) {
    const std::string said = refusal(field, value);
    EXPECT_NE(said.find(" = "), std::string::npos) << field << ": " << said;
    EXPECT_NE(said.find(field == "resid_pdrop" ? "embd_pdrop" : field), std::string::npos) << said;
  }
  EXPECT_EQ(refusal("layer_norm_epsilon", 1e-6), "");
  EXPECT_NE(refusal("model_type", "qwen3").find("Qwen3ForCausalLM"), std::string::npos) << "its fields are not a GPT-2's";
  EXPECT_NE(refusal("model_type", "bert").find("no model of this kind"), std::string::npos);
  EXPECT_NE(refusal("n_head", 3).find("d_model"), std::string::npos) << "what a recipe refuses is refused here too";
}

TEST_F(Gpt2Config, DeepNestsAndOtherFilesAreRefusedInASentence) {
  const auto said = [&](const std::string& text) {
    write_text(folder_.path() / "config.json", text);
    try {
      import_config(folder_.path());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no refusal");
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_NE(said(R"({"model_type": "gpt2", "n_layer": )" + deep + "}").find("n_layer = a list: it is a whole number"), std::string::npos);
  EXPECT_NE(said(R"({"model_type": "gpt2", "other": )" + deep + "}").find("other = a list: tilewave does not know"), std::string::npos);
  EXPECT_NE(said("{").find("is no JSON object"), std::string::npos);
  EXPECT_NE(said("{}").find("has no model_type"), std::string::npos);
}

TEST_F(Gpt2Config, WrittenAndReadItIsTheSameModel) {
  for (const char* name : {"sharded", "bf16"}) {
    const Recipe recipe = import_config(exchanged(name)).recipe;
    write_text(folder_.path() / "config.json", gpt2_config(recipe, DType::f32));
    EXPECT_EQ(import_config(folder_.path()).recipe.model, recipe.model);
    const nlohmann::json theirs = nlohmann::json::parse(file_text(exchanged(name) / "config.json")),
                         ours = nlohmann::json::parse(file_text(folder_.path() / "config.json"));
    for (const char* field : {"activation_function", "layer_norm_epsilon", "n_embd", "n_head", "n_layer", "n_positions", "vocab_size",
                              "tie_word_embeddings", "architectures", "model_type", "scale_attn_weights", "resid_pdrop"}) {
      EXPECT_EQ(ours.at(field), theirs.at(field)) << field;
    }
  }
}

TEST_F(Gpt2Config, OtherFormsAreNotWritten) {
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"norm", "post"}, {"positions", "sinusoidal"}, {"biases", "none"}, {"activation", "swiglu"}, {"norm_kind", "rms_norm"}}) {
    Recipe recipe = import_config(exchanged("sharded")).recipe;
    std::vector<Section> sections = sections_of(recipe);
    set_key(concat("model.", key, "=", value), sections);
    try {
      gpt2_config(recipe, DType::f32);
      FAIL() << key;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("model." + key + " = \"" + value + "\""), std::string::npos) << error.what();
    }
  }
  for (const char* key : {"model.kv_heads=1", "model.head_size=4", "model.attention_scale=0.5", "model.query_key_norm=true"}) {
    Recipe recipe = import_config(exchanged("sharded")).recipe;
    std::vector<Section> sections = sections_of(recipe);
    set_key(key, sections);
    EXPECT_THROW(gpt2_config(recipe, DType::f32), InputError) << key;
  }
  EXPECT_THROW(gpt2_config(torch_recipe(), DType::f32), InputError);
}

}  // namespace
}  // namespace tilewave
