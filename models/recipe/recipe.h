// From a TOML file to what a run is made of:
//   read_recipe -> check_supported, check_files -> (a tokenizer is trained) -> resolve
// Whatever is wrong with what a person wrote is one InputError sentence that names the key. Resolving a resolved recipe changes
// nothing, and to_toml(recipe) reads back as the same recipe, bit for bit.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/reader.h"
#include "framework/recipe/writer.h"
#include "kernels/core/device.h"
#include "models/recipe/config.h"
#include "models/recipe/guidelines.h"
#include "models/recipe/pass_segments.h"

namespace tilewave {

// Defaults, then the file, then overrides ("model.d_model=256", as --set gives them) in order. Validated; name = the file's stem.
Recipe read_recipe(const std::filesystem::path& path, std::span<const std::string> overrides = {});
// The same from text.
Recipe parse_recipe(const RecipeText& text, std::span<const std::string> overrides = {});

// What keys demand of each other, without looking at files or devices.
void validate(const Recipe& recipe);

// That every file the recipe names, and every one its data.kind needs, is there and not empty; the tokenizer aside, which a run that goes
// on has in its folder.
void check_files(const Recipe& recipe);
// That data.tokenizer is a word that says something, or there.
void check_tokenizer(const Recipe& recipe);

// Refuses what that back end cannot train in.
void check_supported(const Recipe& recipe, Backend backend);

// What the data's tokenizer turned out to be.
struct TokenizerFacts {
  std::int64_t vocabulary = 0;  // ids it produces; 0 where there is none, or none yet
};

struct ResolvedRecipe {
  Recipe recipe;      // keys that stand for others are numbers now
  StepShapes shapes;  // what to allocate and to fill
  std::vector<Adjustment> adjustments;
  PassSegments segments;  // of pairs: assumed, unless RealTokenCounter has read the corpus

  friend bool operator==(const ResolvedRecipe&, const ResolvedRecipe&) = default;
};

// InputError where guidelines.wave_free_batch asks for a device: models/planning/wave_free.h resolves on one.
ResolvedRecipe resolve(const Recipe& recipe, const TokenizerFacts& tokenizer = {});

// What gemm.choice asks: the model or a measurement, or it forces a kernel.
enum class PlanSource : std::uint8_t { model, measure, forced };
PlanSource plan_source(std::string_view choice);

// Whether the data is text that a tokenizer turns into ids, rather than ids already.
bool uses_tokenizer(const DataConfig& data);

// Whether rows are packed from pairs, some of which may be too long for them.
bool packs_pairs(const DataConfig& data);

// What its encoder sees; nothing where it reads tokens.
std::optional<SeenPictures> pictures_of(const Recipe& recipe);

// The longest segment of attention: batch.sequence, or the patches of a picture, or the longer of the two.
std::int64_t longest_segment(const Recipe& recipe);

// InputError where run.ranks cannot take such a recipe's steps together.
void check_ranks(const Recipe& recipe);

// InputError where the recipe's model sees pictures: `what` needs tokens.
void check_reads_tokens(const Recipe& recipe, std::string_view what);

std::string to_toml(const Recipe& recipe);
// 16 hexadecimal digits of the text, without keys that came later and have their defaults: FNV-1a, 64 bits.
std::string hash_of(const Recipe& recipe);
// The keys that two recipes differ in.
std::vector<KeyDifference> differences(const Recipe& first, const Recipe& second);

// The tables of docs/use/recipes.md.
std::string recipe_reference();
// recipes/recipe.schema.json.
std::string recipe_schema();

}  // namespace tilewave
