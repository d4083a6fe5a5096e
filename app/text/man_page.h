// The man page tilewave(1), in the macros of man(7), from the help of the program.
#pragma once

#include <string>

#include "app/text/command_tree.h"

namespace tilewave {

std::string man_page(const CommandNode& program, const std::string& version);

}  // namespace tilewave
