// What the guidelines made of a recipe, a sentence each.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "app/text/page.h"
#include "models/recipe/recipe.h"

namespace tilewave {

void print_adjustments(std::ostream& stream, const ResolvedRecipe& resolved, const Page& page);

// Of several settings beside each other: each adjustment once, and the settings that make it. Nothing where none makes any.
struct AdjustedSetting {
  std::string name;
  std::vector<Adjustment> adjustments;
};
void print_adjustments(std::ostream& stream, const std::vector<AdjustedSetting>& settings, const Page& page);

}  // namespace tilewave
