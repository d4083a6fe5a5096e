// What is done to a person's text before a tokenizer sees it: once, here, and the same for training, validation, prompts and lines to
// translate.
//   1. a byte order mark (EF BB BF) at its beginning is dropped
//   2. line ends CR LF become LF; only a document of the bytes tokenizer keeps its own, since there every byte counts
//   3. for every tokenizer but bytes it must be UTF-8
// Nothing else is changed. NUL, a CR that no LF follows and every other control character are characters like any other; so are the kinds
// of spaces; and é stays different from e with U+0301, whichever of them the text has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/tokenizer.h"

namespace tilewave {

std::string prepared_text(std::string text, TokenizerKind tokenizer, TextForm form);

// A whole file, prepared. InputError, with file and line, where it cannot be read, holds no text or is not UTF-8 and should be.
std::string prepared_file(const std::filesystem::path& path, TokenizerKind tokenizer, TextForm form);

// The lines of a prepared text, without the LF they end with; the last one may end with the text.
std::vector<std::string_view> split_lines(std::string_view text);

// The lines of a stream, prepared as those of a file with sentences are.
class LineReader {
 public:
  explicit LineReader(std::istream& stream) : stream_(stream) {}

  std::optional<std::string> next();
  std::int64_t number() const { return number_; }  // of the line that was read last, from 1 on

 private:
  std::istream& stream_;
  std::int64_t number_ = 0;
};

}  // namespace tilewave
