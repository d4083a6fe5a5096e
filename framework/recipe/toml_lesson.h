// What is wrong with a recipe's line that is not TOML, and what to write: of the grammar a recipe needs little (sections, keys, strings,
// numbers, true and false), so the mistakes that people make in it can be named. The parser says where; its own words reach nobody.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/describe.h"
#include "framework/recipe/nearest.h"

namespace tilewave {

struct Place {
  std::size_t line = 1, column = 1;  // in characters
};

struct Lesson {
  Place where;
  std::string what;  // a sentence
};

// Of a text that a TOML parser refused at `where`.
Lesson lesson_of(std::string_view text, Place where, const std::vector<Section>& sections, const ForeignNames& names);

// A value as TOML spells it, and the rule that another spelling broke; the rule is empty where it broke none and the type was wrong.
struct Spelling {
  std::string text;
  std::string_view rule;
};

// The value for the field, a number or a truth, that `raw` was meant to be: 0.001 by .001, 1000 by 1,000, 10000 by 1e4 for an integer,
// true by True. Nothing where it is none that the field holds.
std::optional<Spelling> meant_value(const Field& field, std::string_view raw);

// Of a value as it was written, `raw`, that is not TOML or not one for the field; `key` in full.
std::string value_lesson(std::string_view key, const Field& field, std::string_view raw, const ForeignNames& names);

}  // namespace tilewave
