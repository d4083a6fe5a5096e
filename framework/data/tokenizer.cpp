#include "framework/data/tokenizer.h"

#include <algorithm>
#include <array>
#include <sentencepiece_processor.h>
#include <utility>

#include "framework/data/reserved_characters.h"
#include "framework/data/tokenizer_config.h"
#include "framework/io/file.h"
#include "framework/io/text_file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxTokenizerBytes = std::int64_t{1} << 28;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kPieceSpace = "\xE2\x96\x81";   // U+2581, a space in a piece
constexpr std::array<std::string_view, kSpecialIds> kSpecialPieces = {"<pad>", "<unk>", "<bos>", "<eos>"};

// What ends a text in the families that a tokenizer.json is of, where no tokenizer_config.json says it.
constexpr std::array<std::string_view, 4> kUsualEnds = {"<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>"};

std::filesystem::path tokenizer_file_of(const std::filesystem::path& named) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(named, ignored)) return named;
  for (const std::string_view name : {kTokenizerJson, kTokenizerModel}) {
    if (is_there(named / name)) return named / name;
  }
  throw InputError(concat(named.string(), " holds neither a tokenizer.json nor a tokenizer.model; name a folder that does, or the file."));
}

bool begins_as_json(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && text[at] == '{';
}

std::optional<std::int32_t> known_id(int id) { return id >= 0 ? std::optional(id) : std::nullopt; }

// The special token of a tokenizer.json that its config names.
std::optional<std::int32_t> token_named(const ByteLevelBpe& bpe, const std::optional<std::string>& token, const std::string& origin) {
  if (!token) return std::nullopt;
  const std::optional<std::int32_t> id = bpe.find(*token);
  TW_CHECK_INPUT(id, origin, ": names the token \"", printable(*token), "\", which the ", kTokenizerJson,
                 " beside it does not have; take the two from one model.");
  return id;
}

}  // namespace

struct Tokenizer::Model {
  struct SpecialTokens {
    std::optional<std::int32_t> unknown, begin, end;
  };

  sentencepiece::SentencePieceProcessor processor;
  std::optional<ByteLevelBpe> json;  // instead of it
  std::string serialized, config;
  SpecialTokens special;
  bool foreign = false;     // a SentencePiece model that was not trained here
  bool puts_space = false;  // foreign: before a text
  TextForm form = TextForm::sentences;
  ReservedCharacters reserved;

  bool knows(char32_t code) const {
    const bool space = code == U'\t' && form == TextForm::sentences;
    return processor.PieceToId(reserved.piece_of(space ? U' ' : code)) != kUnknownId;
  }

  // A foreign model's piece as text: spaces, bytes, or nothing of what is special.
  void add_foreign_text(std::int32_t id, std::string& text) const {
    if (processor.IsControl(id) || processor.IsUnused(id)) return;
    std::string_view piece = processor.IdToPiece(id);
    if (processor.IsByte(id) && piece.size() == 6) {  // <0x0A>
      text += static_cast<char>(std::stoi(std::string(piece.substr(3, 2)), nullptr, 16));
      return;
    }
    for (std::size_t at = 0; (at = piece.find(kPieceSpace)) != std::string_view::npos; piece.remove_prefix(at + kPieceSpace.size())) {
      text += piece.substr(0, at);
      text += ' ';
    }
    text += piece;
  }
};

Tokenizer::Tokenizer(std::string serialized, std::string_view origin) {
  auto model = std::make_shared<Model>();
  const auto status = model->processor.LoadFromSerializedProto(serialized);
  TW_CHECK_INPUT(status.ok(), origin,
                 " is no tokenizer, or a damaged one; take a tokenizer.json, a SentencePiece model or a tokenizer.model file from a run "
                 "folder.");
  const auto& processor = model->processor;
  const bool same_ids =
      processor.pad_id() == kPadId && processor.unk_id() == kUnknownId && processor.bos_id() == kBeginId && processor.eos_id() == kEndId;
  model->foreign = !same_ids || processor.PieceToId("<0x00>") != processor.unk_id();
  model->special = {.unknown = known_id(processor.unk_id()), .begin = known_id(processor.bos_id()), .end = known_id(processor.eos_id())};
  if (model->foreign) {
    std::vector<std::string> pieces;
    model->puts_space = processor.Encode("a", &pieces).ok() && !pieces.empty() && pieces.front().starts_with(kPieceSpace);
  } else {
    if (processor.PieceToId("\n") != kUnknownId) model->form = TextForm::document;
    model->reserved = ReservedCharacters::of_model(serialized);
  }
  model->serialized = std::move(serialized);
  model_ = std::move(model);
}

Tokenizer::Tokenizer(const BpeTraining& training) : Tokenizer(train_bpe(training), "the tokenizer just trained") {}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  const std::filesystem::path file = tokenizer_file_of(path);
  std::string text = read_text(file);
  return begins_as_json(text) ? of_json(file, std::move(text)) : Tokenizer(std::move(text), file.string());
}

Tokenizer Tokenizer::of_json(const std::filesystem::path& path, std::string text) {
  auto model = std::make_shared<Model>();
  model->json = ByteLevelBpe::parse(text, path.string());
  model->serialized = std::move(text);
  const ByteLevelBpe& bpe = *model->json;
  const std::filesystem::path beside = path.parent_path() / kTokenizerConfig;
  if (is_there(beside)) {
    TokenizerConfig config = read_tokenizer_config(read_file(beside, kMaxTokenizerBytes), beside.string());
    model->config = std::move(config.text);
    model->special.begin = token_named(bpe, config.begin, beside.string());
    model->special.end = token_named(bpe, config.end, beside.string());
  } else {
    if (bpe.behind().size() == 1) model->special.end = bpe.behind().front();
    for (const std::string_view usual : kUsualEnds) {
      if (!model->special.end) model->special.end = bpe.find(usual);
    }
  }
  if (!model->special.begin) model->special.begin = bpe.before().empty() ? model->special.end : std::optional(bpe.before().back());
  return Tokenizer(std::move(model));
}

TokenizerKind Tokenizer::kind() const {
  return !model_ ? TokenizerKind::bytes : model_->json ? TokenizerKind::byte_level_bpe : TokenizerKind::bpe;
}

const ByteLevelBpe* Tokenizer::byte_level() const { return model_ && model_->json ? &*model_->json : nullptr; }

std::int64_t Tokenizer::vocabulary() const {
  if (const ByteLevelBpe* bpe = byte_level()) return bpe->vocabulary();
  return model_ ? model_->processor.GetPieceSize() : kByteVocabulary;
}

std::optional<std::int32_t> Tokenizer::unknown() const { return model_ ? model_->special.unknown : std::optional(kUnknownId); }
std::optional<std::int32_t> Tokenizer::begin() const { return model_ ? model_->special.begin : std::optional(kBeginId); }
std::optional<std::int32_t> Tokenizer::end() const { return model_ ? model_->special.end : std::optional(kEndId); }

bool Tokenizer::may_be_drawn(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return false;
  if (id == end()) return true;
  if (const ByteLevelBpe* bpe = byte_level()) return bpe->has(id);
  if (!has_own_special_ids()) {
    const auto& processor = model_->processor;
    return !processor.IsControl(id) && !processor.IsUnknown(id) && !processor.IsUnused(id);
  }
  return id >= kSpecialIds;
}

bool Tokenizer::has_own_special_ids() const { return !model_ || (!model_->json && !model_->foreign); }

std::optional<PairFrame> Tokenizer::frame() const {
  if (!end()) return std::nullopt;
  return PairFrame{.begin = begin().value_or(*end()), .end = *end()};
}

std::vector<std::int32_t> Tokenizer::before() const {
  const ByteLevelBpe* bpe = byte_level();
  return bpe != nullptr ? bpe->before() : std::vector<std::int32_t>();
}

const std::string& Tokenizer::model() const {
  static const std::string none;
  return model_ ? model_->serialized : none;
}

const std::string& Tokenizer::config() const {
  static const std::string none;
  return model_ ? model_->config : none;
}

std::string_view Tokenizer::learned() const {
  return kind() == TokenizerKind::bpe && !model_->foreign ? ReservedCharacters::without_mark(model()) : std::string_view(model());
}

std::string_view Tokenizer::file_name() const { return byte_level() != nullptr ? kTokenizerJson : kTokenizerModel; }

void Tokenizer::save(const std::filesystem::path& path) const {
  TW_CHECK(model_, "the bytes tokenizer has no model to save in ", path, "; its kind says everything.");
  write_file_atomically(path, model_->serialized);
}

void Tokenizer::save_in(const std::filesystem::path& folder) const {
  if (!config().empty()) write_file_atomically(folder / kTokenizerConfig, config());
  save(folder / file_name());
}

std::string Tokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) return "<beyond the tokenizer>";
  if (const ByteLevelBpe* bpe = byte_level()) return bpe->has(id) ? bpe->decode(std::span(&id, 1), SpecialIds::kept) : "<no token>";
  if (model_ && model_->foreign) return model_->processor.IdToPiece(id);
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

std::optional<std::int32_t> Tokenizer::find(std::string_view written) const {
  if (const ByteLevelBpe* bpe = byte_level()) return bpe->find(written);
  for (std::int32_t id = 0; id < vocabulary(); ++id) {
    if (piece(id) == written) return id;
  }
  return std::nullopt;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  if (const ByteLevelBpe* bpe = byte_level()) return bpe->encode(text, SpecialIds::left_out);
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
  if (!model_->foreign && model_->form == TextForm::sentences && text.find('\t') != std::string_view::npos) {
    spaced = text;
    tabs_to_spaces(spaced);
    text = spaced;
  }
  const auto status = model_->processor.Encode(text, &ids);
  TW_CHECK(status.ok(), "the tokenizer cannot take a text of ", text.size(), " bytes at once; give it in shorter lines.");
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode_sentence(std::string_view text) const {
  std::vector<std::int32_t> ids = encode(text);
  if (const std::optional<PairFrame> around = frame()) {
    std::erase_if(ids, [&](std::int32_t id) { return around->holds(id); });
  }
  return ids;
}

std::string_view Tokenizer::first_part(std::string_view text, std::size_t limit) const {
  const ByteLevelBpe* bpe = byte_level();
  return bpe != nullptr ? bpe->first_part(text, limit) : tilewave::first_part(text, limit, '\n');
}

std::optional<std::size_t> Tokenizer::find_unknown(std::string_view text) const {
  if (!model_ || model_->json || model_->foreign) return std::nullopt;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text.substr(at));
    if (bytes == 0 || !model_->knows(code_point(text.substr(at, bytes)))) return at;
    at += bytes;
  }
  return std::nullopt;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  if (const ByteLevelBpe* bpe = byte_level()) return bpe->decode(ids, SpecialIds::left_out);
  const bool foreign = model_ && model_->foreign;
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary() || id == unknown()) {
      text += kReplacement;
    } else if (foreign) {
      model_->add_foreign_text(id, text);
    } else if (id >= kSpecialIds && !model_) {
      text += static_cast<char>(id - kSpecialIds);
    } else if (id >= kSpecialIds) {
      model_->reserved.add_text(model_->processor.IdToPiece(id), text);
    }
  }
  const bool spaced = model_ && (foreign ? model_->puts_space : model_->form == TextForm::sentences);
  if (spaced && text.starts_with(' ')) text.erase(0, 1);  // encode put it there
  return text;
}

}  // namespace tilewave
