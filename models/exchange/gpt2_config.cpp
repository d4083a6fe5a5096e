#include "models/exchange/gpt2_config.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tilewave {
namespace {

using Json = ConfigFields::Json;

struct NamedActivation {
  std::string_view theirs;
  FeedForwardActivation ours;
};
constexpr std::array kActivations = {
    NamedActivation{"gelu_new", FeedForwardActivation::gelu_tanh}, NamedActivation{"gelu_pytorch_tanh", FeedForwardActivation::gelu_tanh},
    NamedActivation{"gelu", FeedForwardActivation::gelu_erf}, NamedActivation{"gelu_python", FeedForwardActivation::gelu_erf},
    NamedActivation{"relu", FeedForwardActivation::relu}};

FeedForwardActivation activation_of(ConfigFields& fields) {
  const Json* value = fields.take("activation_function");
  if (value == nullptr) return FeedForwardActivation::gelu_tanh;
  for (const NamedActivation& one : kActivations) {
    if (*value == one.theirs) return one.ours;
  }
  fields.refuse("activation_function", *value, R"(tilewave has "gelu_new", "gelu_pytorch_tanh", "gelu" and "relu".)");
}

// One rate serves embeddings and sublayers.
double dropout_of(ConfigFields& fields) {
  const double sublayers = fields.fraction("resid_pdrop", 0.1), embeddings = fields.fraction("embd_pdrop", 0.1);
  if (sublayers != embeddings) {
    fields.refuse("embd_pdrop", Json(embeddings), "resid_pdrop is ", sublayers,
                  ", and tilewave has one rate for both, model.dropout; make them equal.");
  }
  return sublayers;
}

}  // namespace

ModelConfig gpt2_model(ConfigFields& fields) {
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
                    .epsilon = fields.positive("layer_norm_epsilon", kLayerNormEpsilon),
                    .activation = activation_of(fields),
                    .positions = Positions::learned,
                    .tied = fields.flag("tie_word_embeddings", true),
                    .dropout = dropout_of(fields),
                    .attention_dropout = fields.fraction("attn_pdrop", 0.1)};
  model.d_ff = fields.count("n_inner", 4 * model.d_model, 1 << 20);
  fields.must_be("n_ctx", model.max_positions, "it is another name of n_positions");
  return model;
}

std::string gpt2_config(const Recipe& recipe, DType weights, const TextEnds& ends) {
  const auto id = [](const std::optional<std::int32_t>& token) {
    return token ? nlohmann::ordered_json(*token) : nlohmann::ordered_json();
  };
  const ModelConfig& model = recipe.model;
  const auto check = [](bool holds, std::string_view key, std::string_view has, std::string_view wants) {
    TW_CHECK_INPUT(holds, "model.", key, " = \"", has, "\" is not GPT-2's, which is \"", wants,
                   "\": transformers has no model of that form; export a run of recipes/gpt_text.toml's form.");
  };
  check(model.architecture == Architecture::decoder_only, "architecture", name_of(model.architecture), "decoder_only");
  check(model.norm == Norm::pre, "norm", name_of(model.norm), "pre");
  check(model.norm_kind == NormKind::layer_norm, "norm_kind", name_of(model.norm_kind), "layer_norm");
  check(model.biases == Biases::all, "biases", name_of(model.biases), "all");
  check(model.positions == Positions::learned, "positions", name_of(model.positions), "learned");
  const auto activation = std::ranges::find(kActivations, model.activation, &NamedActivation::ours);
  check(activation != kActivations.end(), "activation", name_of(model.activation), "gelu_tanh");
  TW_CHECK_INPUT(kv_heads_of(model) == model.heads && head_size_of(model) * model.heads == model.d_model && !model.query_key_norm &&
                     model.attention_scale == 0.0,
                 "model.kv_heads, model.head_size, model.attention_scale and model.query_key_norm are not GPT-2's, which has every head "
                 "d_model / heads wide with keys of its own; transformers has no model of that form with LayerNorms.");
  const nlohmann::ordered_json config = {{"architectures", {"GPT2LMHeadModel"}},
                                         {"model_type", "gpt2"},
                                         {"activation_function", activation->theirs},
                                         {"attn_pdrop", model.attention_dropout},
                                         {"bos_token_id", id(ends.begin)},
                                         {"dtype", weights == DType::f64 ? "float64" : "float32"},
                                         {"embd_pdrop", model.dropout},
                                         {"eos_token_id", id(ends.end)},
                                         {"layer_norm_epsilon", model.epsilon},
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
