// What standard output and standard error are where a person sits before them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "framework/io/utf8.h"

namespace tilewave {

// Of the terminal that a descriptor is, 80 where it does not say; nothing where it is none.
std::optional<std::size_t> terminal_columns(int descriptor);

// What a model writes, or a file holds, as it goes to standard output: byte for byte into files and pipes; on a terminal, which would take
// control characters for orders, they and what is no UTF-8 are escaped.
std::string for_stdout(std::string_view text, LineEnds line_ends);

// A word as a person types it to a POSIX shell: as it is, or in quotes.
std::string shell_word(std::string_view word);

}  // namespace tilewave
