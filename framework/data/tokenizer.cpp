#include "framework/data/tokenizer.h"

#include <algorithm>
#include <array>
#include <sentencepiece_processor.h>
#include <utility>

#include "framework/data/reserved_characters.h"
#include "framework/io/file.h"
#include "framework/io/text_file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::array<std::string_view, kSpecialIds> kSpecialPieces = {"<pad>", "<unk>", "<bos>", "<eos>"};

}  // namespace

struct Tokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
  std::string serialized;
  TextForm form = TextForm::sentences;
  ReservedCharacters reserved;

  bool knows(char32_t code) const {
    const bool space = code == U'\t' && form == TextForm::sentences;
    return processor.PieceToId(reserved.piece_of(space ? U' ' : code)) != kUnknownId;
  }
};

Tokenizer::Tokenizer(std::string serialized, std::string_view origin) {
  auto model = std::make_shared<Model>();
  const auto status = model->processor.LoadFromSerializedProto(serialized);
  TW_CHECK_INPUT(status.ok(), origin, " is no tokenizer, or a damaged one; take a tokenizer.model file from a run folder.");
  const auto& processor = model->processor;
  TW_CHECK_INPUT(
      processor.pad_id() == kPadId && processor.unk_id() == kUnknownId && processor.bos_id() == kBeginId && processor.eos_id() == kEndId,
      origin, " has other special ids than padding 0, unknown 1, begin 2, end 3; train the tokenizer with tilewave.");
  if (processor.PieceToId("\n") != kUnknownId) model->form = TextForm::document;
  model->reserved = ReservedCharacters::of_model(serialized);
  model->serialized = std::move(serialized);
  model_ = std::move(model);
}

Tokenizer::Tokenizer(const BpeTraining& training) : Tokenizer(train_bpe(training), "the tokenizer just trained") {}

Tokenizer Tokenizer::load(const std::filesystem::path& path) { return Tokenizer(read_text(path), concat(path)); }

std::int64_t Tokenizer::vocabulary() const { return model_ ? model_->processor.GetPieceSize() : kByteVocabulary; }

const std::string& Tokenizer::model() const {
  static const std::string none;
  return model_ ? model_->serialized : none;
}

std::string_view Tokenizer::learned() const { return ReservedCharacters::without_mark(model()); }

void Tokenizer::save(const std::filesystem::path& path) const {
  TW_CHECK(model_, "the bytes tokenizer has no model to save in ", path, "; its kind says everything.");
  write_file_atomically(path, model_->serialized);
}

std::string Tokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return "<beyond the tokenizer>";
  if (id < kSpecialIds) return std::string(kSpecialPieces[static_cast<std::size_t>(id)]);
  if (model_) {
    const std::string& piece = model_->processor.IdToPiece(id);
    return piece == "\n" ? "<0x0A>" : piece == "\t" ? "<0x09>" : model_->reserved.shown(piece);
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
  std::string hidden, spaced;
  text = model_->reserved.hidden(text, hidden);
  if (model_->form == TextForm::sentences && text.find('\t') != std::string_view::npos) {
    spaced = text;
    tabs_to_spaces(spaced);
    text = spaced;
  }
  const auto status = model_->processor.Encode(text, &ids);
  TW_CHECK(status.ok(), "the tokenizer cannot take a text of ", text.size(), " bytes at once; give it in shorter lines.");
  return ids;
}

std::optional<std::size_t> Tokenizer::find_unknown(std::string_view text) const {
  if (!model_) return std::nullopt;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text.substr(at));
    if (bytes == 0 || !model_->knows(code_point(text.substr(at, bytes)))) return at;
    at += bytes;
  }
  return std::nullopt;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id == kUnknownId || id < 0 || id >= vocabulary()) {
      text += kReplacement;
    } else if (id >= kSpecialIds && !model_) {
      text += static_cast<char>(id - kSpecialIds);
    } else if (id >= kSpecialIds) {
      model_->reserved.add_text(model_->processor.IdToPiece(id), text);
    }
  }
  if (model_ && model_->form == TextForm::sentences && text.starts_with(' ')) text.erase(0, 1);  // encode put it there
  return text;
}

}  // namespace tilewave
