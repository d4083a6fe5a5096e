#include "interface/recipes.h"

#include <string>
#include <vector>

#include "framework/measure/calibration.h"
#include "framework/measure/device_choice.h"
#include "interface/guard.h"
#include "kernels/core/error.h"

namespace tilewave {

Recipe recipe_of(const tw_recipe& recipe) {
  TW_CHECK_INPUT(recipe.path != nullptr, "a recipe is a TOML file, and no path was given.");
  TW_CHECK_INPUT(recipe.setting_count == 0 || recipe.settings != nullptr, "there are ", recipe.setting_count,
                 " settings, and nothing that points at them.");
  return read_recipe(recipe.path, std::vector<std::string>(recipe.settings, recipe.settings + recipe.setting_count));
}

DeviceInfo device_of(const char* name, int32_t threads) {
  DeviceInfo device = device_named(text_of(name, "auto"), threads);
  (void)use_calibration(device);
  return device;
}

}  // namespace tilewave
