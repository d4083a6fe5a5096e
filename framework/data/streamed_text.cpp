#include "framework/data/streamed_text.h"

#include "framework/io/text_file.h"

namespace tilewave {
namespace {

constexpr std::size_t kDecodedAtATime = 64;  // ids

}  // namespace

std::string StreamedText::add(std::span<const std::int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  const std::string text = tokenizer_.decode(ids_);
  const std::size_t finished = finished_characters(text).size();
  std::string added = text.substr(told_, finished - told_);
  told_ = finished;
  if (told_ == text.size() && ids_.size() > kDecodedAtATime) {
    // One with a text stays before the next, whose space is none at a text's beginning.
    const std::string last = tokenizer_.decode(std::span(ids_).last(1));
    if (!last.empty()) {
      ids_.erase(ids_.begin(), ids_.end() - 1);
      told_ = last.size();
    }
  }
  return added;
}

std::string StreamedText::rest() const { return tokenizer_.decode(ids_).substr(told_); }

}  // namespace tilewave
