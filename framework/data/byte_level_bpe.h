// Byte-level BPE as Hugging Face's tokenizers has it: text is cut at added tokens, normalized, cut into words by patterns, and the bytes of
// each word are merged pair by pair in the order of the merges. Ids are those of the file. A tokenizer is cheap to copy, and one may be
// used by several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewave {

enum class SpecialIds : std::uint8_t { left_out, kept };

class ByteLevelBpe {
 public:
  static ByteLevelBpe load(const std::filesystem::path& path);  // a tokenizer.json; InputError where it is none that is handled
  static ByteLevelBpe parse(std::string_view json, std::string_view origin);

  std::int64_t vocabulary() const;                                // ids are below it
  bool has(std::int32_t id) const;                                // a token, special or not
  std::optional<std::int32_t> find(std::string_view text) const;  // the token whose text is this
  std::vector<std::string> facts() const;                         // what was found in the file, a phrase each
  const std::vector<std::int32_t>& before() const;                // the special ids that the file puts before a text
  const std::vector<std::int32_t>& behind() const;                // and behind it

  // The longest beginning of at most `limit` bytes, or what is just longer, whose ids are the same by themselves as before the rest; all of
  // the text where that is not known.
  std::string_view first_part(std::string_view text, std::size_t limit) const;

  // `kept`: with the special ids that the file puts around a text. InputError where the text is no UTF-8.
  std::vector<std::int32_t> encode(std::string_view text, SpecialIds around) const;
  std::string normalized(std::string_view text) const;  // of text without added tokens, what its ids stand for
  // Bytes, which end within a character where the ids do. `left_out`: special tokens are nothing, as are ids that no token has.
  std::string decode(std::span<const std::int32_t> ids, SpecialIds special) const;

 private:
  struct Model;
  explicit ByteLevelBpe(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

}  // namespace tilewave
