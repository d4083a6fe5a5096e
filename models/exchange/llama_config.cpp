#include "models/exchange/llama_config.h"

#include <algorithm>
#include <cmath>

namespace tilewave {
namespace {

using Json = ConfigFields::Json;

// What differs between them where a field is left out.
struct FamilyDefaults {
  std::int64_t vocabulary, d_model, d_ff, layers, kv_heads, head_size, positions;  // kv_heads, head_size 0: as many, as wide as heads
};
FamilyDefaults defaults_of(LlamaFamily family) {
  if (family == LlamaFamily::llama) return {32000, 4096, 11008, 32, 0, 0, 2048};
  return {151936, 4096, 22016, 32, 32, family == LlamaFamily::qwen3 ? 128 : 0, 32768};
}

// `rope_parameters` holds the base too; before it there were `rope_theta` and `rope_scaling`, null where nothing is stretched.
void take_rope(ConfigFields& fields, ModelConfig& model) {
  model.rope_base = fields.positive("rope_theta", model.rope_base);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* value = fields.take(key);
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_object()) fields.refuse(key, *value, "it is an object.");
    ConfigFields rope(*value, fields.file(), key);
    model.rope_base = rope.positive("rope_theta", model.rope_base);
    const std::string older = rope.word("type", "default"), type = rope.word("rope_type", older);
    if (type == "llama3") {
      model.rope_scaling = RopeScaling::llama3;
      model.rope_factor = rope.positive("factor", model.rope_factor);
      model.rope_low_frequency = rope.positive("low_freq_factor", model.rope_low_frequency);
      model.rope_high_frequency = rope.positive("high_freq_factor", model.rope_high_frequency);
      model.rope_original_positions = rope.count("original_max_position_embeddings", model.rope_original_positions, 1 << 24);
    } else if (type != "default") {
      rope.refuse("rope_type", Json(type), R"(tilewave stretches rotary positions as "llama3" or not at all, "default".)");
    }
    rope.sorted();
  }
}

Biases biases_of(ConfigFields& fields, LlamaFamily family) {
  if (family == LlamaFamily::qwen2) return Biases::qkv;
  if (family == LlamaFamily::qwen3) {
    fields.must_be("attention_bias", false, "a Qwen3 has no biases");
    return Biases::none;
  }
  const bool attention = fields.flag("attention_bias", false), mlp = fields.flag("mlp_bias", false);
  if (attention != mlp) {
    fields.refuse("attention_bias", Json(attention), "mlp_bias is ", mlp ? "true" : "false",
                  ", and tilewave has biases in all layers or in none; make them equal.");
  }
  return attention ? Biases::all : Biases::none;
}

// Every layer attends to all of the text before a token.
void refuse_windows(ConfigFields& fields, LlamaFamily family) {
  if (family == LlamaFamily::llama) return;
  if (fields.flag("use_sliding_window", false))
    fields.refuse("use_sliding_window", Json(true), "tilewave has no sliding windows; every layer attends to the whole text.");
  fields.take("sliding_window");  // which counts nothing then
  fields.take("max_window_layers");
  const Json* layers = fields.take("layer_types");
  if (layers == nullptr || layers->is_null()) return;
  const bool full = layers->is_array() && std::ranges::all_of(*layers, [](const Json& layer) { return layer == "full_attention"; });
  if (!full) fields.refuse("layer_types", *layers, R"(tilewave has "full_attention" in every layer, and no sliding windows.)");
}

void check_architecture(ConfigFields& fields, LlamaFamily family) {
  const Json* names = fields.take("architectures");
  if (names == nullptr || names->is_null()) return;
  const std::string model(name_of(family));
  const bool known = names->is_array() && std::ranges::all_of(*names, [&](const Json& name) {
                       return name == model + "ForCausalLM" || name == model + "Model";
                     });
  if (!known) fields.refuse("architectures", *names, "tilewave has the language model alone, ", model, "ForCausalLM.");
}

// The form that all of them have in common, and which of them it is.
LlamaFamily family_of(const ModelConfig& model) {
  const auto check = [](bool holds, std::string_view key, std::string_view has, std::string_view wants) {
    TW_CHECK_INPUT(holds, "model.", key, " = \"", has, "\" is not a Llama's, which is \"", wants,
                   "\": transformers has no model of that form with RMSNorms; export a run of recipes/llama_tiny.toml's form.");
  };
  check(model.architecture == Architecture::decoder_only, "architecture", name_of(model.architecture), "decoder_only");
  check(model.norm == Norm::pre, "norm", name_of(model.norm), "pre");
  check(model.activation == FeedForwardActivation::swiglu, "activation", name_of(model.activation), "swiglu");
  check(model.positions == Positions::rope, "positions", name_of(model.positions), "rope");
  TW_CHECK_INPUT(model.attention_scale == 0.0, "model.attention_scale = ", model.attention_scale,
                 " is not a Llama's, which multiplies scores by 1 / sqrt(the width of a head).");
  if (model.query_key_norm) {
    check(model.biases == Biases::none, "biases", name_of(model.biases), "none");
    return LlamaFamily::qwen3;
  }
  if (model.biases != Biases::qkv) return LlamaFamily::llama;
  TW_CHECK_INPUT(head_size_of(model) * model.heads == model.d_model, "model.head_size = ", model.head_size,
                 " is not a Qwen2's, whose heads are d_model / heads wide; biases = \"none\" makes it a Llama.");
  return LlamaFamily::qwen2;
}

Json rope_parameters(const ModelConfig& model) {
  if (model.rope_scaling == RopeScaling::none) return {{"rope_theta", model.rope_base}, {"rope_type", "default"}};
  return {{"factor", model.rope_factor},
          {"high_freq_factor", model.rope_high_frequency},
          {"low_freq_factor", model.rope_low_frequency},
          {"original_max_position_embeddings", model.rope_original_positions},
          {"rope_theta", model.rope_base},
          {"rope_type", "llama3"}};
}

}  // namespace

ModelConfig llama_model(ConfigFields& fields, LlamaFamily family) {
  check_architecture(fields, family);
  fields.must_be("hidden_act", "silu", "SwiGLU's");
  refuse_windows(fields, family);
  const FamilyDefaults defaults = defaults_of(family);
  ModelConfig model{.architecture = Architecture::decoder_only,
                    .d_model = fields.count("hidden_size", defaults.d_model, 65536),
                    .d_ff = fields.count("intermediate_size", defaults.d_ff, 1 << 20),
                    .heads = fields.count("num_attention_heads", 32, 1024),
                    .query_key_norm = family == LlamaFamily::qwen3,
                    .encoder_layers = 0,
                    .decoder_layers = fields.count("num_hidden_layers", defaults.layers, 1024),
                    .vocabulary = fields.count("vocab_size", defaults.vocabulary, 1 << 24),
                    .max_positions = fields.count("max_position_embeddings", defaults.positions, 1 << 24),
                    .norm = Norm::pre,
                    .norm_kind = NormKind::rms_norm,
                    .epsilon = fields.positive("rms_norm_eps", 1e-6),
                    .biases = biases_of(fields, family),
                    .activation = FeedForwardActivation::swiglu,
                    .positions = Positions::rope,
                    .tied = fields.flag("tie_word_embeddings", false),
                    .attention_dropout = fields.fraction("attention_dropout", 0.0)};
  const std::int64_t kv_heads = fields.count("num_key_value_heads", defaults.kv_heads, 1024);
  model.kv_heads = kv_heads == model.heads ? 0 : kv_heads;
  const std::int64_t head_size = fields.count("head_dim", defaults.head_size, 65536);
  model.head_size = head_size * model.heads == model.d_model ? 0 : head_size;
  take_rope(fields, model);
  return model;
}

std::string llama_config(const Recipe& recipe, DType weights, const TextEnds& ends) {
  const auto id = [](const std::optional<std::int32_t>& token) { return token ? Json(*token) : Json(); };
  const ModelConfig& model = recipe.model;
  const LlamaFamily family = family_of(model);
  const char* const type = weights == DType::f64 ? "float64" : "float32";
  Json config = {{"architectures", {concat(name_of(family), "ForCausalLM")}},
                 {"model_type", model_type_of(family)},
                 {"attention_dropout", model.attention_dropout},
                 {"bos_token_id", id(ends.begin)},
                 {"dtype", type},
                 {"eos_token_id", id(ends.end)},
                 {"hidden_act", "silu"},
                 {"hidden_size", model.d_model},
                 {"intermediate_size", model.d_ff},
                 {"max_position_embeddings", model.max_positions},
                 {"num_attention_heads", model.heads},
                 {"num_hidden_layers", model.decoder_layers},
                 {"num_key_value_heads", kv_heads_of(model)},
                 {"rms_norm_eps", model.epsilon},
                 {"rope_parameters", rope_parameters(model)},
                 {"tie_word_embeddings", model.tied},
                 {"torch_dtype", type},
                 {"vocab_size", model.vocabulary}};
  if (family != LlamaFamily::qwen2) {
    config["head_dim"] = head_size_of(model);
    config["attention_bias"] = model.biases == Biases::all;
  }
  if (family == LlamaFamily::llama) config["mlp_bias"] = model.biases == Biases::all;
  return config.dump(2) + "\n";
}

}  // namespace tilewave
