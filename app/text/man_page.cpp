// Every line that begins with a dot is a macro; a text's own is kept from being one, and its hyphens from becoming typographic ones.
#include "app/text/man_page.h"

#include "kernels/core/error.h"

namespace tilewave {
namespace {

std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\n') {
      result += ' ';
    } else {
      result += c;
    }
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

// A key or a path at its beginning stays as it is written.
std::string sentence_case(std::string text) {
  const bool word = text.substr(0, text.find(' ')).find_first_not_of("abcdefghijklmnopqrstuvwxyz,;:'") == std::string::npos;
  if (word && !text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }

// .TP: a term, and what it means set below it.
std::string item(const OptionNode& option) {
  const std::string letter = option.letter.empty() ? "" : bold(option.letter) + ", ";
  return concat(".TP\n", letter, bold(option.name), option.operand.empty() ? "" : " " + roff(option.operand), '\n',
                roff(sentence_case(option.description)), ".\n");
}

std::string synopsis(const CommandNode& command) {
  std::string text = bold(command.path);
  for (const OptionNode& word : command.positionals) {
    text += concat(" \\fI", roff(word.name), word.repeated ? "\\fR ..." : "\\fR");
  }
  if (!command.commands.empty()) text += " \\fIcommand\\fR";
  return text + " [\\fIoptions\\fR]\n";
}

std::string command_section(const CommandNode& command) {
  std::string text =
      concat(".SS \"", roff(command.path), "\"\n", synopsis(command), ".PP\n", roff(sentence_case(command.description)), ".\n");
  for (const OptionNode& word : command.positionals) text += item(word);
  for (const OptionNode& option : command.options) {
    if (option.name != "--help") text += item(option);
  }
  return text;
}

constexpr const char* kClosing = R"(.SH EXIT STATUS
.TP
0
Done.
.TP
1
Failed: a GPU was lacking, a file could not be written, a loss was not finite, a check found a difference.
.TP
2
The command line, the recipe or another input cannot be used as it is.
.TP
128 + N
Ended by signal N; a training run saves a checkpoint first.
.PP
Whatever goes wrong is one sentence on standard error: what, where, and what to try. Results alone go to standard output.
.SH FILES
.TP
\fIruns/\fR
Where training leaves its run folders, in the working directory.
.TP
\fI~/.cache/tilewave/\fR
What was measured of this machine's GPUs.
.SH EXAMPLES
.nf
tilewave train recipes/toy_translation.toml
echo "two hundred forty\-two" | tilewave translate runs/toy_translation
tilewave plan recipes/transformer_big.toml \-\-for h200
.fi
)";

}  // namespace

std::string man_page(const CommandNode& program, const std::string& version) {
  std::string text = concat(R"(.TH TILEWAVE 1 "" "tilewave )", version, "\" \"User Commands\"\n.SH NAME\ntilewave \\- ",
                            roff(program.description.substr(program.description.find(": ") + 2)), "\n.SH SYNOPSIS\n", synopsis(program),
                            ".SH DESCRIPTION\nA mini framework for the training step of Transformers. A recipe, a TOML file, says what is "
                            "trained; a command says what is done with it. Every command has \\fB\\-\\-help\\fR.\n.SH OPTIONS\n");
  for (const OptionNode& option : program.options) text += item(option);
  text += ".SH COMMANDS\n";
  for (const CommandNode* command : all_commands(program)) {
    if (command != &program) text += command_section(*command);
  }
  return text + kClosing;
}

}  // namespace tilewave
