// What a shell completes at a prompt, as a script of that shell: commands, options, their values, files. A script is complete in itself:
// it starts no program.
#pragma once

#include <string>

#include "app/text/command_tree.h"

namespace tilewave {

std::string bash_completion(const CommandNode& program);
std::string zsh_completion(const CommandNode& program);
std::string fish_completion(const CommandNode& program);

}  // namespace tilewave
