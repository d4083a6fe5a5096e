// This machine's name, as a person with several of them knows it.
#pragma once

#include <string>

namespace tilewave {

std::string host_name();  // "a host without a name" where the system does not tell

}  // namespace tilewave
