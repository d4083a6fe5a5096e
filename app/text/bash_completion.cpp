// bash: one function that walks the words before the cursor and asks two tables, what a command has and how a value is completed.
// Works with bash 3.2 and without the package bash-completion. bash ends words at = and :, which values hold: they are joined again.
#include "app/text/completion_scripts.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr const char* kOpening =
    R"sh(# Completion of tilewave in bash, as `tilewave completion bash` prints it. To have it: source this file.
)sh";

constexpr const char* kWalk = R"sh(
# The words up to the cursor, joined where bash ended them at = or :.
_tilewave_line() {
  local i word last=''
  line=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i > 0)) && [[ $word == [=:]* || ( $last == *[=:] && -n $word ) ]]; then
      last+=$word
      line[${#line[@]}-1]=$last
    else
      last=$word
      line+=("$word")
    fi
  done
}

_tilewave_candidates() {
  case $1 in
    words) compgen -W "$words" -- "$value" ;;
    assignments) if [[ $value == *=* ]]; then compgen -W "$words" -- "$value"; else compgen -W "$keys" -- "$value"; fi ;;
    recipes) compgen -f -X '!*.toml' -- "$value"; compgen -d -- "$value" ;;
    files) compgen -f -- "$value" ;;
    folders) compgen -d -- "$value" ;;
  esac
}

_tilewave() {
  local IFS=$' \t\n' path=tilewave positional=0 awaited='' ends='' used=' ' word value prefix found
  local completion='' words='' keys='' commands='' options='' repeated=''
  local -a line
  _tilewave_line
  COMPREPLY=()
  ((${#line[@]} > 1)) || return 0
  value=${line[${#line[@]}-1]}
  for word in "${line[@]:1:${#line[@]}-2}"; do
    _tilewave_command "$path"
    if [[ -n $awaited ]]; then
      awaited=
    elif [[ $word == -- ]]; then
      ends=yes
    elif [[ -z $ends && $word == -* ]]; then
      used+="${word%%=*} "
      [[ $word == *=* ]] || ! _tilewave_value "$path $word" || awaited=$word
    elif [[ -z $ends && " $commands " == *" $word "* ]]; then
      path+=" $word" used=' '
    else
      positional=$((positional + 1))
    fi
  done
  _tilewave_command "$path"
  completion=
  if [[ -n $awaited ]]; then
    _tilewave_value "$path $awaited"
  elif [[ -z $ends && $value == --*=* ]]; then
    _tilewave_value "$path ${value%%=*}"
    value=${value#*=}
  elif [[ -z $ends && $value == -* ]]; then
    completion=words words=''
    for word in $options; do
      [[ $used == *" $word "* && " $repeated " != *" $word "* ]] || words+="$word "
    done
  elif [[ -n $commands ]]; then
    completion=words words=$commands
  else
    _tilewave_value "$path $positional" || _tilewave_value "$path ..." || true
  fi
  prefix=${value%"${value##*[=:]}"}
  found=$(_tilewave_candidates "$completion")
  while IFS= read -r word; do
    [[ -z $word ]] || COMPREPLY+=("$word")
  done <<<"$found"
  ((!${#COMPREPLY[@]})) || COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
  case $completion in recipes | files | folders) compopt -o filenames 2>/dev/null ;; esac
  [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
}

complete -F _tilewave tilewave
)sh";

const char* name_of(Completion completion) {
  switch (completion) {
    case Completion::none:
      return "none";
    case Completion::words:
      return "words";
    case Completion::assignments:
      return "assignments";
    case Completion::recipes:
      return "recipes";
    case Completion::files:
      return "files";
    case Completion::folders:
      return "folders";
  }
  return "none";
}

std::string value_case(const std::string& where, const OptionNode& option) {
  std::string text = concat("    '", where, "') completion=", name_of(option.completion));
  if (!option.words.empty()) text += concat(" words='", joined(option.words), '\'');
  if (option.completion == Completion::assignments) text += concat(" keys='", joined(keys_of(option.words)), '\'');
  return text + " ;;\n";
}

}  // namespace

std::string bash_completion(const CommandNode& program) {
  std::string commands, values;
  for (const CommandNode* command : all_commands(program)) {
    std::vector<std::string> children, options, repeated;
    for (const CommandNode& child : command->commands) children.push_back(child.name);
    for (const OptionNode& option : command->options) {
      options.push_back(option.name);
      if (option.repeated) repeated.push_back(option.name);
      if (option.takes_value) values += value_case(command->path + " " + option.name, option);
    }
    for (std::size_t i = 0; i < command->positionals.size(); ++i) {
      const OptionNode& word = command->positionals[i];
      values += value_case(command->path + " " + (word.repeated ? "..." : std::to_string(i)), word);
    }
    commands += concat("    '", command->path, "') commands='", joined(children), "' options='", joined(options), "' repeated='",
                       joined(repeated), "' ;;\n");
  }
  return concat(kOpening, "\n# What a command has.\n_tilewave_command() {\n  case $1 in\n", commands,
                "  esac\n}\n\n# How the value of an option, or the word at a position, is completed.\n_tilewave_value() {\n  case $1 in\n",
                values, "    *) return 1 ;;\n  esac\n}\n", kWalk);
}

}  // namespace tilewave
