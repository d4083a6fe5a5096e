// What completes each value of the command line: a table, beside what options say of themselves (ranges of numbers, lists of words).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/options/command_tree.h"

namespace tilewave {

struct CompletedValue {
  std::string_view command;  // "ablate", or empty: every one that has no row of its own
  std::string_view name;     // "--out", or a positional's
  Completion completion = Completion::none;
  std::vector<std::string> (*words)() = nullptr;
};

std::span<const CompletedValue> completed_values();

// The row of a value of a command's path, or null.
const CompletedValue* find_completed_value(std::string_view path, std::string_view name);

// The whole command line of the program.
CommandNode described_command_line(const CLI::App& program);

}  // namespace tilewave
