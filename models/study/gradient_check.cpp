// What is checked, and how large; framework/autograd/gradcheck.h does the probing of each layer (models/study/layer_cases.h).
#include "models/study/gradient_check.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "framework/autograd/gradcheck.h"
#include "models/step/train_step.h"
#include "models/study/layer_cases.h"

namespace tilewave {
namespace {

// What is probed in about half a minute.
constexpr std::int64_t kMaxFeatures = 128, kMaxHidden = 512, kMaxHeads = 4, kMaxLayers = 4, kMaxVocabulary = 512, kMaxPadding = 128,
                       kMaxPositions = 64;
constexpr std::int64_t kReducedVocabulary = 505;  // off every multiple, so that padding stays padding
constexpr std::int64_t kPaddingRows = 2;          // rows a side that hold no token
constexpr std::int64_t kPictures = 3;             // the last one is padding
constexpr std::int64_t kMaxPatchesASide = 2;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class Checker {
 public:
  Checker(const GradientCheckPlan& plan, const GradientCheckOptions& options)
      : context_(options.queue, options.device, fp64_options(plan.resolved.recipe)), made_(cases_of(context_, plan, options.seed)) {
    const bool known = options.layer.empty() || std::find(plan.layers.begin(), plan.layers.end(), options.layer) != plan.layers.end();
    TW_CHECK_INPUT(known, "--layer ", options.layer, ": this recipe's model has no such layer; it has ", joined(plan.layers), ".");
    for (const std::string& layer : plan.layers) {
      if (options.layer.empty() || options.layer == layer) cases_.push_back(made_->make(layer));
    }
  }

  Context& context() { return context_; }
  const std::vector<LayerCase>& cases() const { return cases_; }

  // Of the layers' graphs.
  std::vector<std::string> operations() {
    std::set<std::string> operations;
    for (const LayerCase& layer : cases_) {
      context_.begin_step();
      for (const std::string& operation : operations_of(layer.function(context_))) operations.insert(operation);
      context_.end_step();
    }
    return {operations.begin(), operations.end()};
  }

 private:
  static ContextOptions fp64_options(const Recipe& recipe) {
    ContextOptions options = context_options(recipe);
    options.precision = Precision::fp64;
    return options;
  }
  static std::unique_ptr<LayerCases> cases_of(Context& context, const GradientCheckPlan& plan, std::uint64_t seed) {
    if (classifies(plan.resolved.recipe.model)) return classifier_cases(context, plan.resolved, seed);
    return transformer_cases(context, plan.resolved, {.source = plan.source_lengths, .target = plan.target_lengths}, seed);
  }

  Context context_;
  std::unique_ptr<LayerCases> made_;
  std::vector<LayerCase> cases_;
};

}  // namespace

bool GradientCheckReport::passed() const {
  return !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const GradientCheckRow& row) { return row.passed; });
}

namespace {

// Heads of keys that fewer heads of queries can share, as far as they can as many as before, and as wide as a narrower model's.
template <class Reduce>
void reduce_heads(ModelConfig& model, const Reduce& reduce) {
  std::int64_t kv_heads = std::min(model.kv_heads, model.heads);
  if (kv_heads > 1 && kv_heads == model.heads) kv_heads = model.heads % 2 == 0 ? model.heads / 2 : 1;
  while (kv_heads > 0 && model.heads % kv_heads != 0) --kv_heads;
  reduce("model.kv_heads", model.kv_heads, kv_heads);
  if (model.head_size > 0) reduce("model.head_size", model.head_size, std::min(model.head_size, kMaxFeatures / model.heads));
}

}  // namespace

GradientCheckPlan plan_gradient_check(const Recipe& recipe) {
  Recipe asked = recipe;
  asked.guidelines.wave_free_batch = WaveFreeBatch::off;  // the rows are the check's
  GradientCheckPlan plan{.resolved = resolve(asked), .reductions = {}, .layers = {}, .source_lengths = {}, .target_lengths = {}};
  Recipe& reduced = plan.resolved.recipe;
  const auto reduce = [&](const char* key, std::int64_t& value, std::int64_t to) {
    if (value != to) plan.reductions.push_back({.key = key, .from = value, .to = to});
    value = to;
  };
  ModelConfig& model = reduced.model;
  if (model.d_model > kMaxFeatures) {
    reduce("model.heads", model.heads, std::min(model.heads, kMaxHeads));
    reduce("model.d_model", model.d_model, kMaxFeatures / model.heads * model.heads);
    reduce_heads(model, reduce);
  }
  reduce("model.d_ff", model.d_ff, std::min(model.d_ff, kMaxHidden));
  if (classifies(model)) {
    reduce("model.encoder_layers", model.encoder_layers, std::min(model.encoder_layers, kMaxLayers));
    reduce("model.classes", model.classes, std::min(model.classes, kMaxVocabulary));
    reduce("data.picture_size", reduced.data.picture_size, std::min(reduced.data.picture_size, kMaxPatchesASide * model.patch));
    reduced.batch.pictures = kPictures;
    plan.resolved.shapes = asked_shapes(reduced);
    plan.layers = {"stem", std::string(name_of(model.norm_kind)), "self_attention", "ffn", "head", "model"};
    return plan;
  }
  if (model.encoder_layers + model.decoder_layers > kMaxLayers) {
    reduce("model.encoder_layers", model.encoder_layers, std::min(model.encoder_layers, kMaxLayers / 2));
    reduce("model.decoder_layers", model.decoder_layers, std::min(model.decoder_layers, kMaxLayers - model.encoder_layers));
  }
  if (model.vocabulary > kMaxVocabulary) reduce("model.vocabulary", model.vocabulary, kReducedVocabulary);
  reduce("guidelines.pad_vocabulary_to", reduced.guidelines.pad_vocabulary_to, std::min(reduced.guidelines.pad_vocabulary_to, kMaxPadding));
  reduce("model.max_positions", model.max_positions, std::min(model.max_positions, kMaxPositions));
  reduced.batch.sequence = std::min(reduced.batch.sequence, model.max_positions);

  if (captions(model)) {
    reduce("data.picture_size", reduced.data.picture_size, std::min(reduced.data.picture_size, kMaxPatchesASide * model.patch));
  }

  // Two sequences of uneven lengths, as far as the recipe allows; or two pictures and one of padding.
  const bool encoder = model.architecture == Architecture::encoder_decoder;
  const auto lengths = [&](std::int64_t first, std::int64_t second) {
    return std::vector<std::int64_t>{std::min(first, reduced.batch.sequence), std::min(second, reduced.batch.sequence)};
  };
  if (encoder) plan.source_lengths = lengths(3, 5);
  if (captions(model)) plan.source_lengths.assign(2, patches_of(model, reduced.data));
  plan.target_lengths = lengths(4, 2);
  const auto rows = [](const std::vector<std::int64_t>& sequences) {
    return sequences.empty() ? 0 : std::accumulate(sequences.begin(), sequences.end(), kPaddingRows);
  };
  plan.resolved.shapes = pad_vocabulary(reduced, asked_shapes(reduced)).shapes;
  plan.resolved.shapes.source_rows = rows(plan.source_lengths);
  if (captions(model)) {
    reduced.batch.pictures = kPictures;
    plan.resolved.shapes.source_rows = kPictures * patches_of(model, reduced.data);
  }
  plan.resolved.shapes.target_rows = rows(plan.target_lengths);
  plan.layers = encoder ? std::vector<std::string>{"embedding",       "layer_norm", "self_attention", "causal_self_attention",
                                                   "cross_attention", "ffn",        "projection",     "model"}
                        : std::vector<std::string>{"embedding", "layer_norm", "causal_self_attention", "ffn", "projection", "model"};
  if (captions(model)) plan.layers.insert(plan.layers.begin(), "stem");
  std::ranges::replace(plan.layers, std::string("layer_norm"), std::string(name_of(model.norm_kind)));
  return plan;
}

std::vector<std::string> checked_operations(const GradientCheckPlan& plan, const GradientCheckOptions& options) {
  return Checker(plan, options).operations();
}

GradientCheckReport check_gradients(const GradientCheckPlan& plan, const GradientCheckOptions& options,
                                    const std::function<void(const GradientCheckRow&)>& observer) {
  Checker checker(plan, options);
  if (!options.plant.empty()) {
    const std::vector<std::string> operations = checker.operations();
    TW_CHECK_INPUT(std::find(operations.begin(), operations.end(), options.plant) != operations.end(), "--plant ", options.plant,
                   ": what is checked has no such operation; it has ", joined(operations), ".");
    checker.context().plant(options.plant);
  }

  GradientCheckReport report{.rows = {}, .tolerance = GradcheckOptions{}.tolerance};
  for (const LayerCase& layer : checker.cases()) {
    const GradcheckReport checked = gradcheck(checker.context(), layer.function, layer.variables, {.seed = options.seed});
    for (const GradcheckEntry& entry : checked.entries) {
      report.rows.push_back({.layer = layer.name,
                             .tensor = entry.name,
                             .shape = entry.shape,
                             .probes = entry.probes,
                             .norm = entry.norm,
                             .error = entry.error,
                             .passed = entry.passed});
      observer(report.rows.back());
    }
  }
  return report;
}

}  // namespace tilewave
