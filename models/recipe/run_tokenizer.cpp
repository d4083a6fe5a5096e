#include "models/recipe/run_tokenizer.h"

#include "framework/io/file.h"
#include "kernels/core/error.h"

namespace tilewave {

std::optional<Tokenizer> stored_tokenizer(const std::filesystem::path& run_folder) {
  for (const std::string_view name : {kTokenizerModel, kTokenizerJson}) {
    if (is_there(run_folder / name)) return Tokenizer::load(run_folder / name);
  }
  return std::nullopt;
}

std::optional<Tokenizer> tokenizer_of_run(const std::filesystem::path& run_folder, const Recipe& recipe) {
  if (!uses_tokenizer(recipe.data)) return std::nullopt;
  if (std::optional<Tokenizer> stored = stored_tokenizer(run_folder)) return stored;
  TW_CHECK_INPUT(recipe.data.tokenizer_source() == TokenizerSource::bytes, run_folder.string(), ": ",
                 recipe.data.tokenizer_source() == TokenizerSource::file ? "its tokenizer" : "tokenizer.model",
                 " is missing; the run cannot read text without it, and train --resume writes it again.");
  return Tokenizer();
}

}  // namespace tilewave
