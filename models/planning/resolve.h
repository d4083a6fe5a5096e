// The front door of every run: from a recipe as it was asked for to the shapes that are trained, on a device. What a device has a say in
// is settled here, once; models/recipe/recipe.h resolves what is left, from shapes alone.
#pragma once

#include <span>

#include "models/planning/wave_free.h"

namespace tilewave {

// On a device: the wave-free batch settled first, and the memory that step 2's rows cost counted. With a counter segments are as it
// knows them.
ResolvedRecipe resolve(const Recipe& recipe, const TokenizerFacts& tokenizer, const DeviceInfo& device, RealTokenCounter& tokens,
                       NoWholeWaves none = NoWholeWaves::refused);
ResolvedRecipe resolve(const Recipe& recipe, const TokenizerFacts& tokenizer, const DeviceInfo& device);
// The same with the corpus that the recipe trains on.
ResolvedRecipe resolve_with(const Corpus& corpus, const Recipe& recipe, const DeviceInfo& device,
                            NoWholeWaves none = NoWholeWaves::refused);

// The recipe as asked, its waves as a run that began with it has settled them: with the numbers of `settled`, where these are what
// `answers` says was made of the rows asked for. Otherwise, and where nothing was asked, as it is.
Recipe with_settled_waves(const Recipe& asked, const Recipe& settled, std::span<const Adjustment> answers);

}  // namespace tilewave
