// zsh: a function for each command, in the words of _arguments.
#include <algorithm>

#include "app/text/completion_scripts.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

// Within single quotes, where _arguments takes brackets and colons for its own.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      result += concat('\\', c);
    } else {
      result += c;
    }
  }
  return result;
}

std::string function_of(const std::string& path) {
  std::string name = "_" + path;
  std::replace(name.begin(), name.end(), ' ', '_');
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string action(const OptionNode& option) {
  switch (option.completion) {
    case Completion::none:
      return " ";
    case Completion::words:
      return "(" + escaped(joined(option.words)) + ")";
    case Completion::assignments:
      return "_tilewave_assignments";
    case Completion::recipes:
      return "_files -g \"*.toml\"";
    case Completion::files:
      return "_files";
    case Completion::folders:
      return "_files -/";
  }
  return " ";
}

// "--device=[where to run]:value:(auto cpu)"
std::string option_spec(const OptionNode& option) {
  std::string text = concat(option.repeated ? "*" : "", option.name, option.takes_value ? "=" : "", '[', escaped(option.description), ']');
  if (option.takes_value) text += concat(':', escaped(option.name.substr(2)), ':', action(option));
  return concat(" \\\n    '", text, '\'');
}

std::string function_text(const CommandNode& command) {
  std::string text = concat(function_of(command.path), "() {\n");
  std::string specs;
  for (const OptionNode& option : command.options) specs += option_spec(option);
  if (command.commands.empty()) {
    for (std::size_t i = 0; i < command.positionals.size(); ++i) {
      const OptionNode& word = command.positionals[i];
      specs += concat(" \\\n    '", word.repeated ? "*" : std::to_string(i + 1), ':', escaped(word.name), ':', action(word), '\'');
    }
    return concat(text, "  _arguments", specs, "\n}\n\n");
  }
  std::string names, calls;
  for (const CommandNode& child : command.commands) {
    names += concat(" \\\n        '", child.name, ':', escaped(child.description), '\'');
    calls += concat("        ", child.name, ") ", function_of(child.path), " ;;\n");
  }
  return concat(text, "  local curcontext=$curcontext state line\n  local -a commands\n  typeset -A opt_args\n  _arguments -C", specs,
                " \\\n    '1: :->command' \\\n    '*:: :->rest' && return\n  case $state in\n    command)\n      commands=(", names,
                ")\n      _describe command commands\n      ;;\n    rest)\n      case $words[1] in\n", calls,
                "      esac\n      ;;\n  esac\n}\n\n");
}

}  // namespace

std::string zsh_completion(const CommandNode& program) {
  std::string functions, keys, assignments;
  for (const CommandNode* command : all_commands(program)) {
    functions += function_text(*command);
    for (const OptionNode& option : command->options) {
      if (option.completion != Completion::assignments) continue;
      keys = joined(keys_of(option.words));
      assignments = joined(option.words);
    }
  }
  return concat(
      "#compdef tilewave\n# Completion of tilewave in zsh, as `tilewave completion zsh` prints it. To have it: save this as _tilewave in a "
      "folder of $fpath.\n\n_tilewave_assignments() {\n  if [[ $PREFIX == *=* ]]; then\n    compadd -- ",
      assignments, "\n  else\n    compadd -S '' -- ", keys, "\n  fi\n}\n\n", functions,
      "if [[ $funcstack[1] == _tilewave ]]; then\n  _tilewave \"$@\"\nelse\n  compdef _tilewave tilewave\nfi\n");
}

}  // namespace tilewave
