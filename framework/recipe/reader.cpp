// TOML comes from toml++, whose types stay in this file. Its tables are sorted by key, so errors are gathered and the first
// in the text is thrown; it recurses once a nested table, so dots are counted before it sees them.
#include "framework/recipe/reader.h"

#include <algorithm>
#include <optional>
#include <toml++/toml.h>
#include <tuple>

#include "framework/io/file.h"
#include "framework/io/text_file.h"
#include "framework/recipe/complaints.h"
#include "framework/recipe/toml_lesson.h"
#include "framework/recipe/writer.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::size_t kOverrideBytes = 8192;  // of the value of a --set, which bounds its nesting too

struct Complaint {
  toml::source_position where;
  std::string what;
};

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
      for (std::size_t i = 0; value && i < choice.names.size(); ++i) {
        if (*value != choice.names[i] && (choice.former[i].empty() || *value != choice.former[i])) continue;
        choice.set(i);
        return true;
      }
      return false;
    }
  };
  return std::visit(Assign{node, range}, field.member);
}

std::string refusal(std::string_view key, const Field& field, const toml::node& node, const ForeignNames& names) {
  const auto* text = node.as_string();
  const bool scalar = text != nullptr || node.is_number() || node.is_boolean();
  const std::string written = !scalar             ? std::string()
                              : node.is_boolean() ? std::string(node.as_boolean()->get() ? "true" : "false")
                              : node.is_integer() ? std::to_string(node.as_integer()->get())
                              : text != nullptr   ? toml_string(text->get())
                                                  : toml_float(node.as_floating_point()->get());
  const std::optional<Spelling> meant = meant_value(field, written);
  return refusal({.key = key,
                  .found = found_text(node),
                  .word = text != nullptr ? std::string_view(text->get()) : std::string_view(written),
                  .write = meant ? std::string_view(meant->text) : std::string_view()},
                 field, names);
}

// The text of a value on one line.
std::string_view written_at(std::string_view text, const toml::source_region& region) {
  if (region.begin.line != region.end.line) return {};
  for (toml::source_index line = 1; line < region.begin.line; ++line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const auto skip = [](std::string_view from, toml::source_index characters) {
    std::size_t at = 0;
    for (; at < from.size() && characters > 0; --characters) {
      for (++at; at < from.size() && (static_cast<unsigned char>(from[at]) & 0xC0) == 0x80;) ++at;
    }
    return at;
  };
  text.remove_prefix(skip(text, region.begin.column - 1));
  return text.substr(0, skip(text, region.end.column - region.begin.column));
}

// A number that is not 0 and was read as 0.
bool vanished(const toml::node& node, std::string_view written) {
  const auto* number = node.as_floating_point();
  const std::string_view mantissa = written.substr(0, written.find_first_of("eE"));
  return number != nullptr && number->get() == 0.0 && mantissa.find_first_of("123456789") != std::string_view::npos;
}

std::string vanished_sentence(std::string_view key, const Field& field, std::string_view written) {
  return refusal({.key = key, .found = excerpt(written) + ", too small a number to hold"}, field, {});
}

Place place_of(const toml::source_position& position) {
  return {.line = static_cast<std::size_t>(position.line), .column = static_cast<std::size_t>(position.column)};
}

Place place_at(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::string_view on_line = before.substr(before.rfind('\n') + 1);
  const auto characters =
      std::count_if(on_line.begin(), on_line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return {.line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')),
          .column = 1 + static_cast<std::size_t>(characters)};
}

InputError error_at(const std::string& source, Place where, std::string_view what) {
  return InputError(concat(source, ":", where.line, ":", where.column, ": ", what));
}

// TOML has characters beyond ASCII in strings and comments alone, a recipe none over several lines; the parser of toml++ 3.3
// does not expect all of them elsewhere (its tables of Unicode's white space have holes).
void check_characters(std::string_view text, const std::string& source) {
  const auto refuse = [&](std::size_t at, std::string_view what) { throw error_at(source, place_at(text, at), what); };
  if (const auto invalid = find_invalid_utf8(text)) refuse(*invalid, "the bytes here are no UTF-8; save the file in that encoding.");
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

}  // namespace

RecipeText read_recipe_file(const std::filesystem::path& path) {
  return {.source = path.string(), .text = read_file(path, static_cast<std::int64_t>(kRecipeBytes))};
}

void read_toml(const RecipeText& recipe, std::vector<Section>& sections, const ForeignNames& names) {
  const std::string& text = recipe.text;
  TW_CHECK_INPUT(text.size() <= kRecipeBytes, recipe.source, " is larger than a recipe may be, ", kRecipeBytes,
                 " bytes; is it another file?");
  TW_CHECK_INPUT(text.find_first_not_of(" \t\r\n") != std::string::npos, recipe.source, " is empty; recipes/ holds recipes to start from.");
  const std::size_t zero = text.find('\0');
  TW_CHECK_INPUT(zero == std::string::npos, recipe.source, " is a binary file: byte ", zero, " is zero; a recipe is TOML text.");
  const auto dots = static_cast<std::size_t>(std::count(text.begin(), text.end(), '.'));
  TW_CHECK_INPUT(dots <= kRecipeDots, recipe.source, " holds ", dots, " dots, more than ", kRecipeDots,
                 ": its tables could nest too deeply.");

  check_characters(text, recipe.source);
  toml::table document;
  try {
    document = toml::parse(std::string_view(text), std::string_view(recipe.source));
  } catch (const toml::parse_error& error) {
    const Lesson lesson = lesson_of(text, place_of(error.source().begin), sections, names);
    throw error_at(recipe.source, lesson.where, lesson.what);
  }
  std::vector<Complaint> complaints;
  for (const auto& [section_key, section_node] : document) {
    const std::string_view section_name = section_key.str();
    const Section* section = find_section(sections, section_name);
    const toml::table* table = section_node.as_table();
    if (table == nullptr) {
      complaints.push_back({section_key.source().begin, section != nullptr
                                                            ? std::string(section_name) + " is " + found_text(section_node) +
                                                                  "; it must be the section [" + std::string(section_name) + "]."
                                                            : unknown_key("", section_name, sections, names.keys)});
      continue;
    }
    if (section == nullptr) {
      complaints.push_back({section_key.source().begin, unknown_section(section_name, sections, names.keys)});
      continue;
    }
    for (const auto& [key, node] : *table) {
      const Field* field = find_field(*section, key.str());
      if (field == nullptr) {
        complaints.push_back({key.source().begin, unknown_key(section_name, key.str(), sections, names.keys)});
      } else if (const std::string_view written = written_at(text, node.source()); vanished(node, written)) {
        complaints.push_back({node.source().begin, vanished_sentence(concat(section_name, ".", key.str()), *field, written)});
      } else if (!assign(*field, node)) {
        complaints.push_back({node.source().begin, refusal(concat(section_name, ".", key.str()), *field, node, names)});
      }
    }
  }
  if (complaints.empty()) return;
  const auto first = std::min_element(complaints.begin(), complaints.end(), [](const Complaint& a, const Complaint& b) {
    return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
  });
  throw error_at(recipe.source, place_of(first->where), first->what);
}

void set_key(std::string_view assignment, std::vector<Section>& sections, const ForeignNames& names) {
  const std::size_t equals = assignment.find('=');
  const std::string_view key = assignment.substr(0, equals);
  TW_CHECK_INPUT(equals != std::string_view::npos, "--set ", excerpt(assignment), " lacks a value; write --set section.key=value.");
  const std::size_t dot = key.find('.');
  const std::string_view section_name = dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
  const std::string_view field_name = dot == std::string_view::npos ? key : key.substr(dot + 1);
  const Section* section = find_section(sections, section_name);
  const Field* field = section == nullptr ? nullptr : find_field(*section, field_name);
  TW_CHECK_INPUT(field != nullptr, "--set ", excerpt(assignment), ": ", unknown_key(section_name, field_name, sections, names.keys));

  const std::string_view value = assignment.substr(equals + 1);
  const bool text = std::holds_alternative<std::string*>(field->member) || std::holds_alternative<Choice>(field->member);
  const bool bare = text && (value.empty() || (value.front() != '"' && value.front() != '\''));
  const bool quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  const bool comment = !bare && (quoted ? value.back() != value.front() : value.find('#') != std::string_view::npos);
  const std::string asked = concat("--set ", excerpt(assignment), ": ");
  TW_CHECK_INPUT(value.size() <= kOverrideBytes && value.find('\n') == std::string_view::npos && !comment, asked, excerpt(value),
                 " is no value of ", key, "; it must be ", wanted_text(*field), ".");
  TW_CHECK_INPUT(!find_invalid_utf8(value), asked, "the bytes of its value are no UTF-8; write it in that encoding.");
  toml::table document;
  try {
    const std::string line = "value = " + (bare ? toml_string(value) : std::string(value));
    if (!bare) check_characters(line, "--set");
    document = toml::parse(std::string_view(line));
  } catch (const toml::parse_error&) {
    throw InputError(asked + value_lesson(key, *field, value, names));
  } catch (const InputError&) {
    throw InputError(asked + value_lesson(key, *field, value, names));
  }
  const toml::node& node = *document.get("value");
  TW_CHECK_INPUT(!vanished(node, value), "--set ", vanished_sentence(key, *field, value));
  TW_CHECK_INPUT(assign(*field, node), "--set ", refusal(key, *field, node, names));
}

}  // namespace tilewave
