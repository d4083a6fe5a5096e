#include "framework/data/tokenizer_config.h"

#include <nlohmann/json.hpp>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

using ConfigJson = nlohmann::ordered_json;

// "</s>", or {"content": "</s>", ...}; null and nothing are none.
std::optional<std::string> token_of(const ConfigJson& config, const char* key, std::string_view origin) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::nullopt;
  const ConfigJson* token = &*found;
  if (token->is_object() && token->contains("content")) token = &token->at("content");
  TW_CHECK_INPUT(token->is_string(), origin, ": its ", key, " is no token; write its text, or null for none.");
  return token->get<std::string>();
}

}  // namespace

TokenizerConfig read_tokenizer_config(std::string_view text, std::string_view origin) {
  const ConfigJson config = ConfigJson::parse(text, nullptr, false);
  TW_CHECK_INPUT(config.is_object(), origin, ": is no JSON object; copy it again, or take it away.");
  return {.text = std::string(text), .begin = token_of(config, "bos_token", origin), .end = token_of(config, "eos_token", origin)};
}

std::string tokenizer_config_text(const TokenizerConfigFacts& facts) {
  ConfigJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  if (facts.begin) config["bos_token"] = *facts.begin;
  if (facts.end) config["eos_token"] = *facts.end;
  if (facts.longest > 0) config["model_max_length"] = facts.longest;
  return config.dump(2) + "\n";
}

}  // namespace tilewave
