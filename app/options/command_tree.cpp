// Its words for values are those of --help, made by the same formatter.
#include "app/options/command_tree.h"

#include <memory>
#include <sstream>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

// "{packed,aligned}" in what a choice's type is called.
std::vector<std::string> choices(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::istringstream list(type.substr(open + 1, close - open - 1));
  std::vector<std::string> words;
  for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  return words;
}

bool is_number(const std::string& type) { return type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT"); }

OptionNode option_node(const CLI::App& app, const std::string& path, const CLI::Option& option, const OfferedBy& offered) {
  const bool positional = option.get_positional();
  OptionNode node{.name = positional ? option.get_name() : "--" + option.get_lnames().front(),
                  .letter = option.get_snames().empty() ? "" : "-" + option.get_snames().front(),
                  .description = option.get_description(),
                  .operand = {},
                  .takes_value = option.get_expected_max() > 0,
                  .repeated = option.get_expected_max() > 1,
                  .completion = Completion::none,
                  .words = {}};
  const auto* formatter = dynamic_cast<const CLI::Formatter*>(app.get_formatter().get());
  TW_CHECK(formatter != nullptr, "the help of ", path, " has no formatter.");
  node.operand = formatter->make_option_opts(&option);
  node.operand.erase(0, node.operand.find_first_not_of(' '));
  if (!node.takes_value || is_number(option.get_type_name())) return node;
  node.words = choices(option.get_type_name());
  if (!node.words.empty()) {
    node.completion = Completion::words;
  } else {
    Offered found = offered(path, node.name);
    node.completion = found.completion;
    node.words = std::move(found.words);
  }
  return node;
}

CommandNode command_node(const CLI::App& app, const std::string& path, const OfferedBy& offered) {
  CommandNode node{
      .path = path, .name = app.get_name(), .description = app.get_description(), .options = {}, .positionals = {}, .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // a former name, which help does not list
    (option->get_positional() ? node.positionals : node.options).push_back(option_node(app, path, *option, offered));
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    node.commands.push_back(command_node(*child, path + " " + child->get_name(), offered));
  }
  return node;
}

}  // namespace

CommandNode command_tree(const CLI::App& program, const OfferedBy& offered) { return command_node(program, program.get_name(), offered); }

}  // namespace tilewave
