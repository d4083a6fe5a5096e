// The recipe that a run was begun with, as its folder keeps it, and what of it a resumed run may change.
#pragma once

#include <filesystem>

#include "framework/io/run_folder.h"
#include "models/recipe/recipe.h"

namespace tilewave {

// What decides the numbers that are computed; a resumed run may change the rest. Files may have moved: what is in them is known by its
// fingerprint.
Recipe decisive(Recipe recipe);

// When a run begins: recipe.toml, by which a folder is a run's, and before it, hidden until then, adjustments.jsonl, what the guidelines
// changed, a line each. What the waves were settled from is known when a run is first begun, and not again: lines that are there stay.
void store_recipe(const std::filesystem::path& folder, const ResolvedRecipe& resolved);

// The recipe a resumed run goes on with: as asked, with what was decided when the run began. InputError where it changes what decides the
// numbers, unless `overwrite` forces it.
Recipe resumed_recipe(const Recipe& asked, const std::filesystem::path& folder, Overwrite overwrite);

}  // namespace tilewave
