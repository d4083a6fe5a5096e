// The reference of a recipe's keys as Markdown tables: type and range, unit, default, meaning. docs/use/recipes.md holds it
// between two marker lines, and a test compares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/describe.h"

namespace tilewave {

inline constexpr std::string_view kReferenceBegin = "<!-- keys: generated from models/recipe/config.h -->\n";
inline constexpr std::string_view kReferenceEnd = "<!-- end of keys -->\n";

// One heading and one table a section; the fields' present values are the defaults shown.
std::string reference_tables(const std::vector<Section>& sections);

// The document with what stands between its markers replaced. Throws Error where it lacks them.
std::string with_reference(std::string_view document, std::string_view tables);

}  // namespace tilewave
