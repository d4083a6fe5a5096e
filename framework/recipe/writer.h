// Settings as text: values as TOML writes them, whole recipes that read back bit for bit, and what two recipes differ in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/describe.h"

namespace tilewave {

// A TOML basic string: quoted, with control characters, quotes and backslashes escaped.
std::string toml_string(std::string_view text);
// A TOML float: the shortest digits that read back to the same bits.
std::string toml_float(double value);
// A field's present value as TOML, in today's words or in those that recipes had for it once.
enum class Words : std::uint8_t { today, former };
std::string value_text(const Field& field, Words words = Words::today);

// Every section and every key, defaults too.
std::string to_toml(const std::vector<Section>& sections, Words words = Words::today);

struct KeyDifference {
  std::string key;            // "model.d_model"
  std::string first, second;  // values as TOML

  friend bool operator==(const KeyDifference&, const KeyDifference&) = default;
};

// The keys whose values differ between two recipes of one type, in order.
std::vector<KeyDifference> differences(const std::vector<Section>& first, const std::vector<Section>& second);

}  // namespace tilewave
