#include "app/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace tilewave {

std::optional<std::size_t> terminal_columns(int descriptor) {
  constexpr std::size_t kUnknown = 80;
  if (isatty(descriptor) != 1) return std::nullopt;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknown;
}

std::string for_stdout(std::string_view text, LineEnds line_ends) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal ? escaped(text, line_ends) : std::string(text);
}

}  // namespace tilewave
