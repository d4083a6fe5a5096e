// Line by line: a value that is wrong stands behind the '=' of its line, and what it was meant to be is tried by mending its spelling.
#include "framework/recipe/toml_lesson.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include "framework/recipe/complaints.h"
#include "framework/recipe/writer.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::string_view kGrammar = "a recipe's lines are [section], key = value and # comments";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool is_quoted(std::string_view raw) { return !raw.empty() && (raw.front() == '"' || raw.front() == '\''); }

std::vector<std::string_view> lines_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// key = value, as written; the value without a comment behind it.
struct Assignment {
  std::string_view key, value;
  std::size_t value_at = 0;  // bytes into the line
};

std::optional<Assignment> assignment_in(std::string_view line) {
  const std::size_t equals = line.find('=');
  const std::string_view key = trimmed(line.substr(0, equals));
  if (equals == std::string_view::npos || key.empty() || key.find_first_of("#[\"'") != std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(equals + 1);
  const std::size_t begin = rest.find_first_not_of(" \t\r");
  std::string_view value = trimmed(rest);
  if (is_quoted(value)) {
    const std::size_t close = value.find(value.front(), 1);
    const std::size_t comment = close == std::string_view::npos ? close : value.find('#', close);
    value = trimmed(value.substr(0, comment));
  } else {
    value = trimmed(value.substr(0, value.find('#')));
  }
  return Assignment{.key = key, .value = value, .value_at = equals + 1 + (begin == std::string_view::npos ? 0 : begin)};
}

// The name of the section that a line opens.
std::optional<std::string_view> section_in(std::string_view line) {
  const std::string_view text = trimmed(line);
  const std::size_t close = text.find(']');
  if (!text.starts_with('[') || close == std::string_view::npos) return std::nullopt;
  return trimmed(text.substr(1, close - 1));
}

// Groups of three digits behind commas, and nothing else.
bool has_thousands(std::string_view raw) {
  const std::size_t first = raw.find(',');
  if (first == 0 || first == std::string_view::npos || first > 4) return false;
  for (std::size_t at = first; at < raw.size(); at += 4) {
    if (raw[at] != ',' || raw.size() - at < 4 ||
        !std::all_of(raw.begin() + static_cast<std::ptrdiff_t>(at) + 1, raw.begin() + static_cast<std::ptrdiff_t>(at) + 4, is_digit))
      return false;
  }
  return true;
}

// A number as TOML spells it.
std::optional<Spelling> spelt_number(std::string_view raw) {
  std::string text(raw);
  std::string_view rule;
  if (is_quoted(raw) && raw.size() > 2 && raw.back() == raw.front()) {
    text = std::string(raw.substr(1, raw.size() - 2));
    rule = "a number has no quotes";
  }
  if (has_thousands(text)) {
    std::erase(text, ',');
    rule = "a number has no commas";
  }
  if (text.find('_') != std::string::npos) {
    std::erase(text, '_');
    rule = "a _ stands between two digits";
  }
  if (text.starts_with("++") || text.starts_with("--")) return std::nullopt;
  const bool sign = text.starts_with('+') || text.starts_with('-');
  const std::size_t begin = sign ? 1 : 0;
  if (const std::size_t point = text.find('.'); point != std::string::npos) {
    if (point + 1 == text.size() || !is_digit(text[point + 1])) {
      text.insert(point + 1, "0");
      rule = "a point has digits on both sides";
    }
    if (point == begin) {
      text.insert(begin, "0");
      rule = "a point has digits on both sides";
    }
  }
  if (text.size() > begin + 2 && (text.back() == 'f' || text.back() == 'F') && is_digit(text[text.size() - 2]) &&
      text.find_first_of("xX") == std::string::npos) {
    text.pop_back();
    rule = "a number has no letter at its end";
  }
  while (text.size() > begin + 1 && text[begin] == '0' && is_digit(text[begin + 1])) {
    text.erase(begin, 1);
    rule = "a number begins with no 0 too many";
  }
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + (text.starts_with('+') ? 1 : 0), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return Spelling{.text = text, .rule = rule};
}

// As found, and why it is no number where it looks like one.
std::string found_number(const Field& field, std::string_view raw) {
  const char* const begin = raw.data() + (raw.starts_with('+') ? 1 : 0);
  const char* const end = raw.data() + raw.size();
  std::int64_t integer = 0;
  double number = 0.0;
  const std::from_chars_result read =
      std::holds_alternative<std::int64_t*>(field.member) ? std::from_chars(begin, end, integer) : std::from_chars(begin, end, number);
  const bool large = read.ec == std::errc::result_out_of_range && read.ptr == end;
  return large ? excerpt(raw) + ", too large a number to hold" : excerpt(raw);
}

double value_of(std::string_view number) {
  double value = 0.0;
  std::from_chars(number.data() + (number.starts_with('+') ? 1 : 0), number.data() + number.size(), value);
  return value;
}

std::string_view truth_in(std::string_view raw) {
  const std::string word = lower(is_quoted(raw) && raw.size() > 1 ? raw.substr(1, raw.size() - 2) : raw);
  if (word == "true" || word == "yes" || word == "on" || word == "1" || word == "y") return "true";
  if (word == "false" || word == "no" || word == "off" || word == "0" || word == "n") return "false";
  return {};
}

bool is_nothing(std::string_view raw) {
  const std::string word = lower(raw);
  return word == "none" || word == "null" || word == "nil" || word == "~" || word == "undefined";
}

std::string string_lesson(std::string_view key, const Field& field, std::string_view raw, const ForeignNames& names) {
  if (is_quoted(raw)) {
    if (raw.size() < 2 || raw.back() != raw.front())
      return concat(key, " is ", excerpt(raw), ", a string that is not closed; end it with ", raw.front(), ".");
    return concat(key, " is ", excerpt(raw),
                  ", which is no string of one line: a backslash is written twice between \", and once between '.");
  }
  const auto* choice = std::get_if<Choice>(&field.member);
  const bool known = choice == nullptr || std::find(choice->names.begin(), choice->names.end(), raw) != choice->names.end();
  if (known) return concat(key, " is a word without quotes; write ", excerpt(raw), ".");
  return refusal({.key = key, .found = excerpt(raw), .word = raw}, field, names);
}

// A place where a section or key of the text stood before.
std::size_t first_line_of(const std::vector<std::string_view>& lines, std::size_t before, std::string_view section, std::string_view key) {
  std::string_view now;
  for (std::size_t i = 0; i + 1 < before; ++i) {
    if (const auto opened = section_in(lines[i])) {
      now = *opened;
      if (key.empty() && now == section) return i + 1;
    } else if (const auto assignment = assignment_in(lines[i]); assignment && now == section && !key.empty() && assignment->key == key) {
      return i + 1;
    }
  }
  return 0;
}

std::string line_lesson(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.starts_with('{')) return concat("this is JSON; ", kGrammar, ".");
  if (text.starts_with('[') && text.find(']') == std::string_view::npos) return "the ] of a section's name is missing.";
  if (text.find('=') == std::string_view::npos && text.find(':') != std::string_view::npos) {
    return concat(excerpt(text), " has : for =; ", kGrammar, ".");
  }
  return concat("this is not TOML: ", excerpt(text), "; ", kGrammar, ".");
}

}  // namespace

std::optional<Spelling> meant_value(const Field& field, std::string_view raw) {
  if (std::holds_alternative<bool*>(field.member)) {
    const std::string_view truth = truth_in(raw);
    return truth.empty() ? std::nullopt : std::optional(Spelling{.text = std::string(truth), .rule = {}});
  }
  const bool whole = std::holds_alternative<std::int64_t*>(field.member);
  if (!whole && !std::holds_alternative<double*>(field.member)) return std::nullopt;
  std::optional<Spelling> number = spelt_number(raw);
  if (!number) return std::nullopt;
  const double value = value_of(number->text);
  if (!field.key.range.contains(value)) return std::nullopt;
  if (whole && number->text.find_first_of(".eE") != std::string::npos) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (value != std::floor(value) || std::abs(value) > kExact) return std::nullopt;
    return Spelling{.text = std::to_string(static_cast<std::int64_t>(value)), .rule = {}};
  }
  return number->rule.empty() ? std::nullopt : number;
}

std::string value_lesson(std::string_view key, const Field& field, std::string_view raw, const ForeignNames& names) {
  if (raw.empty()) return concat(key, " has no value; it must be ", wanted_text(field), ".");
  if (is_nothing(raw)) {
    return concat(key, " is ", raw, ", which TOML does not have; leave the key out for its default, ", value_text(field), ".");
  }
  if (std::holds_alternative<std::string*>(field.member) || std::holds_alternative<Choice>(field.member)) {
    return string_lesson(key, field, raw, names);
  }
  const std::optional<Spelling> meant = meant_value(field, raw);
  if (meant && !meant->rule.empty()) return concat(key, " is ", excerpt(raw), ", but ", meant->rule, "; write ", meant->text, ".");
  return refusal({.key = key, .found = found_number(field, raw), .write = meant ? std::string_view(meant->text) : std::string_view()},
                 field, names);
}

Lesson lesson_of(std::string_view text, Place where, const std::vector<Section>& sections, const ForeignNames& names) {
  const std::vector<std::string_view> lines = lines_of(text);
  where.line = std::clamp<std::size_t>(where.line, 1, lines.size());
  std::string_view section;
  for (std::size_t i = 0; i + 1 < where.line; ++i) section = section_in(lines[i]).value_or(section);
  const std::string_view line = lines[where.line - 1];
  const auto assignment = assignment_in(line);
  if (!assignment) {
    const auto opened = section_in(line);
    const std::size_t first = opened ? first_line_of(lines, where.line, *opened, {}) : 0;
    if (first > 0) {
      return {.where = where, .what = concat("[", shown(*opened), "] stands twice, first in line ", first, "; put its keys together.")};
    }
    return {.where = where, .what = line_lesson(line)};
  }
  const std::size_t dot = assignment->key.find('.');
  const bool dotted = section.empty() && dot != std::string_view::npos;
  const std::string_view home = dotted ? trimmed(assignment->key.substr(0, dot)) : section;
  const std::string_view name = dotted ? trimmed(assignment->key.substr(dot + 1)) : assignment->key;
  const std::string full = home.empty() ? std::string(name) : concat(home, ".", name);
  const Section* known = find_section(sections, home);
  const Field* field = known == nullptr ? nullptr : find_field(*known, name);
  if (const std::size_t first = first_line_of(lines, where.line, section, assignment->key); first > 0) {
    where.column = static_cast<std::size_t>(assignment->key.data() - line.data()) + 1;
    return {.where = where, .what = concat(shown(full), " stands twice, first in line ", first, "; leave one of them out.")};
  }
  if (field == nullptr) {
    const bool section_known = home.empty() || known != nullptr;
    return {.where = where,
            .what = section_known ? unknown_key(home, name, sections, names.keys) : unknown_section(home, sections, names.keys)};
  }
  where.column = assignment->value_at + 1;
  return {.where = where, .what = value_lesson(full, *field, assignment->value, names)};
}

}  // namespace tilewave
