// What a model writes, or a file holds, as it goes to standard output: byte for byte into files and pipes; on a terminal, which would take
// control characters for orders, they and what is no UTF-8 are escaped.
#pragma once

#include <string>
#include <string_view>

#include "framework/io/utf8.h"

namespace tilewave {

std::string for_stdout(std::string_view text, LineEnds line_ends);

}  // namespace tilewave
