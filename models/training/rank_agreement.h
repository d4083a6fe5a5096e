// What ranks make sure of before their first step together, and what the first of them tells the others.
#pragma once

#include <string>

#include "framework/data/corpus.h"
#include "framework/tensor/context.h"
#include "models/recipe/recipe.h"

namespace tilewave {

// InputError, on every rank the same, that names the first rank whose version, recipe or corpus is another than the first one's.
void agree(Context& context, const ResolvedRecipe& resolved, const Corpus& corpus, const std::string& program);

// What the first rank says, on every rank.
std::string told_by_first(Context& context, const std::string& said);

}  // namespace tilewave
