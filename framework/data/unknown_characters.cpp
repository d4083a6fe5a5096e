#include "framework/data/unknown_characters.h"

#include <algorithm>
#include <optional>

#include "framework/io/utf8.h"
#include "kernels/core/error.h"

namespace tilewave {

void UnknownCharacters::count(const Tokenizer& tokenizer, const EncodedText& encoded) {
  const std::optional<std::int32_t> id = tokenizer.unknown();
  const std::int64_t unknown = id ? std::ranges::count(encoded.ids, *id) : 0;
  all_ids_ += std::ssize(encoded.ids);
  unknown_ids_ += unknown;
  if (unknown == 0 || !first_.empty()) return;
  const std::optional<std::size_t> at = tokenizer.find_unknown(encoded.text);
  if (!at) return;
  const std::string_view before = encoded.text.substr(0, *at), rest = encoded.text.substr(*at);
  first_ = named_character(code_point(rest.substr(0, character_bytes(rest))));
  if (!encoded.file.empty()) {
    first_ += concat(" in ", encoded.file.string(), ", line ", encoded.line + std::ranges::count(before, '\n'));
  }
}

std::string UnknownCharacters::told(std::string_view whose) const {
  if (unknown_ids_ == 0) return {};
  return concat(unknown_ids_, " of ", all_ids_, " ids of ", whose, unknown_ids_ == 1 ? " is" : " are",
                " unknown to the tokenizer, which knows no character but those of the text it was trained on",
                first_.empty() ? "" : "; the first stands for ", first_);
}

}  // namespace tilewave
