#include "framework/distributed/host_name.h"

#include <array>
#include <unistd.h>

namespace tilewave {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "a host without a name";
  return name.data();
}

}  // namespace tilewave
