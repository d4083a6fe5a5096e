#include "framework/data/text_encoder.h"

#include <utility>

#include "framework/data/prepared_text.h"
#include "framework/io/file.h"
#include "framework/io/text_file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxTokenizerBytes = std::int64_t{1} << 28;

std::filesystem::path tokenizer_file_of(const std::filesystem::path& named) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(named, ignored)) return named;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    if (is_there(named / name)) return named / name;
  }
  throw InputError(concat(named.string(), " holds neither a tokenizer.json nor a tokenizer.model; name a folder that does, or the file."));
}

bool begins_as_json(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && text[at] == '{';
}

}  // namespace

TextEncoder::TextEncoder(const std::string& name) {
  if (name == "bytes") {
    what_ = "bytes";
    return;
  }
  const std::filesystem::path file = tokenizer_file_of(name);
  const std::string text = read_file(file, kMaxTokenizerBytes);
  if (begins_as_json(text)) {
    what_ = concat("the byte-level BPE of ", file.string());
    tokenizer_ = ByteLevelBpe::parse(text, file.string());
  } else {
    what_ = concat("the bpe of ", file.string());
    tokenizer_ = Tokenizer::load(file);
  }
}

std::int64_t TextEncoder::vocabulary() const {
  return std::visit([](const auto& tokenizer) { return tokenizer.vocabulary(); }, tokenizer_);
}

std::vector<std::string> TextEncoder::facts() const {
  if (const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_)) return bpe->facts();
  return {concat(vocabulary() - kSpecialIds, " tokens and ", kSpecialIds, " special ids")};
}

std::optional<std::int32_t> TextEncoder::find(std::string_view token) const {
  if (const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_)) return bpe->find(token);
  const auto& tokenizer = std::get<Tokenizer>(tokenizer_);
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    if (tokenizer.piece(id) == token) return id;
  }
  return std::nullopt;
}

std::vector<std::int32_t> TextEncoder::before() const {
  const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_);
  return bpe != nullptr ? bpe->before() : std::vector<std::int32_t>();
}

std::vector<std::int32_t> TextEncoder::behind() const {
  const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_);
  return bpe != nullptr ? bpe->behind() : std::vector<std::int32_t>();
}

std::string TextEncoder::prepared(std::string document) const {
  const auto* tokenizer = std::get_if<Tokenizer>(&tokenizer_);
  return tokenizer == nullptr ? document : prepared_text(std::move(document), tokenizer->kind(), TextForm::document);
}

std::vector<std::int32_t> TextEncoder::encode(std::string_view text) const {
  if (const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_)) return bpe->encode(text, SpecialIds::left_out);
  return std::get<Tokenizer>(tokenizer_).encode(text);
}

std::string TextEncoder::decode(std::span<const std::int32_t> ids) const {
  if (const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_)) return bpe->decode(ids, SpecialIds::kept);
  return std::get<Tokenizer>(tokenizer_).decode(ids);
}

std::string_view TextEncoder::first_part(std::string_view text, std::size_t limit) const {
  if (const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_)) return bpe->first_part(text, limit);
  return tilewave::first_part(text, limit, '\n');
}

std::string TextEncoder::as_it_comes_back(std::string_view text) const {
  const auto* bpe = std::get_if<ByteLevelBpe>(&tokenizer_);
  return bpe != nullptr ? bpe->normalized(text) : std::string(text);
}

}  // namespace tilewave
