// Words that a person wrote are quoted and cut; words of ours are not.
#include "framework/recipe/complaints.h"

#include <algorithm>
#include <cmath>

#include "framework/recipe/writer.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::size_t kShownBytes = 80;  // of a word that an error quotes

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

std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " and ") + std::string(words[i]);
  return text;
}

}  // namespace

const Section* find_section(const std::vector<Section>& sections, std::string_view name) {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& section) { return section.name == name; });
  return found == sections.end() ? nullptr : &*found;
}

const Field* find_field(const Section& section, std::string_view name) {
  const auto found = std::find_if(section.fields.begin(), section.fields.end(), [&](const Field& field) { return field.name == name; });
  return found == section.fields.end() ? nullptr : &*found;
}

// Cut between characters, not inside one.
std::string excerpt(std::string_view text) {
  if (text.size() <= kShownBytes) return toml_string(text);
  std::size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return toml_string(text.substr(0, end)) + "...";
}

std::string shown(std::string_view name) {
  const bool bare = !name.empty() && name.size() <= kShownBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
  return bare ? std::string(name) : excerpt(name);
}

std::string allowed_text(const Field& field) {
  struct Allowed {
    const Key& key;

    std::string operator()(const bool*) const { return "true or false"; }
    std::string operator()(const std::int64_t*) const { return "an integer" + range_text(key.range); }
    std::string operator()(const double*) const { return "a number" + range_text(key.range); }
    std::string operator()(const std::string*) const {
      std::string text;
      for (const std::string_view word : key.words) text += toml_string(word) + ", ";
      return key.words.empty() ? "a string" : text.substr(0, text.size() - 2) + " or a path";
    }
    std::string operator()(const Choice& choice) const {
      std::string text;
      for (std::size_t i = 0; i < choice.names.size(); ++i) {
        text += (i == 0 ? "" : i + 1 < choice.names.size() ? ", " : " or ") + toml_string(choice.names[i]);
      }
      return text;
    }
  };
  return std::visit(Allowed{field.key}, field.member);
}

std::string wanted_text(const Field& field) {
  const bool number = std::holds_alternative<std::int64_t*>(field.member) || std::holds_alternative<double*>(field.member);
  return number && !field.key.unit.empty() ? concat(allowed_text(field), " (", field.key.unit, ")") : allowed_text(field);
}

std::string unknown_key(std::string_view section, std::string_view key, const std::vector<Section>& sections,
                        std::span<const Alias> aliases) {
  const std::string asked = section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
  const std::string text = "unknown key " + shown(asked);
  const MeantKey meant = nearest_key(section, key, sections, aliases);
  const std::string note = meant.note.empty() ? std::string() : " " + std::string(meant.note);
  if (!meant.key.empty()) return text + "; did you mean " + meant.key + "?" + note;
  if (!note.empty()) return text + "; tilewave has no such key." + note;
  const Section* home = find_section(sections, section);
  std::vector<std::string_view> names;
  if (home != nullptr) {
    for (const Field& field : home->fields) names.push_back(field.name);
    return text + "; the keys of [" + std::string(section) + "] are " + listed(names) + ".";
  }
  for (const Section& known : sections) names.push_back(known.name);
  return text + "; keys stand in the sections " + listed(names) + ".";
}

// A section may be called as another framework calls a key of ours: [lr_scheduler] is [schedule].
std::string unknown_section(std::string_view name, const std::vector<Section>& sections, std::span<const Alias> aliases) {
  std::vector<std::string_view> names;
  for (const Section& section : sections) names.push_back(section.name);
  std::string_view near = nearest_word(name, names);
  const MeantKey meant = near.empty() ? nearest_key({}, name, {}, aliases) : MeantKey{};
  if (!meant.key.empty()) near = std::string_view(meant.key).substr(0, meant.key.find('.'));
  const std::string text = "unknown section [" + shown(name) + "]";
  return near.empty() ? text + "; there are " + listed(names) + "." : text + "; did you mean [" + std::string(near) + "]?";
}

std::string refusal(const Refused& refused, const Field& field, const ForeignNames& names) {
  const std::string text = concat(refused.key, " is ", refused.found, "; it must be ", wanted_text(field));
  const auto* choice = std::get_if<Choice>(&field.member);
  const std::string_view advice = foreign_advice(refused.key, refused.word, names.values);
  if (!advice.empty()) return concat(text, ". ", advice);
  if (!refused.write.empty()) return concat(text, "; write ", refused.write, ".");
  const std::string_view near = choice == nullptr || refused.word.empty() ? "" : nearest_word(refused.word, choice->names);
  return near.empty() ? text + "." : concat(text, " (did you mean ", toml_string(near), "?).");
}

}  // namespace tilewave
