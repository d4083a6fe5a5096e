// TOML comes from toml++, whose types stay in this file. Its tables are sorted by key, so errors are gathered and the first
// in the text is thrown; it recurses once a nested table, so dots are counted before it sees them.
#include "framework/recipe/reader.h"

#include <algorithm>
#include <cmath>
#include <toml++/toml.h>
#include <tuple>

#include "framework/io/file.h"
#include "framework/recipe/writer.h"
#include "kernels/error.h"

namespace tilewave {
namespace {

constexpr std::size_t kShownBytes = 80;       // of a value that an error quotes
constexpr std::size_t kOverrideBytes = 8192;  // of the value of a --set, which bounds its nesting too

struct Complaint {
  toml::source_position where;
  std::string what;
};

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? std::to_string(static_cast<std::int64_t>(value)) : toml_float(value);
}

std::string range_text(const Range& range) {
  const bool bounded_below = std::isfinite(range.least), bounded_above = std::isfinite(range.most);
  if (bounded_below && bounded_above && range.least_included && range.most_included) {
    return " from " + number_text(range.least) + " to " + number_text(range.most);
  }
  std::string text;
  if (bounded_below) text += (range.least_included ? " of at least " : " above ") + number_text(range.least);
  if (bounded_below && bounded_above) text += " and";
  if (bounded_above) text += (range.most_included ? " of at most " : " below ") + number_text(range.most);
  return text;
}

// Cut between characters, not inside one.
std::string excerpt(std::string_view text) {
  if (text.size() <= kShownBytes) return toml_string(text);
  std::size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return toml_string(text.substr(0, end)) + "...";
}

// A key or section name as it is where TOML would take it bare, else quoted.
std::string shown(std::string_view name) {
  const bool bare = !name.empty() && name.size() <= kShownBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
  return bare ? std::string(name) : excerpt(name);
}

std::string found_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "the string " + excerpt(node.as_string()->get());
    case toml::node_type::integer:
      return "the integer " + std::to_string(node.as_integer()->get());
    case toml::node_type::floating_point:
      return "the float " + toml_float(node.as_floating_point()->get());
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or a time";
  }
}

// Whether the node's value is one the field may hold; the field then has it.
bool assign(const Field& field, const toml::node& node) {
  const Range& range = field.key.range;
  struct Assign {
    const toml::node& node;
    const Range& range;

    bool operator()(bool* member) const {
      const auto value = node.value_exact<bool>();
      if (value) *member = *value;
      return value.has_value();
    }
    bool operator()(std::int64_t* member) const {
      const auto value = node.value_exact<std::int64_t>();
      if (!value || !range.contains(static_cast<double>(*value))) return false;
      *member = *value;
      return true;
    }
    bool operator()(double* member) const {
      if (!node.is_number()) return false;
      const auto value = node.value<double>();
      if (!value || !range.contains(*value)) return false;
      *member = *value;
      return true;
    }
    bool operator()(std::string* member) const {
      const auto value = node.value_exact<std::string>();
      if (!value || value->find('\0') != std::string::npos) return false;
      *member = *value;
      return true;
    }
    bool operator()(const Choice& choice) const {
      const auto value = node.value_exact<std::string>();
      const auto name = value ? std::find(choice.names.begin(), choice.names.end(), *value) : choice.names.end();
      if (name == choice.names.end()) return false;
      choice.set(static_cast<std::size_t>(name - choice.names.begin()));
      return true;
    }
  };
  return std::visit(Assign{node, range}, field.member);
}

std::string refusal(const std::string& key, const Field& field, const toml::node& node) {
  std::string text = key + " is " + found_text(node) + "; it must be " + allowed_text(field);
  if (const auto* choice = std::get_if<Choice>(&field.member); choice != nullptr && node.is_string()) {
    const std::string_view near = nearest_word(node.as_string()->get(), choice->names);
    if (!near.empty()) text += " (did you mean " + toml_string(near) + "?)";
  }
  return text + ".";
}

const Section* find_section(const std::vector<Section>& sections, std::string_view name) {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& section) { return section.name == name; });
  return found == sections.end() ? nullptr : &*found;
}

const Field* find_field(const Section& section, std::string_view name) {
  const auto found = std::find_if(section.fields.begin(), section.fields.end(), [&](const Field& field) { return field.name == name; });
  return found == section.fields.end() ? nullptr : &*found;
}

std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " and ") + std::string(words[i]);
  return text;
}

std::string unknown_key(std::string_view section, std::string_view key, const std::vector<Section>& sections,
                        std::span<const Alias> aliases) {
  const std::string asked = section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
  std::string text = "unknown key " + shown(asked);
  const std::string near = nearest_key(section, key, sections, aliases);
  if (!near.empty()) return text + "; did you mean " + near + "?";
  const Section* home = find_section(sections, section);
  std::vector<std::string_view> names;
  if (home != nullptr) {
    for (const Field& field : home->fields) names.push_back(field.name);
    return text + "; the keys of [" + std::string(section) + "] are " + listed(names) + ".";
  }
  for (const Section& known : sections) names.push_back(known.name);
  return text + "; keys stand in the sections " + listed(names) + ".";
}

std::string unknown_section(std::string_view name, const std::vector<Section>& sections) {
  std::vector<std::string_view> names;
  for (const Section& section : sections) names.push_back(section.name);
  const std::string_view near = nearest_word(name, names);
  const std::string text = "unknown section [" + shown(name) + "]";
  return near.empty() ? text + "; there are " + listed(names) + "." : text + "; did you mean [" + std::string(near) + "]?";
}

// TOML has characters beyond ASCII in strings and comments alone, a recipe none over several lines; the parser of toml++ 3.3
// does not expect all of them elsewhere (its tables of Unicode's white space have holes).
void check_characters(std::string_view text, const std::string& source) {
  const auto refuse = [&](std::size_t at, std::string_view what) {
    const std::string_view before = text.substr(0, at);
    const std::size_t line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    const std::string_view on_line = before.substr(before.rfind('\n') + 1);
    const auto column =
        1 + std::count_if(on_line.begin(), on_line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    throw InputError(sentence(source, ":", line, ":", column, ": ", what));
  };
  for (std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; at < text.size(); ++at) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x80) refuse(at, "a character beyond ASCII stands outside strings and comments.");
    if (c == '#') at = std::min(text.find('\n', at), text.size());
    if (c != '"' && c != '\'') continue;
    if (text.substr(at, 3) == std::string(3, c)) refuse(at, "a string over several lines; a recipe has none.");
    for (++at; at < text.size() && text[at] != c && text[at] != '\n'; ++at) {
      if (c == '"' && text[at] == '\\') ++at;
    }
  }
}

toml::table parse(std::string_view text, const std::string& source) {
  check_characters(text, source);
  try {
    return toml::parse(text, std::string_view(source));
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    throw InputError(sentence(source, ":", where.line, ":", where.column, ": not TOML: ", printable(error.description()), "."));
  }
}

}  // namespace

std::string allowed_text(const Field& field) {
  struct Allowed {
    const Range& range;

    std::string operator()(const bool*) const { return "true or false"; }
    std::string operator()(const std::int64_t*) const { return "an integer" + range_text(range); }
    std::string operator()(const double*) const { return "a number" + range_text(range); }
    std::string operator()(const std::string*) const { return "a string"; }
    std::string operator()(const Choice& choice) const {
      std::string text;
      for (std::size_t i = 0; i < choice.names.size(); ++i) {
        text += (i == 0 ? "" : i + 1 < choice.names.size() ? ", " : " or ") + toml_string(choice.names[i]);
      }
      return text;
    }
  };
  return std::visit(Allowed{field.key.range}, field.member);
}

RecipeText read_recipe_file(const std::filesystem::path& path) {
  return {.source = path.string(), .text = read_file(path, static_cast<std::int64_t>(kRecipeBytes))};
}

void read_toml(const RecipeText& recipe, std::vector<Section>& sections, std::span<const Alias> aliases) {
  const std::string& text = recipe.text;
  TW_CHECK_INPUT(text.size() <= kRecipeBytes, recipe.source, " is larger than a recipe may be, ", kRecipeBytes,
                 " bytes; is it another file?");
  TW_CHECK_INPUT(text.find_first_not_of(" \t\r\n") != std::string::npos, recipe.source, " is empty; recipes/ holds recipes to start from.");
  const std::size_t zero = text.find('\0');
  TW_CHECK_INPUT(zero == std::string::npos, recipe.source, " is a binary file: byte ", zero, " is zero; a recipe is TOML text.");
  const auto dots = static_cast<std::size_t>(std::count(text.begin(), text.end(), '.'));
  TW_CHECK_INPUT(dots <= kRecipeDots, recipe.source, " holds ", dots, " dots, more than ", kRecipeDots,
                 ": its tables could nest too deeply.");

  const toml::table document = parse(text, recipe.source);
  std::vector<Complaint> complaints;
  for (const auto& [section_key, section_node] : document) {
    const std::string_view section_name = section_key.str();
    const Section* section = find_section(sections, section_name);
    const toml::table* table = section_node.as_table();
    if (table == nullptr) {
      complaints.push_back({section_key.source().begin, section != nullptr
                                                            ? std::string(section_name) + " is " + found_text(section_node) +
                                                                  "; it must be the section [" + std::string(section_name) + "]."
                                                            : unknown_key("", section_name, sections, aliases)});
      continue;
    }
    if (section == nullptr) {
      complaints.push_back({section_key.source().begin, unknown_section(section_name, sections)});
      continue;
    }
    for (const auto& [key, node] : *table) {
      const Field* field = find_field(*section, key.str());
      if (field == nullptr) {
        complaints.push_back({key.source().begin, unknown_key(section_name, key.str(), sections, aliases)});
      } else if (!assign(*field, node)) {
        complaints.push_back({node.source().begin, refusal(std::string(section_name) + "." + std::string(key.str()), *field, node)});
      }
    }
  }
  if (complaints.empty()) return;
  const auto first = std::min_element(complaints.begin(), complaints.end(), [](const Complaint& a, const Complaint& b) {
    return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
  });
  throw InputError(sentence(recipe.source, ":", first->where.line, ":", first->where.column, ": ", first->what));
}

void set_key(std::string_view assignment, std::vector<Section>& sections, std::span<const Alias> aliases) {
  const std::size_t equals = assignment.find('=');
  const std::string_view key = assignment.substr(0, equals);
  TW_CHECK_INPUT(equals != std::string_view::npos, "--set ", excerpt(assignment), " lacks a value; write --set section.key=value.");
  const std::size_t dot = key.find('.');
  const std::string_view section_name = dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
  const std::string_view field_name = dot == std::string_view::npos ? key : key.substr(dot + 1);
  const Section* section = find_section(sections, section_name);
  const Field* field = section == nullptr ? nullptr : find_field(*section, field_name);
  TW_CHECK_INPUT(field != nullptr, "--set ", excerpt(assignment), ": ", unknown_key(section_name, field_name, sections, aliases));

  const std::string_view value = assignment.substr(equals + 1);
  const bool text = std::holds_alternative<std::string*>(field->member) || std::holds_alternative<Choice>(field->member);
  const bool bare = text && (value.empty() || (value.front() != '"' && value.front() != '\''));
  const std::string malformed = sentence("--set ", excerpt(assignment), ": ", excerpt(value), " is no value of ", key, "; it must be ");
  const bool quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  const bool comment = !bare && (quoted ? value.back() != value.front() : value.find('#') != std::string_view::npos);
  TW_CHECK_INPUT(value.size() <= kOverrideBytes && value.find('\n') == std::string_view::npos && !comment, malformed, allowed_text(*field),
                 ".");
  toml::table document;
  try {
    document = parse("value = " + (bare ? toml_string(value) : std::string(value)), "--set");
  } catch (const InputError&) {
    throw InputError(malformed + allowed_text(*field) + ".");
  }
  const toml::node& node = *document.get("value");
  TW_CHECK_INPUT(assign(*field, node), "--set ", refusal(std::string(key), *field, node));
}

}  // namespace tilewave
