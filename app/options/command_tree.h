// The command line as data, read off the program's own options: a new command or option needs no word here.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "app/text/command_tree.h"

namespace tilewave {

struct Offered {
  Completion completion = Completion::none;
  std::vector<std::string> words;
};

// What completes an option's value, or a positional's, where the option itself does not say it: (command's path, option's name).
using OfferedBy = std::function<Offered(const std::string&, const std::string&)>;

CommandNode command_tree(const CLI::App& program, const OfferedBy& offered);

}  // namespace tilewave
