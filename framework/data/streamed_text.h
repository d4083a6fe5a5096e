// Text as its ids are drawn: what each adds is told once no later id can change it, at a cost that does not grow with the text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/data/tokenizer.h"

namespace tilewave {

class StreamedText {
 public:
  explicit StreamedText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}  // which must outlive it

  // What the ids add to the text, whole characters only: one may take several ids.
  std::string add(std::span<const std::int32_t> ids);

  std::string rest() const;  // of a character that was never finished

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;  // those alone that the next ones' text depends on
  std::size_t told_ = 0;           // bytes of their text
};

}  // namespace tilewave
