// What shells complete: every command and option that --help lists, the words that values may be, files. Each script is read by its shell.
#include "app/commands/completion.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "app/options/command.h"
#include "app/options/usage.h"
#include "app/text/completion_scripts.h"
#include "tests/app/process.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.insert(line);
  }
  return lines;
}

class Shells : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
    write_text(folder_.path() / "mine.toml", "");
    write_text(folder_.path() / "notes.txt", "");
    fs::create_directory(folder_.path() / "more recipes");
    const std::string program = quoted(fs::absolute(test_environment().program).string());
    for (const char* name : {"bash", "zsh", "fish"}) {
      const Outcome outcome = shell(program + " completion " + name + " >completion." + name, folder_.path());
      ASSERT_EQ(outcome.status, 0) << outcome.output;
    }
  }

  bool there_is(const std::string& name) { return shell("command -v " + name, "/").status == 0; }

  // What bash offers behind the line, as readline asks it: = and : end words and are words, and none follows one at the line's end.
  std::set<std::string> bash(const std::string& line) {
    write_text(folder_.path() / "ask.bash", R"sh(
source ./completion.bash
line=$1
COMP_WORDS=() word=
for ((i = 0; i < ${#line}; i++)); do
  c=${line:i:1}
  case $c in
    ' ') [[ -z $word ]] || COMP_WORDS+=("$word"); word= ;;
    [=:]) [[ -z $word ]] || COMP_WORDS+=("$word"); COMP_WORDS+=("$c"); word= ;;
    *) word+=$c ;;
  esac
done
[[ -z $word && $line != *' ' ]] || COMP_WORDS+=("$word")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
compopt() { echo "compopt $*" >>options; }
_tilewave
printf '%s\n' "${COMPREPLY[@]}"
)sh");
    fs::remove(folder_.path() / "options");
    const Outcome outcome = shell("bash --norc -u ask.bash " + quoted(line), folder_.path());
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.output;
    return lines_of(outcome.output);
  }

  std::string bash_options() { return fs::exists(folder_.path() / "options") ? file_text(folder_.path() / "options") : ""; }

  std::set<std::string> fish(const std::string& line) {
    const Outcome outcome =
        shell("HOME=$PWD fish --no-config -c 'source completion.fish; complete -C " + quoted(quoted(line)).substr(1), folder_.path());
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.output;
    std::set<std::string> words;
    for (const std::string& one : lines_of(outcome.output)) words.insert(one.substr(0, one.find('\t')));
    return words;
  }

  TemporaryFolder folder_;
};

TEST_F(Shells, BashCompletesEveryCommandAndOption) {
  ASSERT_TRUE(there_is("bash"));
  std::size_t options = 0;
  for (const CommandPath& path : every_command()) {
    std::string line = "tilewave ";
    for (const std::string& word : path) line += word + " ";
    const std::vector<std::string>& commands = help_of(path).commands;
    if (!commands.empty()) {
      EXPECT_EQ(bash(line), std::set<std::string>(commands.begin(), commands.end())) << line;
    }
    std::set<std::string> expected;
    for (const auto& [option, takes_value] : help_of(path).options) expected.insert(option);
    if (!help_of(path).text.empty()) expected.insert("--help");
    const std::set<std::string> offered = bash(line + "--");
    EXPECT_EQ(offered, expected) << line;
    options += offered.size();
  }
  EXPECT_GE(options, 90U);
}

TEST_F(Shells, TheScriptOfBashIsClean) {
  if (!there_is("shellcheck")) GTEST_SKIP() << "there is no shellcheck";
  const Outcome outcome = shell("shellcheck --shell=bash completion.bash", folder_.path());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST_F(Shells, BashCompletesValues) {
  using Words = std::set<std::string>;
  EXPECT_EQ(bash("tilewave tra"), (Words{"train", "translate"}));
  EXPECT_EQ(bash("tilewave train --device "), (Words{"auto", "cpu", "cuda"}));
  EXPECT_EQ(bash("./tilewave train --device=c"), (Words{"cpu", "cuda"}));
  EXPECT_EQ(bash("tilewave bench gemm --pitch p"), Words{"packed"});
  EXPECT_TRUE(bash("tilewave plan --for ").contains("h200"));
  EXPECT_EQ(bash("tilewave plan --precision b"), Words{"bf16"});
  EXPECT_TRUE(bash("tilewave bench op ").contains("layer_norm"));
  EXPECT_TRUE(bash("tilewave bench op layer_norm ").contains("add"));
  EXPECT_EQ(bash("tilewave completion "), (Words{"bash", "fish", "zsh"}));
}

TEST_F(Shells, BashCompletesRecipesKeysAndTheirValues) {
  using Words = std::set<std::string>;
  EXPECT_EQ(bash("tilewave train a.toml --set model.d_m"), Words{"model.d_model="});
  EXPECT_EQ(bash_options(), "compopt -o nospace\n");
  EXPECT_EQ(bash("tilewave train a.toml --set model.nor"), (Words{"model.norm=", "model.norm_kind="}))
      << "its values come behind the equals sign";
  EXPECT_EQ(bash("tilewave train a.toml --set model.norm="), (Words{"pre", "post"}));
  EXPECT_EQ(bash("tilewave train a.toml --set=model.norm=po"), Words{"post"});
  EXPECT_EQ(bash("tilewave train a.toml --set model.tied=f"), Words{"false"});
  EXPECT_TRUE(bash("tilewave train a.toml --set model.norm=pre --").contains("--set")) << "it may be repeated";
  EXPECT_FALSE(bash("tilewave train a.toml --device cpu --").contains("--device")) << "it holds one value";
}

TEST_F(Shells, BashCompletesFiles) {
  using Words = std::set<std::string>;
  EXPECT_EQ(bash("tilewave train "), (Words{"mine.toml", "more recipes"}));
  EXPECT_EQ(bash_options(), "compopt -o filenames\n");
  EXPECT_EQ(bash("tilewave train --device cpu m"), (Words{"mine.toml", "more recipes"}));
  EXPECT_EQ(bash("tilewave inspect n"), Words{"notes.txt"});
  EXPECT_EQ(bash("tilewave generate m"), Words{"more recipes"});
  EXPECT_EQ(bash("tilewave train mine.toml "), Words{});
  EXPECT_EQ(bash("tilewave check mine.toml --seed "), Words{});
}

TEST_F(Shells, FishCompletesCommandsOptionsValuesAndFiles) {
  if (!there_is("fish")) GTEST_SKIP() << "there is no fish";
  using Words = std::set<std::string>;
  EXPECT_EQ(fish("tilewave tra"), (Words{"train", "translate"}));
  for (const CommandPath& path : every_command()) {
    std::string line = "tilewave ";
    for (const std::string& word : path) line += word + " ";
    const Words offered = fish(line + "--");
    for (const auto& [option, takes_value] : help_of(path).options) EXPECT_TRUE(offered.contains(option)) << line << option;
  }
  EXPECT_EQ(fish("tilewave train --device c"), (Words{"cpu", "cuda"}));
  EXPECT_EQ(fish("tilewave train a.toml --set model.d_m"), Words{"model.d_model="});
  EXPECT_EQ(fish("tilewave train a.toml --set model.norm="), (Words{"model.norm=pre", "model.norm=post"}));
  EXPECT_TRUE(fish("tilewave train m").contains("mine.toml"));
  EXPECT_FALSE(fish("tilewave train n").contains("notes.txt"));
  EXPECT_TRUE(fish("tilewave inspect n").contains("notes.txt"));
  EXPECT_TRUE(fish("tilewave bench ").contains("gemm"));
}

// zsh completes within its line editor alone: a zsh in a pseudo-terminal is typed to, and says what compadd is given.
TEST_F(Shells, ZshCompletesCommandsOptionsValuesAndFiles) {
  if (!there_is("zsh")) GTEST_SKIP() << "there is no zsh";
  const Outcome syntax = shell("zsh -n completion.zsh", folder_.path());
  EXPECT_EQ(syntax.status, 0) << syntax.output;
  fs::create_directory(folder_.path() / "functions");
  fs::copy_file(folder_.path() / "completion.zsh", folder_.path() / "functions" / "_tilewave");
  write_text(folder_.path() / "setup.zsh", R"zsh(
PROMPT= RPROMPT=
fpath=($PWD/functions $fpath)
autoload -Uz compinit && compinit -u -D
unset zle_bracketed_paste
bindkey '^I' complete-word
bindkey '^M' undefined-key
null_line() { print -r -- "@@end" }
compprefuncs=( null_line_begin ); null_line_begin() { print -r -- "@@begin" }
comppostfuncs=( null_line exit )
zstyle ':completion:*' list-grouped false
zstyle ':completion:*' insert-tab false
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  typeset -a __hits
  builtin compadd -A __hits -D __ignored "$@"
  (( $#__hits )) || return 1
  print -rl -- "@@"$^__hits
  return 0
}
print -r -- "@@ready"
)zsh");
  write_text(folder_.path() / "ask.zsh", R"zsh(
zmodload zsh/zpty
zpty z 'cd '${(q)PWD}'; zsh -f -i'
zpty -w z 'source setup.zsh'
local chunk all=
repeat 200; do zpty -r z chunk || break; all+=$chunk; [[ $chunk == *@@ready* && $chunk != *print* ]] && break; done
zpty -w -n z "$1"$'\t'
all=
repeat 2000; do zpty -r z chunk || break; all+=$chunk; [[ $chunk == *@@end* ]] && break; done
zpty -d z
print -r -- $all | tr -d '\r' | sed -n 's/.*@@//p'
)zsh");
  const auto zsh = [&](const std::string& line) {
    const Outcome outcome = shell("HOME=$PWD TERM=dumb zsh -f ask.zsh " + quoted(line), folder_.path());
    std::set<std::string> words = lines_of(outcome.output);
    for (const char* mark : {"begin", "end", "ready"}) words.erase(mark);
    return words;
  };
  const auto has = [&](const std::string& line, const std::string& word) {
    const std::set<std::string> words = zsh(line);
    EXPECT_TRUE(words.contains(word)) << line << " offers " << testing::PrintToString(words);
  };
  has("tilewave tra", "train");
  EXPECT_FALSE(zsh("tilewave tra").contains("plan"));
  has("tilewave train --dev", "--device");
  has("tilewave train --device=c", "cpu");
  has("tilewave train --device c", "cuda");
  has("tilewave bench ge", "gemm");
  has("tilewave bench gemm --pi", "--pitch");
  has("tilewave bench gemm --pitch ", "packed");
  has("tilewave train a.toml --set model.d_m", "model.d_model=");
  has("tilewave train a.toml --set model.norm=", "model.norm=pre");
  has("tilewave train m", "mine.toml");
}

// A value that nothing is known of would be completed by nothing, in silence.
TEST(CompletedValues, EveryOptionWithAValueSaysWhatCompletesIt) {
  CLI::App program("", "tilewave");
  for (Command (*add)(CLI::App&) : {add_translate,  add_generate, add_check,   add_step,       add_inspect,  add_plan,   add_ablate,
                                    add_guidelines, add_bench,    add_devices, add_completion, add_man,      add_schema, add_tokenize,
                                    add_import,     add_export,   add_report,  add_evaluate,   add_classify, add_caption}) {
    add(program);
  }
  add_train(program, "a commit");
  add_figures(program, "a commit");
  prepare_options(program);
  std::set<const CompletedValue*> used;
  std::size_t values = 0;
  const CommandNode tree = described_command_line(program);
  for (const CommandNode* command : all_commands(tree)) {
    std::vector<OptionNode> all = command->options;
    all.insert(all.end(), command->positionals.begin(), command->positionals.end());
    for (const OptionNode& option : all) {
      const CompletedValue* row = find_completed_value(command->path, option.name);
      if (row != nullptr) used.insert(row);
      const bool number = option.operand.starts_with("INTEGER") || option.operand.starts_with("NUMBER");
      const bool listed = option.operand.starts_with('{');
      if (!option.takes_value || number || listed) continue;
      ++values;
      EXPECT_NE(row, nullptr) << command->path << ' ' << option.name << ": give it a row in app/commands/completion.cpp";
    }
  }
  EXPECT_GE(values, 30U);
  for (const CompletedValue& row : completed_values()) {
    EXPECT_TRUE(used.contains(&row)) << row.command << ' ' << row.name
                                     << " is no option's: take its row out of app/commands/completion.cpp";
  }
}

}  // namespace
}  // namespace tilewave
