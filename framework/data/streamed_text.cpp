#include "framework/data/streamed_text.h"

#include "framework/data/text_file.h"

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
    ids_.erase(ids_.begin(), ids_.end() - 1);  // the last one stays before the next, whose space is none at a text's beginning
    told_ = tokenizer_.decode(ids_).size();
  }
  return added;
}

std::string StreamedText::rest() const { return tokenizer_.decode(ids_).substr(told_); }

}  // namespace tilewave
