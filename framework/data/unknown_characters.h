// What of a text its tokenizer does not know: how many of its ids are the unknown one, and the first character it stands for, with its
// place. The bytes tokenizer knows everything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "framework/data/tokenizer.h"

namespace tilewave {

struct EncodedText {
  std::string_view text;
  std::span<const std::int32_t> ids;
  const std::filesystem::path& file;  // empty where the text has none
  std::int64_t line = 1;              // of the file, that the text begins on
};

class UnknownCharacters {
 public:
  void count(const Tokenizer& tokenizer, const EncodedText& encoded);

  std::int64_t ids() const { return unknown_ids_; }
  // "2 of 10 ids of the prompt are unknown ...", ends without a full stop; empty where none is.
  std::string told(std::string_view whose) const;

 private:
  std::int64_t unknown_ids_ = 0, all_ids_ = 0;
  std::string first_;
};

}  // namespace tilewave
