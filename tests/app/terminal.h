// A terminal that a program under test may be given for its streams, and what it was sent.
#pragma once

#include <pty.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include "kernels/core/error.h"

namespace tilewave {

// Bytes as a terminal of that many columns receives them.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    TW_CHECK(::openpty(&screen_, &terminal_, nullptr, nullptr, &size) == 0, "no terminal could be opened.");
    reader_ = std::thread([this] {
      char bytes[4096];
      for (ssize_t count; (count = ::read(screen_, bytes, sizeof bytes)) > 0;) shown_.append(bytes, static_cast<std::size_t>(count));
    });
  }
  ~Terminal() { close(); }
  int descriptor() const { return terminal_; }
  const std::string& close() {  // once its program has ended
    if (terminal_ >= 0) ::close(std::exchange(terminal_, -1));
    if (reader_.joinable()) reader_.join();
    if (screen_ >= 0) ::close(std::exchange(screen_, -1));
    return shown_;
  }

 private:
  int screen_ = -1, terminal_ = -1;
  std::string shown_;
  std::thread reader_;
};

}  // namespace tilewave
