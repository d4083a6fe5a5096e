// Text as a person brings it, any bytes: read whole, cut where characters end, and held against UTF-8. What cannot be read, or is empty,
// is an InputError that names the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tilewave {

// The whole file; memory is bounded by its size. Regular files only: a pipe or a device has no size to go by.
std::string read_text(const std::filesystem::path& path);

// The beginning of at most `limit` bytes that ends with a whole UTF-8 character, where the text is UTF-8.
std::string_view whole_characters(std::string_view text, std::size_t limit);

// The text without the beginning of a UTF-8 character that it ends in: what can be shown while more is to come.
std::string_view finished_characters(std::string_view text);

// The longest beginning of at most `limit` bytes that ends behind a separator; without one, of whole characters.
std::string_view first_part(std::string_view text, std::size_t limit, char separator);

// Where the first byte stands that no UTF-8 text has there (overlong forms, surrogates and U+110000 onward included).
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Throws InputError with file and line where the text is not UTF-8.
void check_utf8(std::string_view text, const std::filesystem::path& path);

}  // namespace tilewave
