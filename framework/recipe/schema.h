// The keys of a recipe as a JSON Schema (draft 4, which TOML editors read): types, ranges, choices, defaults and meanings. What it
// refuses the reader refuses too; what keys demand of each other it does not know. recipes/recipe.schema.json holds it, and a test
// compares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/describe.h"

namespace tilewave {

// The fields' present values are the defaults shown.
std::string recipe_schema(const std::vector<Section>& sections, std::string_view title);

}  // namespace tilewave
