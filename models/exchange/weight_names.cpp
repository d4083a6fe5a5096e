#include "models/exchange/weight_names.h"

#include <array>
#include <regex>

#include "kernels/core/error.h"
#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

struct Renamed {
  std::string_view ours, theirs;
  bool transposed = false;
};

constexpr std::array kGpt2Ends = {Renamed{"embedding.token.weight", "wte.weight"}, Renamed{"embedding.position.weight", "wpe.weight"},
                                  Renamed{"decoder.norm.weight", "ln_f.weight"}, Renamed{"decoder.norm.bias", "ln_f.bias"}};
constexpr std::array kGpt2Layer = {Renamed{"self_attention.norm.", "ln_1."},
                                   Renamed{"self_attention.qkv.", "attn.c_attn.", true},
                                   Renamed{"self_attention.out.", "attn.c_proj.", true},
                                   Renamed{"ffn.norm.", "ln_2."},
                                   Renamed{"ffn.up.", "mlp.c_fc.", true},
                                   Renamed{"ffn.down.", "mlp.c_proj.", true}};

constexpr std::array kLlamaEnds = {Renamed{"embedding.token.weight", "embed_tokens.weight"}, Renamed{"decoder.norm.weight", "norm.weight"}};
constexpr std::array kLlamaLayer = {
    Renamed{"self_attention.norm.", "input_layernorm."},        Renamed{"self_attention.out.", "self_attn.o_proj."},
    Renamed{"self_attention.query_norm.", "self_attn.q_norm."}, Renamed{"self_attention.key_norm.", "self_attn.k_norm."},
    Renamed{"ffn.norm.", "post_attention_layernorm."},          Renamed{"ffn.down.", "mlp.down_proj."}};
// What is one matrix here and several there.
struct Joined {
  std::string_view ours;
  std::array<std::string_view, 3> theirs;
  std::size_t parts;
};
constexpr std::array kLlamaJoined = {Joined{"self_attention.qkv.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}, 3},
                                     Joined{"ffn.up.", {"mlp.gate_proj.", "mlp.up_proj."}, 2}};

// torch has its fused projections under names with an underscore, and numbers norms by their sublayer.
struct TorchPart {
  std::string_view ours, theirs;
  std::int64_t first_part = 0, parts = 1, taken = 1;
};
constexpr std::array kTorchLayer = {TorchPart{"self_attention.qkv.", "self_attn.in_proj_"},
                                    TorchPart{"self_attention.out.", "self_attn.out_proj."},
                                    TorchPart{"self_attention.norm.", "norm1."},
                                    TorchPart{"cross_attention.q.", "multihead_attn.in_proj_", 0, 3, 1},
                                    TorchPart{"cross_attention.kv.", "multihead_attn.in_proj_", 1, 3, 2},
                                    TorchPart{"cross_attention.out.", "multihead_attn.out_proj."},
                                    TorchPart{"cross_attention.norm.", "norm2."},
                                    TorchPart{"ffn.up.", "linear1."},
                                    TorchPart{"ffn.down.", "linear2."}};

// "decoder.3.ffn.up.weight" as side, layer and rest; no side where it is no layer's.
struct LayerName {
  std::string_view side, layer, rest;
};
LayerName layer_name(std::string_view parameter) {
  for (const std::string_view side : {"encoder.", "decoder."}) {
    if (!parameter.starts_with(side)) continue;
    const std::string_view behind = parameter.substr(side.size());
    const std::size_t dot = behind.find('.');
    const std::string_view layer = behind.substr(0, dot);
    if (dot == std::string_view::npos || layer.find_first_not_of("0123456789") != std::string_view::npos) return {};
    return {.side = side.substr(0, side.size() - 1), .layer = layer, .rest = behind.substr(dot + 1)};
  }
  return {};
}

std::optional<WeightPlace> gpt2_place(std::string_view parameter, const std::string& prefix) {
  if (parameter == "projection.weight") return WeightPlace{.name = "lm_head.weight"};
  for (const Renamed& end : kGpt2Ends) {
    if (parameter == end.ours) return WeightPlace{.name = concat(prefix, end.theirs)};
  }
  const LayerName name = layer_name(parameter);
  if (name.side != "decoder") return std::nullopt;
  for (const Renamed& part : kGpt2Layer) {
    if (!name.rest.starts_with(part.ours)) continue;
    const std::string_view kind = name.rest.substr(part.ours.size());
    return WeightPlace{.name = concat(prefix, "h.", name.layer, ".", part.theirs, kind), .transposed = part.transposed && kind == "weight"};
  }
  return std::nullopt;
}

std::vector<WeightPlace> llama_places(std::string_view parameter, std::size_t parts, const std::string& prefix) {
  if (parameter == "projection.weight") return {{.name = "lm_head.weight"}};
  for (const Renamed& end : kLlamaEnds) {
    if (parameter == end.ours) return {{.name = concat(prefix, end.theirs)}};
  }
  const LayerName name = layer_name(parameter);
  if (name.side != "decoder") return {};
  const std::string layer = concat(prefix, "layers.", name.layer, ".");
  for (const Joined& joined : kLlamaJoined) {
    if (!name.rest.starts_with(joined.ours) || parts != joined.parts) continue;
    std::vector<WeightPlace> places;
    for (std::size_t part = 0; part < parts; ++part)
      places.push_back({.name = concat(layer, joined.theirs[part], name.rest.substr(joined.ours.size()))});
    return places;
  }
  for (const Renamed& part : kLlamaLayer) {
    if (name.rest.starts_with(part.ours)) return {{.name = concat(layer, part.theirs, name.rest.substr(part.ours.size()))}};
  }
  return {};
}

std::optional<WeightPlace> torch_place(std::string_view parameter, const std::string& prefix) {
  const LayerName name = layer_name(parameter);
  if (name.side.empty()) {
    const bool norm = parameter.starts_with("encoder.norm.") || parameter.starts_with("decoder.norm.");
    return WeightPlace{.name = norm ? concat(prefix, parameter) : std::string(parameter)};  // torch has no embeddings: they keep our names
  }
  const std::string layer = concat(prefix, name.side, ".layers.", name.layer, ".");
  constexpr std::string_view kLastNorm = "ffn.norm.";
  if (name.rest.starts_with(kLastNorm)) {
    return WeightPlace{.name = concat(layer, name.side == "encoder" ? "norm2." : "norm3.", name.rest.substr(kLastNorm.size()))};
  }
  for (const TorchPart& part : kTorchLayer) {
    if (!name.rest.starts_with(part.ours)) continue;
    return WeightPlace{.name = concat(layer, part.theirs, name.rest.substr(part.ours.size())),
                       .first_part = part.first_part,
                       .parts = part.parts,
                       .taken = part.taken};
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const WeightSource& source, std::string_view whose, std::string_view lacks) {
  throw InputError(concat(source.path().string(), ": its tensors have the names of ", whose, ", and tilewave has no ", lacks,
                          " yet; take weights of a GPT-2, a Llama, a Qwen2, a Qwen3, of torch.nn.Transformer or of tilewave."));
}

}  // namespace

NamedWeights recognised(const WeightSource& source) {
  static const std::regex gpt2(R"((|.*\.)(h\.\d+\.(ln_[12]|attn\.c_|mlp\.c_).*|wte\.weight|wpe\.weight))"),
      llama(R"((|.*\.)layers\.\d+\.(input_layernorm|self_attn\.[qkv]_proj|mlp\.gate_proj)\.weight)"),
      torch(R"((|.*\.)(en|de)coder\.layers\.\d+\.(self_attn\.in_proj_weight|linear1\.weight))");
  const auto any = [&](std::string_view part) {
    for (const SourceTensor& one : source.tensors()) {
      if (one.tensor->name.find(part) != std::string::npos) return true;
    }
    return false;
  };
  if (any("pre_feedforward_layernorm.")) refuse(source, "a Gemma 2", "norms behind sublayers or soft-capping of scores");
  if (any("mlp.gate_up_proj.")) refuse(source, "a Phi-3", "names for its joined projections");
  if (any("block_sparse_moe.") || any("mlp.experts.")) refuse(source, "a mixture of experts", "experts");
  if (any("attention.query_key_value.")) refuse(source, "a GPT-NeoX", "rotary positions or parallel sublayers");
  if (any("attention.self.query.")) refuse(source, "a BERT", "encoder without a decoder");
  for (const SourceTensor& one : source.tensors()) {
    if (one.tensor->name.starts_with(kWeightPrefix)) return {.names = WeightNames::tilewave, .prefix = std::string(kWeightPrefix)};
  }
  std::smatch match;
  for (const SourceTensor& one : source.tensors()) {
    if (std::regex_match(one.tensor->name, match, gpt2)) return {.names = WeightNames::gpt2, .prefix = match[1]};
    if (std::regex_match(one.tensor->name, match, llama)) return {.names = WeightNames::llama, .prefix = match[1]};
    if (std::regex_match(one.tensor->name, match, torch)) return {.names = WeightNames::torch, .prefix = match[1]};
  }
  return {};
}

std::vector<WeightPlace> places_of(std::string_view parameter, std::size_t parts, const NamedWeights& weights) {
  const auto at_most_one = [](std::optional<WeightPlace> place) {
    return place ? std::vector{std::move(*place)} : std::vector<WeightPlace>();
  };
  if (weights.names == WeightNames::llama) return llama_places(parameter, parts, weights.prefix);
  if (weights.names == WeightNames::gpt2) return at_most_one(gpt2_place(parameter, weights.prefix));
  if (weights.names == WeightNames::torch) return at_most_one(torch_place(parameter, weights.prefix));
  return {{.name = concat(weights.prefix, parameter)}};
}

bool is_constant(std::string_view tensor, const NamedWeights& weights) {
  if (weights.prefix == kWeightPrefix) return !tensor.starts_with(kWeightPrefix);  // what else a step between files left
  if (weights.names == WeightNames::llama) return tensor.ends_with(".rotary_emb.inv_freq");
  return weights.names == WeightNames::gpt2 && (tensor.ends_with(".attn.bias") || tensor.ends_with(".attn.masked_bias"));
}

}  // namespace tilewave
