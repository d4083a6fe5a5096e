// The corpus that a recipe's [data] asks for.
#pragma once

#include <optional>
#include <utility>

#include "framework/data/corpus.h"
#include "models/recipe/config.h"

namespace tilewave {

// `tokenizer`: that of a run that has one already.
inline Corpus corpus_of(const Recipe& recipe, std::optional<Tokenizer> tokenizer = std::nullopt) {
  const DataConfig& data = recipe.data;
  return Corpus({.kind = data.kind,
                 .source = data.source,
                 .target = data.target,
                 .validation_source = data.validation_source,
                 .validation_target = data.validation_target,
                 .tokenizer = data.tokenizer,
                 .tokenizer_vocabulary = data.tokenizer_vocabulary > 0 ? data.tokenizer_vocabulary : recipe.model.vocabulary,
                 .vocabulary = recipe.model.vocabulary,
                 .seed = static_cast<std::uint64_t>(data.seed)},
                std::move(tokenizer));
}

}  // namespace tilewave
