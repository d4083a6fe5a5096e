#include "framework/data/prepared_text.h"

#include <utility>

#include "framework/io/text_file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

void drop_mark(std::string& text) {
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
}

void end_lines_with_lf(std::string& text) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\r' || at + 1 == text.size() || text[at + 1] != '\n') text[kept++] = text[at];
  }
  text.resize(kept);
}

}  // namespace

std::string prepared_text(std::string text, TokenizerKind tokenizer, TextForm form) {
  drop_mark(text);
  if (tokenizer != TokenizerKind::bytes || form == TextForm::sentences) end_lines_with_lf(text);
  return text;
}

std::string prepared_file(const std::filesystem::path& path, TokenizerKind tokenizer, TextForm form) {
  std::string text = prepared_text(read_text(path), tokenizer, form);
  TW_CHECK_INPUT(!text.empty(), path, " holds nothing but a byte order mark; text is needed to train on.");
  if (tokenizer != TokenizerKind::bytes) check_utf8(text, path);
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::optional<std::string> LineReader::next() {
  std::string line;
  if (!std::getline(stream_, line)) return std::nullopt;
  if (++number_ == 1) drop_mark(line);
  if (!stream_.eof() && line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace tilewave
