#include "models/exchange/gpt2_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "framework/data/tokenizer.h"
#include "framework/io/file.h"
#include "framework/io/json_fault.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxConfigBytes = 16 << 20;
constexpr double kLayerNormEpsilon = 1e-5;

// Names, places, generation, initial values, heads for other tasks: nothing of the forward pass.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "attn_implementation",
    "bos_token_id",
    "chunk_size_feed_forward",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "label2id",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "prefix",
    "problem_type",
    "reorder_and_upcast_attn",
    "return_dict",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_bfloat16",
    "use_cache",
});

struct NamedActivation {
  std::string_view theirs;
  Activation ours;
};
constexpr std::array kActivations = {NamedActivation{"gelu_new", Activation::gelu_tanh},
                                     NamedActivation{"gelu_pytorch_tanh", Activation::gelu_tanh},
                                     NamedActivation{"gelu", Activation::gelu_erf}, NamedActivation{"gelu_python", Activation::gelu_erf},
                                     NamedActivation{"relu", Activation::relu}};

// However deep a value nests, its text does not.
std::string field_text(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Takes fields out of an object, so that what nobody asked for is left.
class Fields {
 public:
  Fields(const Json& object, std::string file) : object_(object), file_(std::move(file)) {}

  const Json* take(const std::string& key) {
    const auto found = object_.find(key);
    if (found == object_.end()) return nullptr;
    taken_.insert(key);
    return &*found;
  }
  template <class... Parts>
  [[noreturn]] void refuse(const std::string& key, const Json& value, const Parts&... parts) const {
    throw InputError(concat(file_, ": ", printable(key), " = ", field_text(value), ": ", parts...));
  }
  std::int64_t count(const std::string& key, std::int64_t fallback, std::int64_t most) {
    const Json* value = take(key);
    if (value == nullptr || value->is_null()) return fallback;
    if (!value->is_number_integer() || *value < 1 || *value > most) refuse(key, *value, "it is a whole number from 1 to ", most, ".");
    return value->get<std::int64_t>();
  }
  double fraction(const std::string& key, double fallback) {
    const Json* value = take(key);
    if (value == nullptr) return fallback;
    if (!value->is_number() || !(value->get<double>() >= 0.0 && value->get<double>() < 1.0))
      refuse(key, *value, "it is a fraction below 1.");
    return value->get<double>();
  }
  bool flag(const std::string& key, bool fallback) {
    const Json* value = take(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) refuse(key, *value, "it is true or false.");
    return value->get<bool>();
  }
  // A field that tilewave computes with one value alone.
  void must_be(const std::string& key, const Json& only, std::string_view why) {
    const Json* value = take(key);
    if (value != nullptr && *value != only) refuse(key, *value, "tilewave has ", only.dump(), " alone: ", why, ".");
  }

  void sort_the_rest(ImportedConfig& imported) const {
    for (const auto& [key, value] : object_.items()) {
      if (taken_.contains(key)) {
        imported.used.push_back(key);
      } else if (std::ranges::find(kHarmless, key) != kHarmless.end()) {
        imported.harmless.push_back(key);
      } else {
        refuse(key, value, "tilewave does not know this field, which may change the model; take it out if it changes nothing.");
      }
    }
  }

 private:
  const Json& object_;
  std::string file_;
  std::set<std::string> taken_;
};

void check_family(Fields& fields, const std::string& file) {
  const Json* type = fields.take("model_type");
  TW_CHECK_INPUT(type != nullptr && type->is_string(), file, ": has no model_type, so it is no config.json of transformers.");
  if (*type == "gpt2") return;
  fields.refuse("model_type", *type, "tilewave imports \"gpt2\" alone; it has no ",
                *type == "llama" || *type == "mistral" || type->get<std::string>().starts_with("qwen")
                    ? "RMSNorm, rotary positions or gated feed-forward layer (SwiGLU) yet."
                    : "model of this kind.");
}

Activation activation_of(Fields& fields) {
  const Json* value = fields.take("activation_function");
  if (value == nullptr) return Activation::gelu_tanh;
  for (const NamedActivation& one : kActivations) {
    if (*value == one.theirs) return one.ours;
  }
  fields.refuse("activation_function", *value, R"(tilewave has "gelu_new", "gelu_pytorch_tanh", "gelu" and "relu".)");
}

// One rate serves embeddings and sublayers.
double dropout_of(Fields& fields) {
  const double sublayers = fields.fraction("resid_pdrop", 0.1), embeddings = fields.fraction("embd_pdrop", 0.1);
  if (sublayers != embeddings) {
    fields.refuse("embd_pdrop", Json(embeddings), "resid_pdrop is ", sublayers,
                  ", and tilewave has one rate for both, model.dropout; make them equal.");
  }
  return sublayers;
}

ModelConfig model_of(Fields& fields) {
  fields.must_be("layer_norm_epsilon", kLayerNormEpsilon, "the epsilon of its LayerNorms");
  fields.must_be("scale_attn_weights", true, "scores are divided by the root of a head's width");
  fields.must_be("scale_attn_by_inverse_layer_idx", false, "scores know nothing of their layer");
  fields.must_be("add_cross_attention", false, "a decoder alone attends to itself");
  fields.must_be("is_encoder_decoder", false, "GPT-2 is a decoder alone");
  fields.must_be("pruned_heads", Json::object(), "every head is there");
  if (const Json* names = fields.take("architectures"); names != nullptr && !names->is_null()) {
    const bool known =
        names->is_array() && std::ranges::all_of(*names, [](const Json& name) { return name == "GPT2LMHeadModel" || name == "GPT2Model"; });
    if (!known) fields.refuse("architectures", *names, "tilewave has the language model alone, GPT2LMHeadModel.");
  }
  ModelConfig model{.architecture = Architecture::decoder_only,
                    .d_model = fields.count("n_embd", 768, 65536),
                    .heads = fields.count("n_head", 12, 1024),
                    .encoder_layers = 0,
                    .decoder_layers = fields.count("n_layer", 12, 1024),
                    .vocabulary = fields.count("vocab_size", 50257, 1 << 24),
                    .max_positions = fields.count("n_positions", 1024, 1 << 24),
                    .norm = Norm::pre,
                    .activation = activation_of(fields),
                    .positions = Positions::learned,
                    .tied = fields.flag("tie_word_embeddings", true),
                    .dropout = dropout_of(fields),
                    .attention_dropout = fields.fraction("attn_pdrop", 0.1)};
  model.d_ff = fields.count("n_inner", 4 * model.d_model, 1 << 20);
  fields.must_be("n_ctx", model.max_positions, "it is another name of n_positions");
  return model;
}

}  // namespace

namespace {

// A model with its tokenizer is trained on text, one without on ids.
void import_tokenizer(const std::filesystem::path& folder, ImportedConfig& imported) {
  DataConfig& data = imported.recipe.data;
  data.kind = DataKind::tokens;
  if (!is_there(folder / kTokenizerJson)) {
    imported.tokenizer = concat("there is no ", kTokenizerJson, " beside it: data.source names token files of its tokenizer");
    return;
  }
  try {
    const Tokenizer tokenizer = Tokenizer::load(folder / kTokenizerJson);
    TW_CHECK_INPUT(tokenizer.vocabulary() <= imported.recipe.model.vocabulary, "it has ", tokenizer.vocabulary(),
                   " ids, more than the model's ", imported.recipe.model.vocabulary, ".");
    data.kind = DataKind::text;
    data.tokenizer = folder.string();
    imported.tokenizer = concat("text becomes ids by its ", kTokenizerJson, ", ", tokenizer.vocabulary(), " of them");
  } catch (const InputError& refusal) {
    imported.tokenizer = concat("its ", kTokenizerJson, " is not taken: ", refusal.what(), " data.source names token files");
  }
}

}  // namespace

ImportedConfig import_config(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path file = folder ? path / "config.json" : path;
  TW_CHECK_INPUT(!folder || is_there(file), path.string(), ": holds no config.json; name a folder that save_pretrained() has written.");
  const Json config = Json::parse(read_file(file, kMaxConfigBytes), nullptr, false);
  TW_CHECK_INPUT(config.is_object(), file.string(), ": is no JSON object; copy it again.");
  Fields fields(config, file.string());
  check_family(fields, file.string());
  ImportedConfig imported;
  imported.recipe.model = model_of(fields);
  fields.sort_the_rest(imported);

  Recipe& recipe = imported.recipe;
  const std::filesystem::path named = std::filesystem::absolute(file).lexically_normal();
  recipe.name = folder ? named.parent_path().filename().string() : named.stem().string();
  const std::filesystem::path beside = folder ? path : path.parent_path();
  import_tokenizer(beside.empty() ? "." : beside, imported);
  recipe.batch = {.source_tokens = 0,
                  .target_tokens = std::max<std::int64_t>(2048, recipe.model.max_positions),
                  .sequence = recipe.model.max_positions};
  recipe.optimizer.learning_rate = 5e-5;
  recipe.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 100, .decay_steps = 0};
  validate(recipe);
  return imported;
}

std::string gpt2_config(const Recipe& recipe, DType weights, const TextEnds& ends) {
  const ModelConfig& model = recipe.model;
  const auto check = [](bool holds, std::string_view key, std::string_view has, std::string_view wants) {
    TW_CHECK_INPUT(holds, "model.", key, " = \"", has, "\" is not GPT-2's, which is \"", wants,
                   "\": transformers has no model of that form; export a run of recipes/gpt_text.toml's form.");
  };
  check(model.architecture == Architecture::decoder_only, "architecture", name_of(model.architecture), "decoder_only");
  check(model.norm == Norm::pre, "norm", name_of(model.norm), "pre");
  check(model.positions == Positions::learned, "positions", name_of(model.positions), "learned");
  const auto activation = std::ranges::find(kActivations, model.activation, &NamedActivation::ours);
  const auto id = [](const std::optional<std::int32_t>& token) { return token ? Json(*token) : Json(nullptr); };
  const Json config = {{"architectures", {"GPT2LMHeadModel"}},
                       {"model_type", "gpt2"},
                       {"activation_function", activation->theirs},
                       {"attn_pdrop", model.attention_dropout},
                       {"bos_token_id", id(ends.begin)},
                       {"dtype", weights == DType::f64 ? "float64" : "float32"},
                       {"embd_pdrop", model.dropout},
                       {"eos_token_id", id(ends.end)},
                       {"layer_norm_epsilon", kLayerNormEpsilon},
                       {"n_embd", model.d_model},
                       {"n_head", model.heads},
                       {"n_inner", model.d_ff},
                       {"n_layer", model.decoder_layers},
                       {"n_positions", model.max_positions},
                       {"resid_pdrop", model.dropout},
                       {"scale_attn_by_inverse_layer_idx", false},
                       {"scale_attn_weights", true},
                       {"tie_word_embeddings", model.tied},
                       {"torch_dtype", weights == DType::f64 ? "float64" : "float32"},
                       {"vocab_size", model.vocabulary}};
  return config.dump(2) + "\n";
}

}  // namespace tilewave
