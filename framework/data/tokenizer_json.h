// What a tokenizer.json of Hugging Face's tokenizers says, of byte-level BPE (GPT-2's, Llama 3's, Qwen's families). What in such a file
// would change ids and is not handled is an InputError that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewave {

// How GPT-2, Llama 3 and Qwen 2 cut words.
inline constexpr std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool special = false;  // left out of decoded text
  bool normalized = false;
  bool single_word = false, strips_left = false, strips_right = false;
};

struct SplitStep {
  enum class Kept : std::uint8_t { all, matches };
  std::string pattern;    // framework/data/split_pattern.h
  Kept kept = Kept::all;  // of a text: its matches and what lies between, or matches alone
};

struct TokenizerJson {
  std::vector<std::pair<std::string, std::int32_t>> vocabulary;  // in ByteLevel's letters
  std::vector<std::pair<std::string, std::string>> merges;       // the first one first
  std::vector<AddedToken> added;
  std::vector<SplitStep> splits;
  std::size_t splits_before_prefix = 0;  // a prefix space comes behind so many
  bool nfc = false, ignores_merges = false, adds_prefix_space = false;
  std::vector<std::int32_t> before, after;  // special ids around a text
};

// Of `origin`, which sentences name.
TokenizerJson read_tokenizer_json(std::string_view text, std::string_view origin);

}  // namespace tilewave
