// Recipes and devices as C names them.
#pragma once

#include "include/tilewave.h"
#include "models/recipe/recipe.h"

namespace tilewave {

Recipe recipe_of(const tw_recipe& recipe);
// The device of that name, as calibrated here; null: "auto".
DeviceInfo device_of(const char* name, int32_t threads);

}  // namespace tilewave
