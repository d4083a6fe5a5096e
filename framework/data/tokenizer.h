// Text to token ids and back.
//   bytes           id 4 + b is byte b; needs no model, takes any bytes
//   bpe             a SentencePiece model (UTF-8 only): a byte-pair encoding without normalisation that was trained here, or anyone's
//   byte_level_bpe  a tokenizer.json of Hugging Face's tokenizers (UTF-8 only; framework/data/byte_level_bpe.h)
// Ids 0 .. 3 are special in bytes and in what is trained here: padding, unknown, begin and end of a sequence. Others have theirs wherever
// their files put them. A tokenizer is cheap to copy.
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
#include "framework/data/byte_level_bpe.h"
#include "framework/data/special_ids.h"

namespace tilewave {

inline constexpr std::int64_t kByteVocabulary = kSpecialIds + 256;

// What a folder, a run's too, keeps a tokenizer in.
inline constexpr std::string_view kTokenizerModel = "tokenizer.model", kTokenizerJson = "tokenizer.json",
                                  kTokenizerConfig = "tokenizer_config.json";

enum class TokenizerKind : std::uint8_t { bytes, bpe, byte_level_bpe };

class Tokenizer {
 public:
  Tokenizer() = default;                            // bytes
  explicit Tokenizer(const BpeTraining& training);  // InputError where the vocabulary is too small or too large for the text
  // A SentencePiece model, or a tokenizer.json with the tokenizer_config.json beside it, where there is one; or the folder that holds
  // either. InputError where it is neither.
  static Tokenizer load(const std::filesystem::path& path);

  TokenizerKind kind() const;
  std::int64_t vocabulary() const;
  std::string piece(std::int32_t id) const;                          // for a person's eyes: "▁hundred", "<0x0A>", "<eos>"
  std::optional<std::int32_t> find(std::string_view written) const;  // the id of what is so written, special tokens too

  // Special ids, as far as there are any.
  std::optional<std::int32_t> unknown() const;
  std::optional<std::int32_t> begin() const;  // that a text without a token goes on from
  std::optional<std::int32_t> end() const;    // behind which a text has ended
  bool may_be_drawn(std::int32_t id) const;   // it has a text, or ends one
  bool has_own_special_ids() const;           // 0 .. 3 as they are trained here
  // What a target is framed with: the ids that begin and end a text, the end at both ends where nothing begins one. None where no text
  // ends.
  std::optional<PairFrame> frame() const;
  std::vector<std::int32_t> before() const;  // what the tokenizer's file puts before a document
  const ByteLevelBpe* byte_level() const;    // null: it is another kind

  // Of prepared text (framework/data/prepared_text.h); no special ids around it, one unknown id for characters in a row that are unknown.
  std::vector<std::int32_t> encode(std::string_view text) const;  // InputError where the text is no UTF-8 and should be
  // A side of a pair, encoded: without the ids that a target is framed with, where the text spells their tokens.
  std::vector<std::int32_t> encode_sentence(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> ids) const;  // special ids are nothing; unknown ones U+FFFD
  // The longest beginning of a document of at most `limit` bytes, or what is just longer, that can be encoded by itself.
  std::string_view first_part(std::string_view text, std::size_t limit) const;

  // Where the first character stands that is unknown, or is no UTF-8. Nothing where that is not known.
  std::optional<std::size_t> find_unknown(std::string_view text) const;

  const std::string& model() const;   // the file's text, or what train_bpe made; empty for bytes
  const std::string& config() const;  // of tokenizer_config.json; empty where there was none
  std::string_view learned() const;   // the model without the mark of reserved characters
  // Of a tokenizer that has a model: the file in a folder that keeps it, and both files there.
  std::string_view file_name() const;
  void save_in(const std::filesystem::path& folder) const;
  void save(const std::filesystem::path& path) const;  // the model alone

 private:
  struct Model;
  Tokenizer(std::string serialized, std::string_view origin);
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  static Tokenizer of_json(const std::filesystem::path& path, std::string text);
  std::shared_ptr<const Model> model_;
};

}  // namespace tilewave
