// The words that nobody took are asked for before what is missing: a misspelt command leaves its command missing too.
#include "app/options/usage.h"

#include <charconv>
#include <cmath>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "framework/recipe/nearest.h"
#include "kernels/core/error.h"

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

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

const CLI::App* command_named(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return command;
  }
  return nullptr;
}

// By its name with the dashes; null for a positional one's and for what is none.
const CLI::Option* option_named(const CLI::App& app, const std::string& name) {
  return name.starts_with("--") && name.size() > 2 ? app.get_option_no_throw(name) : nullptr;
}

enum class Sign : std::uint8_t { none, allowed };

// CLI11 reads 010 as 8, and what is too large as the largest there is.
CLI::Validator whole_number(Sign sign) {
  return CLI::Validator(
      [sign](const std::string& value) -> std::string {
        const bool negative = sign == Sign::allowed && value.starts_with('-');
        const std::string_view digits = std::string_view(value).substr(negative ? 1 : 0);
        std::int64_t any = 0;
        std::uint64_t positive = 0;
        const char* const end = value.data() + value.size();
        const std::from_chars_result read =
            sign == Sign::allowed ? std::from_chars(value.data(), end, any) : std::from_chars(value.data(), end, positive);
        const bool decimal = digits == "0" || (!digits.empty() && digits.front() != '0');
        return decimal && read.ec == std::errc() && read.ptr == end
                   ? std::string()
                   : concat(value, " is no whole number in decimal digits, ",
                            sign == Sign::allowed ? "of 64 bits with its sign" : "from 0 to 2^64 - 1");
      },
      "");
}

// It also reads 0x10, takes 1e400 for an infinity and nan for a number.
CLI::Validator finite_number() {
  return CLI::Validator(
      [](const std::string& value) -> std::string {
        double number = 0.0;
        const char* const end = value.data() + value.size();
        const auto [stop, error] = std::from_chars(value.data(), end, number);
        if (error == std::errc::result_out_of_range) return concat(value, " is beyond what a number can be here, from -1.8e308 to 1.8e308");
        const bool whole = error == std::errc() && stop == end && std::isfinite(number);
        return whole ? std::string() : concat(value, " is no number in decimal digits, such as 0.5 or 1e-3");
      },
      "");
}

// CLI11's names of C++ types and its ranges ("INT:INT in [1 - 16]") as a person reads them: "INTEGER [1 to 16]".
std::string value_text(const std::string& type) {
  const std::size_t colon = type.find(':');
  const std::string base = type.substr(0, colon);
  const std::string plain = base == "INT" || base == "UINT" ? "INTEGER" : base == "FLOAT" ? "NUMBER" : base;
  if (plain == base && base != "TEXT") return type;  // an option's own words: FIRST:COUNT
  if (colon == std::string::npos) return plain;
  const std::string rest = type.substr(colon + 1);
  if (rest.starts_with('{')) return rest;
  if (rest == "NONNEGATIVE") return plain + " [0 or more]";
  const std::size_t open = rest.find('['), dash = rest.find(" - ");
  if (open == std::string::npos || dash == std::string::npos) return plain;
  return concat(plain, ' ', rest.substr(open, dash - open), " to ", rest.substr(dash + 3));
}

class Help : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (!is_flag(*option)) {
      text = ' ' + value_text(option->get_type_name());
      if (!option->get_default_str().empty()) text += '=' + option->get_default_str();
      if (option->get_expected_max() > 1) text += " ...";
      if (option->get_required()) text += " (required)";
    }
    return text + with(" (goes with ", option->get_needs()) + with(" (not with ", option->get_excludes());
  }

 private:
  static std::string with(const std::string& opening, const std::set<CLI::Option*>& others) {
    std::string names;
    for (const CLI::Option* other : others) names += (names.empty() ? "" : ", ") + other->get_name();
    return names.empty() ? names : opening + names + ')';
  }
};

}  // namespace

std::string nearest_text(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest_word(word, known);
  return near.empty() ? std::string() : concat(" (did you mean ", near, "?)");
}

void prepare_options(CLI::App& program) {
  program.formatter(std::make_shared<Help>());
  for (CLI::Option* option : program.get_options()) {
    if (is_flag(*option)) continue;
    if (!option->get_lnames().empty()) option->allow_extra_args(false);
    const std::string type = option->get_type_name();
    if (type.starts_with("INT")) option->transform(whole_number(Sign::allowed));  // before every other check
    if (type.starts_with("UINT")) option->transform(whole_number(Sign::none));
    if (type.starts_with("FLOAT")) option->transform(finite_number());
  }
  for (CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) prepare_options(*command);
}

void check_words(const CLI::App& program, std::span<const char* const> words) {
  const CLI::App* app = &program;
  std::string called = program.get_name();
  std::set<const CLI::Option*> given;
  bool options_end = false;  // behind "--"
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    TW_CHECK_INPUT(!word.empty(), called, ": a word of its command line is empty, perhaps a variable that is not set; give it a value, or ",
                   "leave it out.");
    if (options_end || word == "--") {
      options_end = true;
      continue;
    }
    if (const CLI::App* command = command_named(*app, word)) {
      app = command;
      called += ' ' + word;
      given.clear();
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = option_named(*app, name);
    if (option == nullptr) continue;
    if (is_flag(*option)) {
      TW_CHECK_INPUT(equals == std::string::npos, called, ": ", name, " takes no value; leave \"", word.substr(name.size()), "\" out.");
      continue;
    }
    const bool once = option->get_expected_max() == 1;
    TW_CHECK_INPUT(given.insert(option).second || !once, called, ": ", name, " is given twice and holds one value; leave one of them out.");
    if (equals == std::string::npos) {
      const std::string missing = concat(called, ": ", name, ": its value is missing");
      TW_CHECK_INPUT(i + 1 < words.size(), missing, "; ", called, " --help says what it takes.");
      const std::string next = words[i + 1];
      const std::string next_name = next.substr(0, next.find('='));
      TW_CHECK_INPUT(option_named(*app, next_name) == nullptr, missing, ": ", next_name, ", which follows, is an option; write ", name, "=",
                     next, " where it is meant as the value.");
      ++i;
    }
    const std::string value = equals == std::string::npos ? words[i] : word.substr(equals + 1);
    TW_CHECK_INPUT(!value.empty(), called, ": ", name, ": its value is empty, perhaps a variable that is not set; give one, or leave ",
                   name, " out.");
  }
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
      return concat(called, " has no option ", word, nearest_of(word, options_of(*app)), "; ", called, " --help lists those it has.");
    }
    if (!commands.empty()) {
      return concat(called, " has no command \"", word, '"', nearest_of(word, commands), "; ", called, " --help lists those it has.");
    }
    return concat(called, " does not expect \"", word, "\"; ", called, " --help says what it takes.");
  }
  if (words && !commands.empty() && app->get_subcommands().empty()) {
    return concat(called, " needs a command; ", called, " --help lists those it has.");
  }
  if (code == static_cast<int>(CLI::ExitCodes::ConversionError)) {  // "Could not convert: --tokens = many"
    constexpr std::string_view kOpening = "Could not convert: ";
    const std::string what = error.what();
    const std::size_t name = what.starts_with(kOpening) ? kOpening.size() : 0;
    return concat(called, ": ", what.substr(name), " is no value it can hold; ", called, " --help says what it takes.");
  }
  return concat(called, ": ", error.what(), "; ", called, " --help says what it takes.");
}

}  // namespace tilewave
