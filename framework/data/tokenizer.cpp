#include "framework/data/tokenizer.h"

#include <algorithm>
#include <array>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <utility>

#include "framework/data/text_file.h"
#include "framework/io/file.h"
#include "kernels/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";    // U+2581, SentencePiece's space
constexpr std::array<std::string_view, kSpecialIds> kSpecialPieces = {"<pad>", "<unk>", "<bos>", "<eos>"};

// SentencePiece leaves out lines beyond 4,192 bytes and aborts on words beyond 65,535 characters: longer lines go in parts.
constexpr std::size_t kLongestLine = 4096;

// A tab is SentencePiece's own mark in training, so that no piece can hold one.
void tabs_to_spaces(std::string& text) { std::replace(text.begin(), text.end(), '\t', ' '); }

class LineParts : public sentencepiece::SentenceIterator {
 public:
  explicit LineParts(const BpeTraining& training) : training_(training) { Next(); }

  bool done() const override { return done_; }
  void Next() override {
    while (rest_.empty()) {
      const std::optional<std::string_view> line = training_.next_line();
      if (!line) {
        done_ = true;
        return;
      }
      rest_ = *line;
    }
    part_ = first_part(rest_, kLongestLine, ' ');
    rest_.remove_prefix(part_.size());
    if (training_.form == TextForm::sentences) tabs_to_spaces(part_);
  }
  const std::string& value() const override { return part_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const BpeTraining& training_;
  std::string_view rest_;
  std::string part_;
  bool done_ = false;
};

// SentencePiece says "... smaller than required_chars. 10 vs 45. ..." and "... too high (900). ... a value <= 440."
std::string number_after(std::string_view message, std::string_view words) {
  const std::size_t at = message.find(words);
  if (at == std::string_view::npos) return {};
  message.remove_prefix(at + words.size());
  return std::string(message.substr(0, message.find_first_not_of("0123456789")));
}

std::string train(const BpeTraining& training) {
  TW_CHECK_INPUT(training.vocabulary > kSpecialIds, "data.tokenizer_vocabulary = ", training.vocabulary, " leaves no room beside the ",
                 kSpecialIds, " special ids; try 128 or more.");
  const bool document = training.form == TextForm::document;
  LineParts lines(training);
  std::string serialized;
  const sentencepiece::util::Status status =
      sentencepiece::SentencePieceTrainer::Train({{"model_type", "bpe"},
                                                  {"vocab_size", std::to_string(training.vocabulary)},
                                                  {"hard_vocab_limit", "true"},
                                                  {"character_coverage", "1.0"},
                                                  {"normalization_rule_name", "identity"},
                                                  {"remove_extra_whitespaces", document ? "false" : "true"},
                                                  {"add_dummy_prefix", document ? "false" : "true"},
                                                  {"user_defined_symbols", document ? "\n,\t" : ""},
                                                  {"pad_id", std::to_string(kPadId)},
                                                  {"unk_id", std::to_string(kUnknownId)},
                                                  {"bos_id", std::to_string(kBeginId)},
                                                  {"eos_id", std::to_string(kEndId)},
                                                  {"num_threads", "1"},
                                                  {"minloglevel", "9"}},
                                                 &lines, &serialized);
  if (status.ok()) return serialized;
  const std::string least = number_after(status.message(), "required_chars. " + std::to_string(training.vocabulary) + " vs ");
  TW_CHECK_INPUT(least.empty(), "data.tokenizer_vocabulary = ", training.vocabulary,
                 " is too small for the characters of this text; it needs at least ", least, ".");
  const std::string most = number_after(status.message(), "a value <= ");
  TW_CHECK_INPUT(most.empty(), "data.tokenizer_vocabulary = ", training.vocabulary, " is too large for this text, which yields at most ",
                 most, " pieces; ask for no more.");
  throw InputError(sentence("no bpe tokenizer can be trained on this text: ", status.message(), "; use data.tokenizer = \"bytes\"."));
}

}  // namespace

struct Tokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
  std::string serialized;
  TextForm form = TextForm::sentences;
};

Tokenizer::Tokenizer(std::string serialized, std::string_view origin) {
  auto model = std::make_shared<Model>();
  const auto status = model->processor.LoadFromSerializedProto(serialized);
  TW_CHECK_INPUT(status.ok(), origin, " is not a SentencePiece model (", status.message(), "); take the file from a run folder.");
  const auto& processor = model->processor;
  TW_CHECK_INPUT(
      processor.pad_id() == kPadId && processor.unk_id() == kUnknownId && processor.bos_id() == kBeginId && processor.eos_id() == kEndId,
      origin, " has other special ids than padding 0, unknown 1, begin 2, end 3; train the tokenizer with tilewave.");
  if (processor.PieceToId("\n") != kUnknownId) model->form = TextForm::document;
  model->serialized = std::move(serialized);
  model_ = std::move(model);
}

Tokenizer::Tokenizer(const BpeTraining& training) : Tokenizer(train(training), "the tokenizer just trained") {}

Tokenizer Tokenizer::load(const std::filesystem::path& path) { return Tokenizer(read_text(path), sentence(path)); }

std::int64_t Tokenizer::vocabulary() const { return model_ ? model_->processor.GetPieceSize() : kByteVocabulary; }

const std::string& Tokenizer::model() const {
  static const std::string none;
  return model_ ? model_->serialized : none;
}

void Tokenizer::save(const std::filesystem::path& path) const {
  TW_CHECK(model_, "the bytes tokenizer has no model to save in ", path, "; its kind says everything.");
  write_file_atomically(path, model_->serialized);
}

std::string Tokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return "<beyond the tokenizer>";
  if (id < kSpecialIds) return std::string(kSpecialPieces[static_cast<std::size_t>(id)]);
  if (model_) {
    const std::string& piece = model_->processor.IdToPiece(id);
    return piece == "\n" ? "<0x0A>" : piece == "\t" ? "<0x09>" : piece;
  }
  const int byte = id - kSpecialIds;
  if (byte > 0x20 && byte < 0x7F) return std::string(1, static_cast<char>(byte));
  constexpr std::string_view hex = "0123456789ABCDEF";
  return {'<', '0', 'x', hex[static_cast<std::size_t>(byte / 16)], hex[static_cast<std::size_t>(byte % 16)], '>'};
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  if (!model_) {
    ids.reserve(text.size());
    for (const char byte : text) ids.push_back(kSpecialIds + static_cast<unsigned char>(byte));
    return ids;
  }
  const std::optional<std::size_t> invalid = find_invalid_utf8(text);
  TW_CHECK_INPUT(!invalid, "byte ", *invalid + 1, " of the text is not UTF-8, which the bpe tokenizer needs; convert the text.");
  std::string spaced;
  if (model_->form == TextForm::sentences && text.find('\t') != std::string_view::npos) {
    spaced = text;
    tabs_to_spaces(spaced);
    text = spaced;
  }
  const auto status = model_->processor.Encode(text, &ids);
  TW_CHECK(status.ok(), "SentencePiece cannot encode this text: ", status.message(), ".");
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id == kUnknownId || id < 0 || id >= vocabulary()) {
      text += kReplacement;
    } else if (id >= kSpecialIds && !model_) {
      text += static_cast<char>(id - kSpecialIds);
    } else if (id >= kSpecialIds) {
      std::string_view piece = model_->processor.IdToPiece(id);
      for (std::size_t mark = piece.find(kSpaceMark); mark != std::string_view::npos; mark = piece.find(kSpaceMark)) {
        (text += piece.substr(0, mark)) += ' ';
        piece.remove_prefix(mark + kSpaceMark.size());
      }
      text += piece;
    }
  }
  if (model_ && model_->form == TextForm::sentences && text.starts_with(' ')) text.erase(0, 1);  // encode put it there
  return text;
}

}  // namespace tilewave
