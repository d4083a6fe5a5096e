#include "framework/io/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "framework/io/utf8.h"
#include "kernels/core/error.h"

namespace tilewave {

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  TW_CHECK_INPUT(std::filesystem::exists(status), path, " does not exist; check the path, which is taken from the current folder.");
  TW_CHECK_INPUT(!std::filesystem::is_directory(status), path, " is a folder; name a text file in it.");
  TW_CHECK_INPUT(std::filesystem::is_regular_file(status), path, " is not a regular file; copy its content to one.");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  TW_CHECK_INPUT(!error, path, " has no size: ", error.message(), ".");
  TW_CHECK_INPUT(size > 0, path, " is empty; text is needed to train on.");

  errno = 0;
  std::ifstream file(path, std::ios::binary);
  TW_CHECK_INPUT(file, path, " cannot be opened: ", std::strerror(errno), ".");
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  TW_CHECK_INPUT(file, path, " cannot be read to its end: ", file.gcount(), " of ", size, " bytes came.");
  return text;
}

std::string_view whole_characters(std::string_view text, std::size_t limit) {
  std::size_t length = std::min(limit, text.size());
  for (int back = 0; back < 3 && length > 1 && length < text.size(); ++back) {
    if ((static_cast<unsigned char>(text[length]) & 0xC0u) != 0x80u) break;
    --length;
  }
  return text.substr(0, length);
}

std::string_view finished_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0u) == 0x80u) continue;  // it continues a character
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return text.substr(0, back < length ? text.size() - back : text.size());
  }
  return text;
}

std::string_view first_part(std::string_view text, std::size_t limit, char separator) {
  if (text.size() <= limit) return text;
  const std::size_t at = text.rfind(separator, limit - 1);
  return at != std::string_view::npos ? text.substr(0, at + 1) : whole_characters(text, limit);
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : character_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

void check_utf8(std::string_view text, const std::filesystem::path& path) {
  if (const std::optional<std::size_t> at = find_invalid_utf8(text)) {
    const std::string_view before = text.substr(0, *at);
    const std::size_t newline = before.rfind('\n');
    throw InputError(concat(path, ", line ", 1 + std::count(before.begin(), before.end(), '\n'), ", byte ",
                            newline == std::string_view::npos ? *at + 1 : *at - newline,
                            R"(: not UTF-8, which data.tokenizer = "bpe" needs; convert the file, or use data.tokenizer = "bytes".)"));
  }
}

}  // namespace tilewave
