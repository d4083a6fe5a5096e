// What the program under test says of itself by --help: its commands, their options, which of them take a value; and whether a sentence
// of its own advises an option that its command lacks. Asked of the program, not of its sources: a new option needs no word here.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {

using CommandPath = std::vector<std::string>;  // {"bench", "gemm"}

struct CommandHelp {
  std::string text;
  std::map<std::string, bool> options;  // whether each takes a value
  std::vector<std::string> commands, positionals;
};

inline std::string leading_word(std::string_view line) { return std::string(line.substr(0, line.find_first_of(" ,=\n"))); }

inline CommandHelp parsed_help(const std::string& text) {
  CommandHelp help{.text = text, .options = {}, .commands = {}, .positionals = {}};
  std::istringstream lines(text);
  std::string heading;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ') heading = line;
    if (!line.starts_with("  ") || line.size() < 3 || line[2] == ' ') continue;
    const std::string_view entry = std::string_view(line).substr(2);
    const std::string word = leading_word(entry);
    const std::string_view behind = entry.substr(word.size());
    if (heading == "Options:" && word.starts_with("--")) {  // a value stands one space behind; a description further
      help.options[word] = behind.size() > 1 && behind[0] == ' ' && behind[1] != ' ' && behind[1] != '(';
    }
    if (heading == "Subcommands:") help.commands.push_back(word);
    if (heading == "Positionals:") help.positionals.push_back(word);
  }
  return help;
}

inline const CommandHelp& help_of(const CommandPath& path) {
  static std::map<CommandPath, CommandHelp> known;
  const auto found = known.find(path);
  if (found != known.end()) return found->second;
  std::string line = quoted(std::filesystem::absolute(test_environment().program).string());
  for (const std::string& word : path) line += " " + quoted(word);
  return known.emplace(path, parsed_help(shell(line + " --help", "/").output)).first->second;
}

// The program itself ({}), its commands and theirs.
inline std::vector<CommandPath> every_command(const CommandPath& from = {}) {
  std::vector<CommandPath> all = {from};
  for (const std::string& name : help_of(from).commands) {
    CommandPath path = from;
    path.push_back(name);
    const std::vector<CommandPath> below = every_command(path);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

inline CommandPath command_in(const std::vector<std::string>& words) {
  CommandPath path;
  for (const std::string& word : words) {
    const std::vector<std::string>& commands = help_of(path).commands;
    if (std::find(commands.begin(), commands.end(), word) == commands.end()) break;
    path.push_back(word);
  }
  return path;
}

// The options that `said` names and neither the command has nor the person typed. "tilewave plan RECIPE --json" is of plan.
inline std::string advised_but_lacking(const std::vector<std::string>& words, const std::string& said) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::set<std::string> lacking;
  for (std::size_t at = said.find("--"); at != std::string::npos; at = said.find("--", at + 2)) {
    const std::size_t end = std::min(said.find_first_not_of(kLetters, at), said.size());
    const std::string option = said.substr(at, end - at);
    const bool begins = at == 0 || std::string_view(" (\"=").find(said[at - 1]) != std::string_view::npos;
    const bool rule = option.find_first_not_of('-') == std::string::npos;  // as mpirun draws them
    if (!begins || rule || option.size() < 4 || std::isdigit(static_cast<unsigned char>(option[2])) != 0 || option == "--help") continue;
    if (std::any_of(words.begin(), words.end(), [&](const std::string& word) { return word.starts_with(option); })) continue;
    CommandPath path = command_in(words);
    const std::size_t clause = said.find_last_of(".;:\n", at) + 1;  // npos + 1 is 0
    const std::size_t named = said.rfind("tilewave ", at);
    if (named != std::string::npos && named >= clause) {
      std::istringstream rest(said.substr(named + 9, at - named - 9));
      std::vector<std::string> named_words;
      for (std::string word; rest >> word;) named_words.push_back(word);
      if (const CommandPath other = command_in(named_words); !other.empty()) path = other;
    }
    if (!help_of(path).options.contains(option)) lacking.insert(option);
  }
  std::string text;
  for (const std::string& option : lacking) text += option + " ";
  return text;
}

}  // namespace tilewave
