// The corpus that a recipe's [data] asks for.
#pragma once

#include <optional>
#include <utility>

#include "framework/data/corpus.h"
#include "kernels/core/error.h"
#include "models/recipe/recipe.h"

namespace tilewave {

// The tokenizer that data.tokenizer names, where it is a file.
inline std::optional<Tokenizer> tokenizer_of(const DataConfig& data) {
  if (!uses_tokenizer(data) || data.tokenizer_source() != TokenizerSource::file) return std::nullopt;
  Tokenizer tokenizer = Tokenizer::load(data.tokenizer);
  TW_CHECK_INPUT(data.tokenizer_vocabulary == 0 || data.tokenizer_vocabulary == tokenizer.vocabulary(),
                 "data.tokenizer_vocabulary = ", data.tokenizer_vocabulary, ", and data.tokenizer = ", toml_string(data.tokenizer), " has ",
                 tokenizer.vocabulary(), " ids; leave data.tokenizer_vocabulary out, since that tokenizer is not trained.");
  return tokenizer;
}

// `tokenizer`: that of a run that has one already.
inline Corpus corpus_of(const Recipe& recipe, std::optional<Tokenizer> tokenizer = std::nullopt) {
  const DataConfig& data = recipe.data;
  if (!tokenizer) tokenizer = tokenizer_of(data);
  return Corpus({.kind = data.kind,
                 .source = data.source,
                 .target = data.target,
                 .validation_source = data.validation_source,
                 .validation_target = data.validation_target,
                 .tokenizer = data.tokenizer_source() == TokenizerSource::bytes ? TokenizerKind::bytes : TokenizerKind::bpe,
                 .tokenizer_vocabulary = data.tokenizer_vocabulary > 0 ? data.tokenizer_vocabulary : recipe.model.vocabulary,
                 .vocabulary = recipe.model.vocabulary,
                 .seed = static_cast<std::uint64_t>(data.seed),
                 .pictures = {.pictures = data.pictures,
                              .labels = data.labels,
                              .validation_pictures = data.validation_pictures,
                              .validation_labels = data.validation_labels,
                              .shape = {.height = data.picture_size, .width = data.picture_size, .channels = data.channels},
                              .classes = recipe.model.classes,
                              .noise = data.noise,
                              .patches = sees_pictures(recipe.model) ? patches_of(recipe.model, data) : 0}},
                std::move(tokenizer));
}

}  // namespace tilewave
