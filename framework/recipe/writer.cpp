// Floats through std::to_chars: the shortest digits that identify the value, in any locale.
#include "framework/recipe/writer.h"

#include <array>
#include <charconv>

#include "kernels/core/error.h"

namespace tilewave {

std::string toml_string(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string toml_float(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string value_text(const Field& field, Words words) {
  struct Text {
    Words words;
    std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
    std::string operator()(const std::int64_t* value) const { return std::to_string(*value); }
    std::string operator()(const double* value) const { return toml_float(*value); }
    std::string operator()(const std::string* value) const { return toml_string(*value); }
    std::string operator()(const Choice& choice) const {
      const std::string_view name = choice.names[choice.get()], former = choice.former[choice.get()];
      return toml_string(words == Words::former && !former.empty() ? former : name);
    }
  };
  return std::visit(Text{words}, field.member);
}

std::string to_toml(const std::vector<Section>& sections, Words words) {
  std::string text;
  for (const Section& section : sections) {
    if (!text.empty()) text += "\n";
    text.append("[").append(section.name).append("]\n");
    for (const Field& field : section.fields) text.append(field.name).append(" = ").append(value_text(field, words)).append("\n");
  }
  return text;
}

std::vector<KeyDifference> differences(const std::vector<Section>& first, const std::vector<Section>& second) {
  TW_CHECK(first.size() == second.size(), "recipes of two types cannot be compared: ", first.size(), " and ", second.size(), " sections.");
  std::vector<KeyDifference> found;
  for (std::size_t s = 0; s < first.size(); ++s) {
    TW_CHECK(first[s].name == second[s].name && first[s].fields.size() == second[s].fields.size(),
             "recipes of two types cannot be compared: [", first[s].name, "] and [", second[s].name, "].");
    for (std::size_t f = 0; f < first[s].fields.size(); ++f) {
      const std::string a = value_text(first[s].fields[f]), b = value_text(second[s].fields[f]);
      if (a != b) found.push_back({std::string(first[s].name) + "." + std::string(first[s].fields[f].name), a, b});
    }
  }
  return found;
}

}  // namespace tilewave
