// A run as transformers loads it: the tensors that were read are written again, bit for bit.
#include "models/exchange/model_export.h"

#include <gtest/gtest.h>
#include <map>

#include "framework/io/checkpoint.h"
#include "models/transformer/weight_files.h"
#include "tests/models/exchange/exchanged.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

struct StoredBytes {
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
  friend bool operator==(const StoredBytes&, const StoredBytes&) = default;
};

void read_into(std::map<std::string, StoredBytes>& tensors, const fs::path& path) {
  const SafetensorsReader reader(path);
  for (const StoredTensor& tensor : reader.tensors()) {
    StoredBytes& one = tensors[tensor.name];
    one = {.shape = tensor.shape, .bytes = std::vector<std::byte>(static_cast<std::size_t>(tensor.bytes))};
    reader.read(tensor, one.bytes);
  }
}

class ModelExport : public testing::Test {
 protected:
  // A run's folder as far as an export looks at it.
  void make_run(const Recipe& recipe, const fs::path& weights = {}) {
    ExchangedModel model(recipe);
    if (!weights.empty()) model.load(weights);
    write_text(run_ / "recipe.toml", to_toml(recipe));
    save_checkpoint(run_, {.step = 3, .weights = weight_contents(model.step.model().parameters()), .optimizer = {}, .state = "{}"}, 1);
  }
  std::string refusal() {
    try {
      export_model(run_, out_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no refusal";
  }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run", out_ = folder_.path() / "made" / "out";
};

TEST_F(ModelExport, WhatCameFromTransformersGoesBackBitForBit) {
  make_run(import_config(exchanged("sharded")).recipe, exchanged("sharded"));
  const ExportedModel exported = export_model(run_, out_);
  EXPECT_EQ(exported.step, 3);
  std::map<std::string, StoredBytes> theirs, ours;
  for (const char* part : {"1", "2", "3"}) read_into(theirs, exchanged(concat("sharded/model-0000", part, "-of-00003.safetensors")));
  read_into(ours, out_ / "model.safetensors");
  EXPECT_EQ(exported.tensors, std::ssize(theirs));
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& [name, tensor] : theirs) EXPECT_EQ(ours[name], tensor) << name;
  EXPECT_EQ(SafetensorsReader(out_ / "model.safetensors").metadata().at("format"), "pt") << "which transformers asks for";
  EXPECT_EQ(import_config(out_).recipe.model, import_config(exchanged("sharded")).recipe.model);
  const std::vector<double> expected = stored_doubles(exchanged("expected.safetensors"), "logits");
  EXPECT_LT(largest_difference(logits_of(import_config(out_).recipe, out_, exchanged("batch.safetensors")), expected), 1e-5);
}

TEST_F(ModelExport, AHeadOfItsOwnGoesAlong) {
  make_run(import_config(exchanged("bf16")).recipe, exchanged("bf16"));
  export_model(run_, out_);
  EXPECT_NE(SafetensorsReader(out_ / "model.safetensors").find("lm_head.weight"), nullptr);
  const std::vector<double> expected = stored_doubles(exchanged("bf16_expected.safetensors"), "logits");
  EXPECT_LT(largest_difference(logits_of(import_config(out_).recipe, out_, exchanged("batch.safetensors")), expected), 1e-5);
}

TEST_F(ModelExport, WhatIsThereStaysAndOtherModelsAreRefused) {
  EXPECT_NE(refusal().find("this is no run folder"), std::string::npos);
  make_run(torch_recipe());
  EXPECT_NE(refusal().find("model.architecture = \"encoder_decoder\" is not GPT-2's"), std::string::npos);
  EXPECT_FALSE(fs::exists(out_.parent_path()));
  fs::remove_all(run_);
  make_run(import_config(exchanged("sharded")).recipe);
  write_text(out_ / "config.json", "mine");
  EXPECT_NE(refusal().find("holds a config.json already"), std::string::npos);
  EXPECT_EQ(file_text(out_ / "config.json"), "mine");
  fs::remove_all(run_ / "checkpoints");
  fs::remove_all(out_);
  EXPECT_NE(refusal().find("no valid checkpoint"), std::string::npos);
}

}  // namespace
}  // namespace tilewave
