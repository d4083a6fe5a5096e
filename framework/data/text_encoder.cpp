#include "framework/data/text_encoder.h"

#include <utility>

#include "framework/data/prepared_text.h"
#include "kernels/core/error.h"

namespace tilewave {

TextEncoder::TextEncoder(const std::string& name) : what_("bytes") {
  if (name == "bytes") return;
  tokenizer_ = Tokenizer::load(name);
  const std::filesystem::path named = name;
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(named, ignored);
  what_ = concat("the ", tokenizer_.byte_level() != nullptr ? "byte-level BPE" : "bpe", " of ",
                 (folder ? named / tokenizer_.file_name() : named).string());
}

std::int64_t TextEncoder::vocabulary() const { return tokenizer_.vocabulary(); }

std::vector<std::string> TextEncoder::facts() const {
  if (const ByteLevelBpe* bpe = tokenizer_.byte_level()) return bpe->facts();
  if (tokenizer_.has_own_special_ids()) return {concat(vocabulary() - kSpecialIds, " tokens and ", kSpecialIds, " special ids")};
  return {concat(vocabulary(), " pieces of a SentencePiece model"),
          tokenizer_.end() ? concat("a text ends with ", tokenizer_.piece(*tokenizer_.end())) : "no id ends a text"};
}

std::optional<std::int32_t> TextEncoder::find(std::string_view token) const { return tokenizer_.find(token); }

std::vector<std::int32_t> TextEncoder::before() const { return tokenizer_.before(); }

std::vector<std::int32_t> TextEncoder::behind() const {
  const ByteLevelBpe* bpe = tokenizer_.byte_level();
  return bpe != nullptr ? bpe->behind() : std::vector<std::int32_t>();
}

std::string TextEncoder::prepared(std::string document) const {
  return tokenizer_.byte_level() != nullptr ? document : prepared_text(std::move(document), tokenizer_.kind(), TextForm::document);
}

std::vector<std::int32_t> TextEncoder::encode(std::string_view text) const { return tokenizer_.encode(text); }

std::string TextEncoder::decode(std::span<const std::int32_t> ids) const {
  const ByteLevelBpe* bpe = tokenizer_.byte_level();
  return bpe != nullptr ? bpe->decode(ids, SpecialIds::kept) : tokenizer_.decode(ids);
}

std::string_view TextEncoder::first_part(std::string_view text, std::size_t limit) const { return tokenizer_.first_part(text, limit); }

std::string TextEncoder::as_it_comes_back(std::string_view text) const {
  const ByteLevelBpe* bpe = tokenizer_.byte_level();
  return bpe != nullptr ? bpe->normalized(text) : std::string(text);
}

}  // namespace tilewave
