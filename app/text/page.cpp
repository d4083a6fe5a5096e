#include "app/text/page.h"

#include <algorithm>

#include "app/text/terminal.h"
#include "framework/io/utf8.h"

namespace tilewave {
namespace {

using namespace std::string_view_literals;

// Of the first `characters` of the text.
std::size_t bytes_of(std::string_view text, std::size_t characters) {
  std::size_t at = 0;
  for (; characters > 0 && at < text.size(); --characters) at += std::max<std::size_t>(1, character_bytes(text.substr(at)));
  return std::min(at, text.size());
}

// The space before the word that ends at `cut` where that word is a number, which stays with its unit.
std::size_t number_before(const std::string& line, std::size_t cut) {
  if (cut == std::string::npos || cut == 0) return std::string::npos;
  const std::size_t space = line.rfind(' ', cut - 1);
  if (space == std::string::npos || line.find_first_not_of("0123456789.,", space + 1) != cut) return std::string::npos;
  return "0123456789"sv.find(line[cut - 1]) == std::string_view::npos ? std::string::npos : space;
}

void append_wrapped(std::string& result, std::string line, const Page& page, std::size_t hang) {
  std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string continuation(indent + hang, ' ');
  while (width_of(line) > page.columns) {
    std::size_t cut = line.rfind(' ', bytes_of(line, page.columns));
    if (const std::size_t before = number_before(line, cut); before != std::string::npos && before > indent) cut = before;
    if (cut == std::string::npos || cut <= indent) cut = line.find(' ', indent + 1);
    if (cut == std::string::npos) break;
    const std::size_t next = line.find_first_not_of(' ', cut);
    result.append(line, 0, line.find_last_not_of(' ', cut) + 1).append("\n");
    line.replace(0, std::min(next, line.size()), next == std::string::npos ? std::string() : continuation);
    indent = continuation.size();
  }
  result += line;
}

}  // namespace

Page page_of(int descriptor, Columns columns) {
  if (columns == Columns::all) return {.columns = Page::kUnbounded};
  return {.columns = std::clamp(terminal_columns(descriptor).value_or(Page::kMax), Page::kLeast, Page::kMax)};
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++width) at += std::max<std::size_t>(1, character_bytes(text.substr(at)));
  return width;
}

std::string wrapped(std::string_view text, const Page& page, std::size_t hang) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    append_wrapped(result, std::string(text.substr(begin, end - begin)), page, hang);
    if (end < text.size()) result += '\n';
    begin = end + 1;
  }
  return result;
}

}  // namespace tilewave
