// Text to token ids and back.
//   bytes  id 4 + b is byte b; needs no model, takes any bytes
//   bpe    SentencePiece's byte-pair encoding (UTF-8 only) without normalisation, trained here
// Ids 0 .. 3 are special in both: padding, unknown, begin and end of a sequence. A tokenizer is cheap to copy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/bpe_training.h"

namespace tilewave {

inline constexpr std::int32_t kPadId = 0, kUnknownId = 1, kBeginId = 2, kEndId = 3;
inline constexpr std::int32_t kSpecialIds = 4;
inline constexpr std::int64_t kByteVocabulary = kSpecialIds + 256;

enum class TokenizerKind : std::uint8_t { bytes, bpe };

class Tokenizer {
 public:
  Tokenizer() = default;                                     // bytes
  explicit Tokenizer(const BpeTraining& training);           // InputError where the vocabulary is too small or too large for the text
  static Tokenizer load(const std::filesystem::path& path);  // a bpe model; InputError where it is none of tilewave's

  TokenizerKind kind() const { return model_ ? TokenizerKind::bpe : TokenizerKind::bytes; }
  std::int64_t vocabulary() const;
  std::string piece(std::int32_t id) const;  // for a person's eyes: "▁hundred", "<0x0A>", "<eos>"

  // Of prepared text (framework/data/prepared_text.h); no special ids, one unknown id for characters in a row that are unknown.
  std::vector<std::int32_t> encode(std::string_view text) const;  // InputError where bpe is given no UTF-8
  std::string decode(std::span<const std::int32_t> ids) const;    // special ids are nothing; unknown ones U+FFFD

  // Where the first character stands that is unknown, or is no UTF-8.
  std::optional<std::size_t> find_unknown(std::string_view text) const;

  const std::string& model() const;                    // what train_bpe made; empty for bytes
  std::string_view learned() const;                    // the same without the mark of reserved characters
  void save(const std::filesystem::path& path) const;  // the same, as a file; bpe only

 private:
  struct Model;
  Tokenizer(std::string serialized, std::string_view origin);
  std::shared_ptr<const Model> model_;
};

}  // namespace tilewave
