// The words that nobody took are asked for before what is missing: a misspelt command leaves its command missing too.
#include "app/usage.h"

#include <charconv>
#include <string_view>
#include <vector>

#include "framework/recipe/nearest.h"
#include "kernels/error.h"

namespace tilewave {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string nearest_of(const std::string& word, const std::vector<std::string>& known) {
  return nearest_text(word, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace

std::string nearest_text(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest_word(word, known);
  return near.empty() ? std::string() : sentence(" (did you mean ", near, "?)");
}

void check_values(CLI::App& program) {
  const CLI::Validator not_empty([](const std::string& value) { return value.empty() ? std::string("its value is empty") : std::string(); },
                                 "");
  const auto whole_number = [](bool sign) {
    return CLI::Validator(
        [sign](const std::string& value) -> std::string {
          const std::string_view digits = std::string_view(value).substr(sign && value.front() == '-' ? 1 : 0);
          std::int64_t negative = 0;
          std::uint64_t positive = 0;
          const char* const end = value.data() + value.size();
          const std::from_chars_result read =
              sign ? std::from_chars(value.data(), end, negative) : std::from_chars(value.data(), end, positive);
          const bool decimal = digits == "0" || (!digits.empty() && digits.front() != '0');
          return decimal && read.ec == std::errc() && read.ptr == end
                     ? std::string()
                     : sentence(value, " is no whole number in decimal digits, ", sign ? "of 64 bits with its sign" : "from 0 to 2^64 - 1");
        },
        "");
  };
  for (CLI::Option* option : program.get_options()) {
    if (option->get_expected_max() == 0) continue;  // a flag
    const std::string type = option->get_type_name();
    const bool sign = type.starts_with("INT");
    if (sign || type.starts_with("UINT")) option->transform(whole_number(sign));  // before every other check
    if (type == "TEXT" || type == "FILE") option->transform(not_empty);
  }
  for (CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) check_values(*command);
}

std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* app = &program;  // the innermost command, or the one with words that it does not know
  std::string called = program.get_name();
  while (app->remaining().empty() && !app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    called += ' ' + app->get_name();
  }
  const int code = error.get_exit_code();
  const bool words = code == static_cast<int>(CLI::ExitCodes::RequiredError) || code == static_cast<int>(CLI::ExitCodes::ExtrasError);
  const std::vector<std::string> unknown = words ? app->remaining() : std::vector<std::string>();
  const std::vector<std::string> commands = commands_of(*app);
  if (!unknown.empty()) {
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    if (word.starts_with('-')) {
      return sentence(called, " has no option ", word, nearest_of(word, options_of(*app)), "; ", called, " --help lists those it has.");
    }
    if (!commands.empty()) {
      return sentence(called, " has no command \"", word, '"', nearest_of(word, commands), "; ", called, " --help lists those it has.");
    }
    return sentence(called, " does not expect \"", word, "\"; ", called, " --help says what it takes.");
  }
  if (words && !commands.empty() && app->get_subcommands().empty()) {
    return sentence(called, " needs a command; ", called, " --help lists those it has.");
  }
  return sentence(called, ": ", error.what(), "; ", called, " --help says what it takes.");
}

}  // namespace tilewave
