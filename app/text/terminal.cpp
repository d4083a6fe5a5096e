#include "app/text/terminal.h"

#include <unistd.h>

namespace tilewave {

std::string for_stdout(std::string_view text, LineEnds line_ends) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal ? escaped(text, line_ends) : std::string(text);
}

}  // namespace tilewave
