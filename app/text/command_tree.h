// The command line as data: commands, their options and words, and what completes each value. Completion scripts and the man page are
// made from it; app/options/command_tree.h makes it from the program itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewave {

enum class Completion : std::uint8_t {
  none,         // a number, or a text of one's own
  words,        // one of those that are listed
  assignments,  // a recipe's "section.key=value": those of enumerations in full, of others up to the equals sign
  recipes,      // files that end in .toml
  files,
  folders,
};

struct OptionNode {
  std::string name;    // "--device", or a positional's: "recipe"
  std::string letter;  // "-h", where it has one
  std::string description;
  std::string operand;  // as --help prints it: "TEXT=auto (not with --for)"
  bool takes_value = true;
  bool repeated = false;
  Completion completion = Completion::none;
  std::vector<std::string> words;
};

struct CommandNode {
  std::string path;  // "tilewave bench gemm"
  std::string name;  // "gemm"
  std::string description;
  std::vector<OptionNode> options, positionals;
  std::vector<CommandNode> commands;
};

// The command and all below it, itself first.
inline std::vector<const CommandNode*> all_commands(const CommandNode& command) {
  std::vector<const CommandNode*> all = {&command};
  for (const CommandNode& child : command.commands) {
    const std::vector<const CommandNode*> below = all_commands(child);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

// Every word once, with spaces between.
inline std::string joined(const std::vector<std::string>& words, const std::string& between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// "model.norm=" of "model.norm=pre", each once, in order.
inline std::vector<std::string> keys_of(const std::vector<std::string>& assignments) {
  std::vector<std::string> keys;
  for (const std::string& assignment : assignments) {
    const std::string key = assignment.substr(0, assignment.find('=') + 1);
    if (keys.empty() || keys.back() != key) keys.push_back(key);
  }
  return keys;
}

}  // namespace tilewave
