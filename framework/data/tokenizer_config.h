// What Hugging Face's tokenizer_config.json says beside a tokenizer.json, as far as it decides where a text begins and ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewave {

struct TokenizerConfig {
  std::string text;                       // as it is, for whoever reads the rest
  std::optional<std::string> begin, end;  // bos_token and eos_token
};

// Of `origin`, which sentences name. InputError where it is no object, or a token in it is neither a text nor an object with one.
TokenizerConfig read_tokenizer_config(std::string_view text, std::string_view origin);

struct TokenizerConfigFacts {
  std::optional<std::string> begin, end;
  std::int64_t longest = 0;  // that the model was trained on
};
// One that transformers loads a tokenizer.json with.
std::string tokenizer_config_text(const TokenizerConfigFacts& facts);

}  // namespace tilewave
