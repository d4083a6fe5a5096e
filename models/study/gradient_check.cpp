// The layers to check, as functions of leaves; framework/autograd/gradcheck.h does the probing.
#include "models/study/gradient_check.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "framework/autograd/gradcheck.h"
#include "framework/ops/cross_entropy.h"
#include "framework/tensor/host_tensor.h"
#include "framework/tensor/random.h"
#include "models/step/train_step.h"
#include "models/transformer/initialization.h"

namespace tilewave {
namespace {

// What is probed in about half a minute.
constexpr std::int64_t kMaxFeatures = 128, kMaxHidden = 512, kMaxHeads = 4, kMaxLayers = 4, kMaxVocabulary = 512, kMaxPadding = 128,
                       kMaxPositions = 64;
constexpr std::int64_t kReducedVocabulary = 505;  // off every multiple, so that padding stays padding
constexpr std::int64_t kPaddingRows = 2;          // rows a side that hold no token
constexpr double kShift = 0.1;                    // deviation of what biases and norms are moved by

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// A layer as a function of leaves.
struct LayerCase {
  std::string name;
  GradcheckFunction function;
  std::vector<NamedVariable> variables;
};

class Checker {
 public:
  Checker(const GradientCheckPlan& plan, const GradientCheckOptions& options)
      : plan_(plan),
        config_(plan.resolved.recipe.model),
        seed_(options.seed),
        sequence_(plan.resolved.recipe.batch.sequence),
        rates_{.hidden = config_.dropout, .attention = config_.attention_dropout},
        context_(options.queue, options.device, fp64_options(plan.resolved.recipe)),
        batch_(make_batch_tensors(context_, batch_shape(plan.resolved))) {
    const bool known = options.layer.empty() || std::find(plan.layers.begin(), plan.layers.end(), options.layer) != plan.layers.end();
    TW_CHECK_INPUT(known, "--layer ", options.layer, ": this recipe's model has no such layer; it has ", joined(plan.layers), ".");
    const Batch batch = random_batch();
    upload(context_, batch, batch_);
    context_.write_step_state({.step = 1, .seed = seed_, .real_tokens = batch.real_tokens});
    for (const std::string& layer : plan.layers) {
      if (options.layer.empty() || options.layer == layer) cases_.push_back(make(layer));
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
  LayerCase make(const std::string& layer) {
    if (layer == name_of(config_.norm_kind)) return norm_case(layer);
    if (layer == "embedding") return embedding_case();
    if (layer == "self_attention") return self_attention_case(layer, source_rows(), source_segments(batch_, sequence_), Mask::none);
    if (layer == "causal_self_attention")
      return self_attention_case(layer, target_rows(), target_segments(batch_, sequence_), Mask::causal);
    if (layer == "cross_attention") return cross_attention_case();
    if (layer == "ffn") return ffn_case();
    if (layer == "projection") return projection_case();
    return model_case();
  }

  static ContextOptions fp64_options(const Recipe& recipe) {
    ContextOptions options = context_options(recipe);
    options.precision = Precision::fp64;
    return options;
  }

  std::int64_t source_rows() const { return plan_.resolved.shapes.source_rows; }
  std::int64_t target_rows() const { return plan_.resolved.shapes.target_rows; }

  Batch random_batch() const {
    Random random(random_key(seed_, 1));
    const auto draw = [&](std::int64_t count) {
      std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
      for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(config_.vocabulary)));
      return ids;
    };
    Packer packer(batch_shape(plan_.resolved));
    for (std::size_t s = 0; s < plan_.target_lengths.size(); ++s) {
      const std::vector<std::int32_t> source = draw(source_rows() > 0 ? plan_.source_lengths[s] : 0), in = draw(plan_.target_lengths[s]);
      std::vector<std::int32_t> out = draw(plan_.target_lengths[s]);
      if (s > 0) out.front() = kPaddingId;  // a row that is computed and ignored
      TW_CHECK(packer.add({.source = source, .target_in = in, .target_out = out}),
               "the sequences of a gradient check do not fit its rows.");
    }
    return std::move(packer).take();
  }

  Parameters& new_parameters() { return parameters_.emplace_back(context_, seed_); }

  Variable input(std::int64_t rows) { return random_leaf(context_, {rows, config_.d_model}, random_key(seed_, 2, ++inputs_)); }

  // All of a case's parameters with biases and norms moved, under their names within the layer.
  std::vector<NamedVariable> leaves(const Parameters& parameters, const std::string& layer) {
    std::vector<NamedVariable> variables;
    for (const Parameter& parameter : parameters.all()) {
      if (parameter.decay() == WeightDecay::no) shift(parameter.master);
      const bool within = parameter.spec.name.starts_with(layer + '.');
      variables.push_back({within ? parameter.spec.name.substr(layer.size() + 1) : parameter.spec.name, parameter.variable});
    }
    return variables;
  }
  static std::vector<NamedVariable> only(std::vector<NamedVariable> variables, const std::set<std::string>& names) {
    std::erase_if(variables, [&](const NamedVariable& variable) { return names.count(variable.name) == 0; });
    return variables;
  }
  void shift(const Tensor& tensor) {
    std::vector<double> elements = read_elements(context_, tensor);
    const std::vector<double> by =
        read_elements(context_, random_leaf(context_, tensor.shape(), random_key(seed_, 3, ++inputs_), kShift).value());
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] += by[i];
    write_elements(context_, tensor, elements);
  }

  LayerCase norm_case(const std::string& name) {
    Parameters& parameters = new_parameters();
    const NormLayer layer(parameters, norm_spec(config_, name));
    const Variable x = input(target_rows());  // [tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, name);
    variables.push_back({"x", x});
    return {name, [layer, x](Context& context) { return layer.forward(context, x); }, variables};
  }

  LayerCase self_attention_case(const std::string& name, std::int64_t rows, const Segments& segments, Mask mask) {
    Parameters& parameters = new_parameters();
    const SelfAttention layer(parameters, name, config_, rotations_of(context_, config_));
    const Variable x = input(rows);  // [tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, name);
    variables.push_back({"x", x});
    return {name, [this, layer, x, segments, mask](Context& context) { return layer.forward(context, x, segments, mask, rates_); },
            variables};
  }

  LayerCase cross_attention_case() {
    Parameters& parameters = new_parameters();
    const CrossAttention layer(parameters, "cross_attention", config_);
    const Variable x = input(target_rows()), memory = input(source_rows());  // [target tokens, d_model], [source tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, "cross_attention");
    variables.push_back({"x", x});
    variables.push_back({"memory", memory});
    return {
        "cross_attention",
        [this, layer, x, memory](Context& context) { return layer.forward(context, x, memory, cross_segments(batch_, sequence_), rates_); },
        variables};
  }

  LayerCase ffn_case() {
    Parameters& parameters = new_parameters();
    const FeedForward layer(parameters, "ffn", config_);
    const Variable x = input(target_rows());  // [tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, "ffn");
    variables.push_back({"x", x});
    return {"ffn", [this, layer, x](Context& context) { return layer.forward(context, x, rates_); }, variables};
  }

  LayerCase embedding_case() {
    Parameters& parameters = new_parameters();
    const Vocabulary layer(parameters, config_, plan_.resolved.shapes.vocabulary_padded);
    return {"embedding",
            [this, layer](Context& context) { return layer.embed(context, batch_.target_in, batch_.target_positions, rates_.hidden); },
            only(leaves(parameters, "embedding"), {"token.weight", "position.weight"})};
  }

  LayerCase projection_case() {
    Parameters& parameters = new_parameters();
    const Vocabulary layer(parameters, config_, plan_.resolved.shapes.vocabulary_padded);
    const Variable x = input(target_rows());  // [tokens, d_model]
    std::vector<NamedVariable> variables = only(leaves(parameters, "projection"), {config_.tied ? "embedding.token.weight" : "weight"});
    variables.push_back({"x", x});
    return {"projection", [this, layer, x](Context& context) { return loss(context, layer.logits(context, x)); }, variables};
  }

  LayerCase model_case() {
    const Transformer& model = models_.emplace_back(context_, config_, plan_.resolved.shapes.vocabulary_padded, seed_);
    return {"model", [this, &model](Context& context) { return loss(context, model.logits(batch_, sequence_, rates_)); },
            leaves(model.parameters(), "model")};
  }

  Variable loss(Context& context, const Variable& logits) const {
    return cross_entropy(context, {.logits = logits,
                                   .labels = batch_.target_out,
                                   .vocabulary = plan_.resolved.shapes.vocabulary,
                                   .smoothing = plan_.resolved.recipe.optimizer.label_smoothing});
  }

  const GradientCheckPlan& plan_;
  const ModelConfig& config_;
  std::uint64_t seed_;
  std::int64_t sequence_;
  DropoutRates rates_;
  Context context_;
  BatchTensors batch_;
  std::uint64_t inputs_ = 0;
  std::deque<Parameters> parameters_;
  std::deque<Transformer> models_;
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
  if (model.encoder_layers + model.decoder_layers > kMaxLayers) {
    reduce("model.encoder_layers", model.encoder_layers, std::min(model.encoder_layers, kMaxLayers / 2));
    reduce("model.decoder_layers", model.decoder_layers, std::min(model.decoder_layers, kMaxLayers - model.encoder_layers));
  }
  if (model.vocabulary > kMaxVocabulary) reduce("model.vocabulary", model.vocabulary, kReducedVocabulary);
  reduce("guidelines.pad_vocabulary_to", reduced.guidelines.pad_vocabulary_to, std::min(reduced.guidelines.pad_vocabulary_to, kMaxPadding));
  reduce("model.max_positions", model.max_positions, std::min(model.max_positions, kMaxPositions));
  reduced.batch.sequence = std::min(reduced.batch.sequence, model.max_positions);

  // Two sequences of uneven lengths, as far as the recipe allows.
  const bool encoder = model.architecture == Architecture::encoder_decoder;
  const auto lengths = [&](std::int64_t first, std::int64_t second) {
    return std::vector<std::int64_t>{std::min(first, reduced.batch.sequence), std::min(second, reduced.batch.sequence)};
  };
  if (encoder) plan.source_lengths = lengths(3, 5);
  plan.target_lengths = lengths(4, 2);
  const auto rows = [](const std::vector<std::int64_t>& sequences) {
    return sequences.empty() ? 0 : std::accumulate(sequences.begin(), sequences.end(), kPaddingRows);
  };
  plan.resolved.shapes = pad_vocabulary(reduced, asked_shapes(reduced)).shapes;
  plan.resolved.shapes.source_rows = rows(plan.source_lengths);
  plan.resolved.shapes.target_rows = rows(plan.target_lengths);
  plan.layers = encoder ? std::vector<std::string>{"embedding",       "layer_norm", "self_attention", "causal_self_attention",
                                                   "cross_attention", "ffn",        "projection",     "model"}
                        : std::vector<std::string>{"embedding", "layer_norm", "causal_self_attention", "ffn", "projection", "model"};
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
