// A recipe is refused with a sentence, or reads back from its own text as the same recipe, resolved and unresolved.
#include "models/recipe/recipe.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  read_or_refuse([&] {
    const Recipe recipe = parse_recipe({.source = "fuzz.toml", .text = std::string(data, data + bytes)});
    must(differences(recipe, parse_recipe({.source = "fuzz.toml", .text = to_toml(recipe)})).empty(), "a recipe reads back");
    const ResolvedRecipe resolved = resolve(recipe);
    must(resolve(resolved.recipe).recipe == resolved.recipe, "resolving a resolved recipe changes nothing");
  });
  return 0;
}
