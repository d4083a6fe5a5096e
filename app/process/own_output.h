// This program once more, for what it prints.
#pragma once

#include <string>
#include <vector>

namespace tilewave {

// What it writes to stdout. Where it fails, an Error with the sentence that it ended with, or an InputError where it has exit code 2.
std::string own_output(const std::vector<std::string>& arguments);

}  // namespace tilewave
