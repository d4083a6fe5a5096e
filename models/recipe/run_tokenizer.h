// The tokenizer that a run's folder holds: tokenizer.model, or tokenizer.json.
#pragma once

#include <filesystem>
#include <optional>

#include "framework/data/tokenizer.h"
#include "models/recipe/recipe.h"

namespace tilewave {

std::optional<Tokenizer> stored_tokenizer(const std::filesystem::path& run_folder);  // none where it holds none

// Of a run that is to read text. None for data that is ids already; InputError where it is lost.
std::optional<Tokenizer> tokenizer_of_run(const std::filesystem::path& run_folder, const Recipe& recipe);

}  // namespace tilewave
