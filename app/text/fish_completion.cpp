// fish: a `complete` for each command, option and position, under the condition that the words before the cursor lead there.
#include "app/text/completion_scripts.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' || c == '\\' ? concat('\\', c) : std::string(1, c);
  return result + "'";
}

std::string values(const OptionNode& option) {
  switch (option.completion) {
    case Completion::none:
      return option.takes_value ? " -x" : "";
    case Completion::words:
      return " -x -a " + quoted(joined(option.words));
    case Completion::assignments:
      return " -x -a '(__tilewave_assignments)'";
    case Completion::recipes:
      return " -x -a '(__tilewave_recipes)'";
    case Completion::files:
      return " -r -F";
    case Completion::folders:
      return " -x -a '(__fish_complete_directories (commandline -ct))'";
  }
  return "";
}

std::string positional_values(const OptionNode& word) {
  if (word.completion == Completion::none) return "";
  const std::string text = values(word);  // without what makes it an option's
  return word.completion == Completion::files ? " -F" : text.substr(text.find(" -a"));
}

std::string complete(const std::string& path, const std::string& rest) {
  return concat("complete -c tilewave -n \"__tilewave_at '", path, "'\"", rest, '\n');
}

std::string completes_of(const CommandNode& command) {
  std::string text = "\n";
  for (const CommandNode& child : command.commands) {
    text += complete(command.path, concat(" -a ", quoted(child.name), " -d ", quoted(child.description)));
  }
  for (const OptionNode& option : command.options) {
    const std::string letter = option.letter.empty() ? "" : " -s " + option.letter.substr(1);
    text += complete(command.path, concat(letter, " -l ", option.name.substr(2), values(option), " -d ", quoted(option.description)));
  }
  for (const OptionNode& word : command.positionals) {
    const std::string offered = positional_values(word);
    if (!offered.empty()) text += complete(command.path, concat(offered, " -d ", quoted(word.name)));
  }
  return text;
}

}  // namespace

std::string fish_completion(const CommandNode& program) {
  std::string paths, completes, keys, assignments;
  for (const CommandNode* command : all_commands(program)) {
    paths += " " + quoted(command->path);
    completes += completes_of(*command);
    for (const OptionNode& option : command->options) {
      if (option.completion != Completion::assignments) continue;
      keys = joined(keys_of(option.words));
      assignments = joined(option.words);
    }
  }
  return concat(
      "# Completion of tilewave in fish, as `tilewave completion fish` prints it. To have it: save this as\n"
      "# ~/.config/fish/completions/tilewave.fish.\n\nset -g __tilewave_commands",
      paths, R"fish(

# Whether the words before the cursor lead to this command.
function __tilewave_at
    set -l path tilewave
    for word in (commandline -opc)[2..]
        contains -- "$path $word" $__tilewave_commands; and set path "$path $word"
    end
    test "$path" = "$argv[1]"
end

# Files that end in .toml, and folders on the way to them.
function __tilewave_recipes
    set -l word (commandline -ct)
    for path in $word*.toml $word*/
        echo $path
    end
end

# A recipe's key, or where its equals sign is there, its values.
function __tilewave_assignments
    if string match -q '*=*' -- (commandline -ct | string replace -r '^--[a-z-]*=' '')
        printf '%s\n' )fish",
      assignments, "\n    else\n        printf '%s\\n' ", keys, "\n    end\nend\n\ncomplete -c tilewave -f\n", completes);
}

}  // namespace tilewave
