// Weights of transformers and of torch: the same logits within 1e-5 in fp32, and files that do not fit.
#include "models/exchange/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/io/safetensors_writer.h"
#include "framework/io/sha256.h"
#include "models/exchange/model_export.h"
#include "models/transformer/weight_files.h"
#include "tests/models/exchange/exchanged.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class InitialWeightFiles : public testing::Test {
 protected:
  static Recipe gpt2(const std::vector<std::string>& overrides = {}) {
    Recipe recipe = import_config(exchanged("sharded")).recipe;
    recipe.data.kind = DataKind::synthetic;
    recipe.batch.target_tokens = 24;
    std::vector<Section> sections = sections_of(recipe);
    for (const std::string& one : overrides) set_key(one, sections);
    return recipe;
  }
  static std::string refusal(const fs::path& path, const Recipe& recipe, WeightFit fit = WeightFit::whole) {
    ExchangedModel model(recipe);
    const std::vector<double> before = model.values("embedding.token.weight");
    try {
      model.load(path, fit);
    } catch (const InputError& error) {
      EXPECT_EQ(model.values("embedding.token.weight"), before) << "nothing is written";
      return error.what();
    }
    return "no refusal";
  }
  static void expect_part(const std::string& sentence, const std::string& part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }
  // One tensor of those types and shapes that a file may have.
  fs::path file(const std::string& name, std::vector<TensorSource> tensors) const {
    write_safetensors(folder_.path() / name, {.tensors = std::move(tensors), .metadata = {}});
    return folder_.path() / name;
  }
  static TensorSource constant(const std::string& name, const std::vector<std::int64_t>& shape, float value = 0.5F) {
    std::int64_t count = 1;
    for (const std::int64_t dimension : shape) count *= dimension;
    return {.name = name, .type = StoredType::f32, .shape = shape, .stream = [count, value](const ByteSink& sink) {
              const std::vector<float> values(static_cast<std::size_t>(count), value);
              sink(std::as_bytes(std::span(values)));
            }};
  }

  TemporaryFolder folder_;
};

TEST_F(InitialWeightFiles, ShardsOfTransformersGiveItsLogits) {
  const std::vector<double> expected = stored_doubles(exchanged("expected.safetensors"), "logits");
  const auto ours = [&](const fs::path& weights) { return logits_of(gpt2(), weights, exchanged("batch.safetensors")); };
  EXPECT_LT(largest_difference(ours(exchanged("sharded")), expected), 1e-5);
  EXPECT_LT(largest_difference(ours(exchanged("sharded/model.safetensors.index.json")), expected), 1e-5);
  const std::vector<double> other = logits_of(gpt2({"model.activation=gelu_erf"}), exchanged("sharded"), exchanged("batch.safetensors"));
  EXPECT_GT(largest_difference(other, expected), 1e-5) << "another activation is seen";
}

TEST_F(InitialWeightFiles, HalvesAreReadAndAHeadOfItsOwn) {
  for (const std::string name : {"bf16", "f16"}) {
    const Recipe recipe = import_config(exchanged(name)).recipe;
    const std::vector<double> expected = stored_doubles(exchanged(name + "_expected.safetensors"), "logits");
    EXPECT_LT(largest_difference(logits_of(recipe, exchanged(name), exchanged("batch.safetensors")), expected), 1e-5) << name;
  }
}

TEST_F(InitialWeightFiles, TorchsTransformerGivesItsLogits) {
  const std::vector<double> expected = stored_doubles(exchanged("torch/expected.safetensors"), "logits");
  EXPECT_LT(largest_difference(logits_of(torch_recipe(), exchanged("torch"), exchanged("torch/batch.safetensors")), expected), 1e-5);
  // With post-norm torch's has a norm behind the last layer, and ours has none: other mathematics.
  const std::string said = refusal(exchanged("torch"), torch_recipe({"model.norm=post"}));
  expect_part(said, "no parameter is made of");
  expect_part(said, "\"transformer.encoder.norm.bias\" [16]");
}

TEST_F(InitialWeightFiles, TilewavesOwnAreReadAsTheyAre) {
  ExchangedModel written(torch_recipe()), read(torch_recipe({"run.seed=2"}));
  write_safetensors(folder_.path() / "own.safetensors", weight_contents(written.step.model().parameters()));
  const WeightOrigin origin = read.load(folder_.path() / "own.safetensors");
  EXPECT_EQ(origin.names, "tilewave");
  EXPECT_EQ(origin.loaded, std::ssize(read.step.model().parameters().all()));
  for (const Parameter& parameter : read.step.model().parameters().all())
    EXPECT_EQ(read.values(parameter.spec.name), written.values(parameter.spec.name)) << parameter.spec.name;
}

TEST_F(InitialWeightFiles, AllThatDoesNotFitIsNamedOnceWithBothShapes) {
  std::string said = refusal(exchanged("sharded"), gpt2({"model.vocabulary=41"}));
  expect_part(said, "\"transformer.wte.weight\" [37, 16] where the model has [41, 16]");
  said = refusal(exchanged("sharded"), gpt2({"model.decoder_layers=1"}));
  expect_part(said, "no parameter is made of \"transformer.h.1.");
  expect_part(said, " and 4 more");
  said = refusal(exchanged("sharded"), gpt2({"model.decoder_layers=3"}));
  expect_part(said, "it has no tensor \"transformer.h.2.ln_1.weight\" [16] (decoder.2.self_attention.norm.weight)");
  said = refusal(exchanged("sharded"), gpt2({"model.d_ff=48"}));
  expect_part(said, "\"transformer.h.0.mlp.c_fc.weight\" [16, 64] where the model has [16, 48]");
  EXPECT_EQ(std::ranges::count(said, '\n'), 0);
  said = refusal(exchanged("sharded"), gpt2({"model.tied=false"}));
  expect_part(said, "it has no tensor \"lm_head.weight\" [37, 16] (projection.weight)");
  said = refusal(exchanged("bf16"), gpt2({"model.d_ff=40"}));
  expect_part(said, "no parameter is made of \"lm_head.weight\" [37, 16]");
}

TEST_F(InitialWeightFiles, APartIsLoadedAndTheRestListed) {
  ExchangedModel model(gpt2({"model.vocabulary=41", "model.decoder_layers=1"})), untouched(gpt2({"model.vocabulary=41"}));
  const WeightOrigin origin = model.load(exchanged("sharded"), WeightFit::partial);
  EXPECT_EQ(origin.loaded, 15);
  ASSERT_EQ(origin.kept_initial.size(), 1U);
  expect_part(origin.kept_initial.front(), "\"transformer.wte.weight\" [37, 16] where the model has [41, 16]");
  EXPECT_EQ(origin.left_out.size(), 12U);
  EXPECT_EQ(model.values("embedding.token.weight"), untouched.values("embedding.token.weight"));
  EXPECT_NE(model.values("decoder.norm.bias"), untouched.values("decoder.norm.bias"));
  EXPECT_EQ(origin.told().size(), 1 + 1 + 12U);
  const nlohmann::json json = nlohmann::json::parse(to_json(origin));
  EXPECT_EQ(json.at("files").size(), 3U);
  const std::string shard = file_text(exchanged("sharded/model-00001-of-00003.safetensors"));
  Sha256 hash;
  hash.add(std::as_bytes(std::span(shard)));
  EXPECT_EQ(json.at("files").at(0).at("sha256"), hash.digits());
  EXPECT_EQ(json.at("files").at(0).at("bytes"), shard.size());
  expect_part(refusal(file("nothing.safetensors", {constant("x", {2})}), gpt2(), WeightFit::partial), "none of its 1 tensors fits");
}

TEST_F(InitialWeightFiles, OlderFilesWithoutPrefixWithMasksAndATiedHeadAreTaken) {
  std::vector<SafetensorsReader> shards;
  for (const char* part : {"1", "2", "3"}) shards.emplace_back(exchanged(concat("sharded/model-0000", part, "-of-00003.safetensors")));
  const auto written = [&](float mask, std::byte change) {
    std::vector<TensorSource> tensors = {constant("h.0.attn.bias", {1, 1, 12, 12}, mask)};
    for (const SafetensorsReader& shard : shards) {
      for (const StoredTensor& tensor : shard.tensors()) {
        const std::string bare = tensor.name.substr(std::string("transformer.").size());
        for (const std::string& name : bare == "wte.weight" ? std::vector<std::string>{bare, "lm_head.weight"} : std::vector{bare}) {
          tensors.push_back({.name = name, .type = tensor.type, .shape = tensor.shape, .stream = [&, name](const ByteSink& sink) {
                               std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
                               shard.read(tensor, bytes);
                               if (name == "lm_head.weight") bytes.front() ^= change;
                               sink(bytes);
                             }});
        }
      }
    }
    return file("bare.safetensors", std::move(tensors));
  };
  const std::vector<double> expected = stored_doubles(exchanged("expected.safetensors"), "logits");
  EXPECT_LT(largest_difference(logits_of(gpt2(), written(1.0F, std::byte{0}), exchanged("batch.safetensors")), expected), 1e-5);
  expect_part(refusal(written(1.0F, std::byte{1}), gpt2()), "no parameter is made of \"lm_head.weight\"");
}

TEST_F(InitialWeightFiles, OtherModelsAreRefusedByTheBlocksTheyNeed) {
  const auto said_of = [&](const std::string& tensor) { return refusal(file("other.safetensors", {constant(tensor, {4, 2})}), gpt2()); };
  expect_part(said_of("model.layers.0.pre_feedforward_layernorm.weight"),
              "the names of a Gemma 2, and tilewave has no norms behind sublayers or soft-capping of scores yet");
  expect_part(said_of("model.layers.0.mlp.gate_up_proj.weight"), "a Phi-3");
  expect_part(said_of("model.layers.0.block_sparse_moe.gate.weight"), "a mixture of experts");
  expect_part(said_of("gpt_neox.layers.0.attention.query_key_value.weight"), "a GPT-NeoX");
  // A Llama's are read, and are not a GPT-2's.
  expect_part(said_of("model.layers.0.mlp.gate_proj.weight"), "these weights (Llama's names) are not the recipe's model's");
}

TEST_F(InitialWeightFiles, PicklesAreRefusedWithTheLineThatConvertsThem) {
  write_text(folder_.path() / "old" / "pytorch_model.bin", "pickle");
  for (const fs::path& path : {folder_.path() / "old", folder_.path() / "old" / "pytorch_model.bin", folder_.path() / "gone.pt"}) {
    const std::string said = refusal(path, gpt2());
    expect_part(said, "convert it: python3 -c \"import torch; from safetensors.torch import save_file;");
    expect_part(said, ".safetensors')\"");
  }
}

TEST_F(InitialWeightFiles, FoldersThatAreNotWholeAreRefused) {
  expect_part(refusal(folder_.path(), gpt2()), "holds neither model.safetensors nor model.safetensors.index.json");
  const fs::path copy = folder_.path() / "copy";
  fs::copy(exchanged("sharded"), copy);
  fs::remove(copy / "model-00002-of-00003.safetensors");
  expect_part(refusal(copy, gpt2()), "model-00002-of-00003.safetensors");
  fs::copy_file(copy / "model-00003-of-00003.safetensors", copy / "model-00002-of-00003.safetensors");
  expect_part(refusal(copy, gpt2()), " stands in ");
  const fs::path index = copy / "model.safetensors.index.json";
  for (const auto& [text, part] :
       std::map<std::string, std::string>{{"{", "is no index of shards"},
                                          {"{\"weight_map\": {}}", "names no tensor"},
                                          {R"({"weight_map": {"a": "../model.safetensors"}})", "which is no file's name"},
                                          {R"({"weight_map": {"a": "model-00003-of-00003.safetensors"}})", "tensor \"a\" is to be in"}}) {
    write_text(index, text);
    expect_part(refusal(copy, gpt2()), part);
  }
}

TEST_F(InitialWeightFiles, ElementsThatAreNotFiniteAreRefused) {
  std::vector<TensorSource> tensors;
  ExchangedModel model(gpt2());
  for (const Parameter& parameter : model.step.model().parameters().all()) {
    const bool last = parameter.spec.name == "decoder.norm.bias";
    tensors.push_back(constant(parameter.spec.name, file_shape(parameter), last ? std::numeric_limits<float>::infinity() : 0.5F));
  }
  const fs::path path = file("inf.safetensors", std::move(tensors));
  try {
    model.load(path);
    FAIL();
  } catch (const InputError& error) {
    expect_part(error.what(), "tensor \"decoder.norm.bias\" holds inf");
  }
}

}  // namespace
}  // namespace tilewave
