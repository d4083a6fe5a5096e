// Text to token ids and back.
//   bytes  id 4 + b is byte b; needs no model, takes any bytes
//   bpe    SentencePiece's byte-pair encoding (UTF-8 only) without normalisation, trained here, the same for the same text
// Ids 0 .. 3 are special in both: padding, unknown, begin and end of a sequence. A tokenizer is cheap to copy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewave {

inline constexpr std::int32_t kPadId = 0, kUnknownId = 1, kBeginId = 2, kEndId = 3;
inline constexpr std::int32_t kSpecialIds = 4;
inline constexpr std::int64_t kByteVocabulary = kSpecialIds + 256;

enum class TokenizerKind : std::uint8_t { bytes, bpe };

// What a bpe model is for. sentences: one line each, where surplus white space means nothing and a word at the start is the same
// piece as within. document: every character counts, line feeds and tabs too, and encode(a + "\n" + b) = encode(a), "\n", encode(b).
enum class TextForm : std::uint8_t { sentences, document };

struct BpeTraining {
  std::int64_t vocabulary = 0;  // exactly so many ids, the special ones included
  TextForm form = TextForm::sentences;
  std::function<std::optional<std::string_view>()> next_line;  // of UTF-8 text; nothing at the end
};

class Tokenizer {
 public:
  Tokenizer() = default;                                     // bytes
  explicit Tokenizer(const BpeTraining& training);           // InputError where the vocabulary is too small or too large for the text
  static Tokenizer load(const std::filesystem::path& path);  // a bpe model; InputError where it is none of tilewave's

  TokenizerKind kind() const { return model_ ? TokenizerKind::bpe : TokenizerKind::bytes; }
  std::int64_t vocabulary() const;
  std::string piece(std::int32_t id) const;  // for a person's eyes: "▁hundred", "<0x0A>", "<eos>"

  std::vector<std::int32_t> encode(std::string_view text) const;  // no special ids; InputError where bpe is given no UTF-8
  std::string decode(std::span<const std::int32_t> ids) const;    // special ids are nothing; unknown ones U+FFFD

  const std::string& model() const;                    // SentencePiece's serialised ModelProto; empty for bytes
  void save(const std::filesystem::path& path) const;  // the same, as a file; bpe only

 private:
  struct Model;
  Tokenizer(std::string serialized, std::string_view origin);
  std::shared_ptr<const Model> model_;
};

}  // namespace tilewave
