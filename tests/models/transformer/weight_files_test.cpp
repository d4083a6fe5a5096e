// Weights and moments on their way to files and back, and files that do not fit the model.
#include "models/transformer/weight_files.h"

#include <gtest/gtest.h>
#include <limits>

#include "framework/io/safetensors_reader.h"
#include "framework/tensor/host_tensor.h"
#include "models/step/train_step.h"
#include "tests/models/training/small_runs.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

struct Model {
  explicit Model(const std::vector<std::string>& overrides = {})
      : resolved(resolve(small_recipe(overrides))),
        context(make_cpu_queue(1), probe_cpu(1), context_options(resolved.recipe)),
        step(context, resolved) {}

  Parameters& parameters() { return step.model().parameters(); }
  std::vector<double> weights() {
    return elements([](const Parameter& parameter, std::size_t) { return parameter.logical_master(); });
  }
  std::vector<double> moments() {
    std::vector<double> all = elements([&](const Parameter&, std::size_t i) { return step.optimizer().first_moment(i).whole(); });
    const std::vector<double> second = elements([&](const Parameter&, std::size_t i) { return step.optimizer().second_moment(i).whole(); });
    all.insert(all.end(), second.begin(), second.end());
    return all;
  }

  ResolvedRecipe resolved;
  Context context;
  TrainStep step;

 private:
  template <class TensorOf>
  std::vector<double> elements(const TensorOf& tensor_of) {
    std::vector<double> all;
    for (std::size_t i = 0; i < parameters().all().size(); ++i) {
      const Parameter& parameter = parameters().all()[i];
      const std::vector<double> own = read_elements(context, tensor_of(parameter, i).slice_rows(0, parameter.shape().rows));
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
};

class WeightFiles : public testing::Test {
 protected:
  void write(Model& model) { write_safetensors(path_, weight_contents(model.parameters())); }

  // The refusal's sentence; empty where there was none.
  std::string refusal(Model& model) {
    try {
      load_weights(path_, model.parameters());
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  void expect_refusal(const SafetensorsContents& contents, const std::string& part) {
    write_safetensors(path_, contents);
    Model model;
    const std::string what = refusal(model);
    EXPECT_NE(what.find(part), std::string::npos) << what;
    EXPECT_NE(what.find(path_.string()), std::string::npos) << what;
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "weights.safetensors";
};

const std::string kUp = "decoder.1.ffn.up.weight";  // [48, 32]

TensorSource& tensor_named(SafetensorsContents& contents, std::string_view name) {
  for (TensorSource& tensor : contents.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw Error(concat("no tensor ", name, "."));
}

TEST_F(WeightFiles, HoldLogicalShapesAndNameBothVocabularies) {
  Model model({"guidelines.pad_vocabulary_to=64"});
  write(model);
  const SafetensorsReader reader(path_);
  EXPECT_EQ(reader.tensors().size(), model.parameters().all().size());
  EXPECT_EQ(reader.at("embedding.token.weight").shape, (std::vector<std::int64_t>{61, 32}));
  EXPECT_EQ(reader.at(kUp).shape, (std::vector<std::int64_t>{48, 32}));
  EXPECT_EQ(reader.at("decoder.1.ffn.up.bias").shape, std::vector<std::int64_t>{48});
  EXPECT_EQ(reader.at("encoder.norm.weight").shape, std::vector<std::int64_t>{32});
  EXPECT_EQ(reader.metadata().at("vocabulary"), "61");
  EXPECT_EQ(reader.metadata().at("vocabulary_padded"), "64");
}

TEST_F(WeightFiles, ComeBackAsTheyWere) {
  Model written, read({"run.seed=2"});
  ASSERT_NE(written.weights(), read.weights());
  write(written);
  load_weights(path_, read.parameters());
  EXPECT_EQ(read.weights(), written.weights());
}

TEST_F(WeightFiles, FitEveryPitchAndPaddingWhichStaysZero) {
  Model written({"guidelines.row_pitch=packed"}), read({"run.seed=2", "guidelines.pad_vocabulary_to=64"});
  write(written);
  load_weights(path_, read.parameters());
  EXPECT_EQ(read.weights(), written.weights());
  const Tensor padding = read.parameters().find("embedding.token.weight")->master.slice_rows(61, 3);
  EXPECT_EQ(read_elements(read.context, padding), std::vector<double>(3 * 32, 0.0));
}

TEST_F(WeightFiles, ChangePrecision) {
  Model wide({"run.precision=fp64"}), narrow({"run.seed=2"}), wide_again({"run.seed=3", "run.precision=fp64"});
  write(wide);
  EXPECT_EQ(SafetensorsReader(path_).at(kUp).type, StoredType::f64);
  load_weights(path_, narrow.parameters());
  std::vector<double> rounded = wide.weights();
  for (double& weight : rounded) weight = static_cast<float>(weight);
  EXPECT_EQ(narrow.weights(), rounded);
  write(narrow);
  load_weights(path_, wide_again.parameters());
  EXPECT_EQ(wide_again.weights(), rounded);
}

TEST_F(WeightFiles, MomentsComeBackAsTheyWere) {
  SmallRun trained(small_recipe());
  trained.losses(2);
  Parameters& parameters = trained.step.model().parameters();
  const fs::path path = folder_.path() / "optimizer.safetensors";
  write_safetensors(path, optimizer_contents(parameters, trained.step.optimizer()));
  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.tensors().size(), 2 * parameters.all().size());
  EXPECT_EQ(reader.at("second_moment/" + kUp).shape, (std::vector<std::int64_t>{48, 32}));

  Model read({"guidelines.pad_vocabulary_to=64"});
  load_optimizer(path, read.parameters(), read.step.optimizer());
  std::vector<double> expected;
  for (const bool second : {false, true}) {
    for (std::size_t i = 0; i < parameters.all().size(); ++i) {
      const Tensor& moment = second ? trained.step.optimizer().second_moment(i).whole() : trained.step.optimizer().first_moment(i).whole();
      const std::vector<double> own = read_elements(trained.context, moment);
      expected.insert(expected.end(), own.begin(), own.end());
    }
  }
  EXPECT_EQ(read.moments(), expected);
  EXPECT_NE(expected, std::vector<double>(expected.size(), 0.0));
}

TEST_F(WeightFiles, MissingTensorIsRefused) {
  Model model;
  SafetensorsContents contents = weight_contents(model.parameters());
  tensor_named(contents, kUp).name = "decoder.1.ffn.up.wait";
  expect_refusal(contents, "has no tensor \"" + kUp + "\" of shape [48, 32]");
}

TEST_F(WeightFiles, SurplusTensorIsRefused) {
  Model model;
  SafetensorsContents contents = weight_contents(model.parameters());
  TensorSource copy = tensor_named(contents, kUp);
  copy.name = "projection.weight";
  contents.tensors.push_back(copy);
  expect_refusal(contents, "tensor \"projection.weight\" [48, 32] belongs to no parameter");
}

TEST_F(WeightFiles, WrongShapesAreRefused) {
  Model model;
  SafetensorsContents contents = weight_contents(model.parameters());
  tensor_named(contents, kUp).shape = {32, 48};
  expect_refusal(contents, "\"" + kUp + "\" has the shape [32, 48], but the recipe's model wants [48, 32]; transpose it");
  tensor_named(contents, kUp).shape = {48, 32, 1};
  expect_refusal(contents, "has the shape [48, 32, 1], but the recipe's model wants [48, 32]; take a file");
  tensor_named(contents, kUp).shape = {48, 32};
  tensor_named(contents, "decoder.1.ffn.up.bias").shape = {1, 48};
  expect_refusal(contents, "has the shape [1, 48], but the recipe's model wants [48]");
}

TEST_F(WeightFiles, NothingIsWrittenUnlessEverythingFits) {
  Model written, model({"run.seed=2"});
  SafetensorsContents contents = weight_contents(written.parameters());
  contents.tensors.back().shape.push_back(1);
  write_safetensors(path_, contents);
  const std::vector<double> before = model.weights();
  EXPECT_NE(refusal(model), "");
  EXPECT_EQ(model.weights(), before);
}

TEST_F(WeightFiles, OtherTypesAreRefused) {
  Model model;
  SafetensorsContents contents = weight_contents(model.parameters());
  tensor_named(contents, kUp).type = StoredType::i32;
  expect_refusal(contents, "\"" + kUp + "\" [48, 32] is I32; parameters are F32 or F64");
  for (const StoredType type : {StoredType::f4, StoredType::f6_e3m2, StoredType::f8_e8m0, StoredType::f8_e4m3fnuz, StoredType::bf16}) {
    tensor_named(contents, kUp) = {.name = kUp, .type = type, .shape = {48, 32}, .stream = [type](const ByteSink& sink) {
                                     const std::vector<std::byte> bytes(static_cast<std::size_t>(48 * 32 * bits_of(type) / 8));
                                     sink(bytes);
                                   }};
    expect_refusal(contents, concat("\"", kUp, "\" [48, 32] is ", name_of(type), "; parameters are F32 or F64"));
  }
}

TEST_F(WeightFiles, ElementsThatAreNotFiniteAreRefused) {
  Model model;
  SafetensorsContents contents = weight_contents(model.parameters());
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e39}) {
    tensor_named(contents, kUp) = {.name = kUp, .type = StoredType::f64, .shape = {48, 32}, .stream = [bad](const ByteSink& sink) {
                                     std::vector<double> elements(48 * 32, 0.5);
                                     elements[70] = bad;
                                     sink(std::as_bytes(std::span(elements)));
                                   }};
    expect_refusal(contents, "\"" + kUp + "\" holds " + concat(bad) + " at element 70");
  }
}

}  // namespace
}  // namespace tilewave
