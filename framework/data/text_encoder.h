// Any tokenizer that a person can name, to make ids of documents and text of ids: "bytes"; a tokenizer.json; a SentencePiece model, a run's
// tokenizer.model among them; or a folder that holds one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/tokenizer.h"

namespace tilewave {

class TextEncoder {
 public:
  explicit TextEncoder(const std::string& name);  // InputError where it names no tokenizer

  const std::string& what() const { return what_; }  // "the byte-level BPE of gpt2/tokenizer.json"
  std::int64_t vocabulary() const;
  std::vector<std::string> facts() const;  // a phrase each
  std::optional<std::int32_t> find(std::string_view token) const;
  const Tokenizer& tokenizer() const { return tokenizer_; }

  // The special ids that the tokenizer's file puts before and behind a document.
  std::vector<std::int32_t> before() const;
  std::vector<std::int32_t> behind() const;

  std::string prepared(std::string document) const;               // what is encoded of it: framework/data/prepared_text.h; of a
                                                                  // tokenizer.json as it is
  std::vector<std::int32_t> encode(std::string_view text) const;  // without the ids around
  std::string decode(std::span<const std::int32_t> ids) const;    // special tokens of a tokenizer.json are text
  std::string_view first_part(std::string_view text, std::size_t limit) const;  // as byte_level_bpe.h has it
  std::string as_it_comes_back(std::string_view text) const;                    // what decode(encode(text)) should be

 private:
  std::string what_;
  Tokenizer tokenizer_;
};

}  // namespace tilewave
