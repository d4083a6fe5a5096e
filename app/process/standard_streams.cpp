#include "app/process/standard_streams.h"

#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace tilewave {

void occupy_standard_streams() {
  constexpr std::array kFlags = {O_RDONLY, O_RDONLY, O_WRONLY};  // standard output for reading alone: a write to it must fail
  for (int stream = 0; stream < static_cast<int>(kFlags.size()); ++stream) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    const int opened = open("/dev/null", kFlags[static_cast<std::size_t>(stream)]);  // the lowest number that is free
    if (opened < 0) open("/", O_RDONLY | O_DIRECTORY);                               // where there is no /dev/null
  }
}

}  // namespace tilewave
