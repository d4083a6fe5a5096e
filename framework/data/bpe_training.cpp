#include "framework/data/bpe_training.h"

#include <algorithm>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <unordered_map>
#include <vector>

#include "framework/data/reserved_characters.h"
#include "framework/data/tokenizer.h"
#include "framework/io/text_file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

// SentencePiece leaves out lines beyond 4,192 bytes and aborts on words beyond 65,535 characters: longer lines go in parts.
constexpr std::size_t kLongestLine = 4096;

// What SentencePiece calls the special ids. Its trainer takes these words out of the text, so where the text has them the ids are called
// by a character that text never shows it.
using SpecialPieces = std::array<std::pair<const char*, const char*>, kSpecialIds>;
constexpr SpecialPieces kSpecialPieces = {{{"pad_piece", "<pad>"}, {"unk_piece", "<unk>"}, {"bos_piece", "<s>"}, {"eos_piece", "</s>"}}};
constexpr SpecialPieces kHiddenPieces = {
    {{"pad_piece", "\u2585<pad>"}, {"unk_piece", "\u2585<unk>"}, {"bos_piece", "\u2585<s>"}, {"eos_piece", "\u2585</s>"}}};

// What the text is made of, as far as training must know it beforehand.
struct Survey {
  CharacterSet characters;
  std::vector<char32_t> distinct;
  bool holds_special_pieces = false;
};

Survey survey(const BpeTraining& training) {
  Survey result;
  const NextLine next_line = training.lines();
  while (const std::optional<std::string_view> line = next_line()) {
    for (std::string_view rest = *line; !rest.empty();) {
      const std::string_view character = rest.substr(0, std::max<std::size_t>(1, character_bytes(rest)));
      const char32_t code = code_point(character);
      if (!result.characters.contains(code)) {
        result.characters.add(code);
        result.distinct.push_back(code);
      }
      rest.remove_prefix(character.size());
    }
    for (const auto& [key, piece] : kSpecialPieces) {
      result.holds_special_pieces = result.holds_special_pieces || line->find(piece) != std::string_view::npos;
    }
  }
  return result;
}

class LineParts : public sentencepiece::SentenceIterator {
 public:
  LineParts(const BpeTraining& training, const ReservedCharacters& reserved)
      : form_(training.form), reserved_(reserved), next_line_(training.lines()) {
    Next();
  }

  bool done() const override { return done_; }
  void Next() override {
    while (rest_.empty()) {
      const std::optional<std::string_view> line = next_line_();
      if (!line) {
        done_ = true;
        return;
      }
      rest_ = reserved_.hidden(*line, hidden_);
    }
    part_ = first_part(rest_, kLongestLine, ' ');
    rest_.remove_prefix(part_.size());
    if (form_ == TextForm::sentences) tabs_to_spaces(part_);
  }
  const std::string& value() const override { return part_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  TextForm form_;
  const ReservedCharacters& reserved_;
  NextLine next_line_;
  std::string hidden_, part_;
  std::string_view rest_;
  bool done_ = false;
};

// SentencePiece says "... smaller than required_chars. 10 vs 45. ..." and "... too high (900). ... a value <= 440."
std::string number_after(std::string_view message, std::string_view words) {
  const std::size_t at = message.find(words);
  if (at == std::string_view::npos) return {};
  message.remove_prefix(at + words.size());
  return std::string(message.substr(0, message.find_first_not_of("0123456789")));
}

// One field of a list that SentencePiece reads as comma-separated values.
std::string list_field(std::string_view piece) {
  std::string field = "\"";
  for (const char byte : piece) field += byte == '"' ? std::string("\"\"") : std::string(1, byte);
  return field + '"';
}

struct TrainingParts {
  const BpeTraining& training;
  const ReservedCharacters& reserved;
  const SpecialPieces& special;
  std::vector<std::string> whole_pieces;  // pieces from the start, which nothing is merged with
};

std::string train_once(const TrainingParts& parts) {
  const BpeTraining& training = parts.training;
  const bool document = training.form == TextForm::document;
  std::string whole = document ? "\n,\t" : "";
  for (const std::string& piece : parts.whole_pieces) whole += (whole.empty() ? "" : ",") + list_field(piece);
  std::unordered_map<std::string, std::string> options = {{"model_type", "bpe"},
                                                          {"vocab_size", std::to_string(training.vocabulary)},
                                                          {"hard_vocab_limit", "true"},
                                                          {"character_coverage", "1.0"},
                                                          {"normalization_rule_name", "identity"},
                                                          {"remove_extra_whitespaces", document ? "false" : "true"},
                                                          {"add_dummy_prefix", document ? "false" : "true"},
                                                          {"user_defined_symbols", whole},
                                                          {"pad_id", std::to_string(kPadId)},
                                                          {"unk_id", std::to_string(kUnknownId)},
                                                          {"bos_id", std::to_string(kBeginId)},
                                                          {"eos_id", std::to_string(kEndId)},
                                                          {"num_threads", "1"},
                                                          {"minloglevel", "9"}};
  if (&parts.special != &kSpecialPieces) options.insert(parts.special.begin(), parts.special.end());
  LineParts lines(training, parts.reserved);
  std::string model;
  const sentencepiece::util::Status status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  if (status.ok()) return model;
  const std::string least = number_after(status.message(), "required_chars. " + std::to_string(training.vocabulary) + " vs ");
  TW_CHECK_INPUT(least.empty(), "data.tokenizer_vocabulary = ", training.vocabulary,
                 " is too small for the characters of this text; it needs at least ", least, ".");
  const std::string most = number_after(status.message(), "a value <= ");
  TW_CHECK_INPUT(most.empty(), "data.tokenizer_vocabulary = ", training.vocabulary, " is too large for this text, which yields at most ",
                 most, " pieces; ask for no more.");
  throw InputError("no bpe tokenizer can be trained on this text; use data.tokenizer = \"bytes\".");
}

// The pieces of characters of the text that a model lacks. White space of sentences is a space, which begins every one of them.
std::vector<std::string> missing_pieces(const std::string& model, const Survey& text, const TrainingParts& parts) {
  sentencepiece::SentencePieceProcessor processor;
  TW_CHECK(processor.LoadFromSerializedProto(model).ok(), "the tokenizer just trained cannot be read; use data.tokenizer = \"bytes\".");
  std::vector<std::string> missing;
  for (const char32_t code : text.distinct) {
    const bool space = code == U' ' || code == U'\t';
    if (space && parts.training.form == TextForm::sentences) continue;
    const std::string piece = parts.reserved.piece_of(code);
    if (processor.PieceToId(piece) == kUnknownId) missing.push_back(piece);
  }
  return missing;
}

}  // namespace

void tabs_to_spaces(std::string& text) { std::replace(text.begin(), text.end(), '\t', ' '); }

std::string train_bpe(const BpeTraining& training) {
  TW_CHECK_INPUT(training.vocabulary > kSpecialIds, "data.tokenizer_vocabulary = ", training.vocabulary, " leaves no room beside the ",
                 kSpecialIds, " special ids; try 128 or more.");
  const Survey text = survey(training);
  const ReservedCharacters reserved(text.characters);
  TrainingParts parts{.training = training,
                      .reserved = reserved,
                      .special = text.holds_special_pieces ? kHiddenPieces : kSpecialPieces,
                      .whole_pieces = {}};
  std::string model = train_once(parts);
  // Coverage is counted in 24 bits, and a character that is rarer than that is left out of a long text.
  parts.whole_pieces = missing_pieces(model, text, parts);
  if (!parts.whole_pieces.empty()) {
    model = train_once(parts);
    const std::vector<std::string> missing = missing_pieces(model, text, parts);
    TW_CHECK(missing.empty(), missing.size(), " characters of this text stay unknown to a bpe tokenizer, the first ",
             named_character(code_point(missing.front())), "; use data.tokenizer = \"bytes\".");
  }
  return model + reserved.mark();
}

}  // namespace tilewave
