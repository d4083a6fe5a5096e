// The sentences of the reader: what a key may hold, which key or section was meant, why a value is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/describe.h"
#include "framework/recipe/nearest.h"

namespace tilewave {

const Section* find_section(const std::vector<Section>& sections, std::string_view name);  // null: there is none
const Field* find_field(const Section& section, std::string_view name);

// As a quoted string, cut behind 80 bytes.
std::string excerpt(std::string_view text);
// A key or section name as it is where TOML would take it bare, else as an excerpt.
std::string shown(std::string_view name);

// What a field may hold: "an integer from 1 to 65536", "\"pre\" or \"post\"".
std::string allowed_text(const Field& field);
// The same with the unit of a number: "an integer from 1 to 65536 (features)".
std::string wanted_text(const Field& field);

std::string unknown_key(std::string_view section, std::string_view key, const std::vector<Section>& sections,
                        std::span<const Alias> aliases);
std::string unknown_section(std::string_view name, const std::vector<Section>& sections, std::span<const Alias> aliases);

struct Refused {
  std::string_view key;         // in full
  std::string found;            // as a sentence names it: "the string \"gelu\""
  std::string_view word = {};   // where it is one, what a choice may have meant by it
  std::string_view write = {};  // what was meant, where that is known
};

std::string refusal(const Refused& refused, const Field& field, const ForeignNames& names);

}  // namespace tilewave
