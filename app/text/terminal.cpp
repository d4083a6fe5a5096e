#include "app/text/terminal.h"

#include <algorithm>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tilewave {

std::optional<std::size_t> terminal_columns(int descriptor) {
  constexpr std::size_t kUnknown = 80;
  if (isatty(descriptor) != 1) return std::nullopt;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknown;
}

std::string shell_word(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_-./+=:,@%").find(c) < 10;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string for_stdout(std::string_view text, LineEnds line_ends) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal ? escaped(text, line_ends) : std::string(text);
}

}  // namespace tilewave
