// The test pairs of a run: which of them the model can translate, and how many it translates to the letter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/corpus.h"
#include "models/recipe/recipe.h"
#include "models/training/trainer.h"
#include "models/transformer/transformer.h"

namespace tilewave {

// Test pairs as ids, as far as the model can translate them and say what is expected.
struct TestPairs {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<const TextPair*> pairs;  // of the sources; the corpus has them
};
TestPairs test_pairs_of(const Corpus& corpus, const Recipe& recipe);

struct TranslationLimits {
  std::function<std::int64_t()> bytes;  // of memory that decoding may take; asked just before it begins, to make room
  std::function<bool()> interrupted;
};
// Fills the result's exact_match, test_pairs and samples, or says in not_translated why none is there. Nothing where the data has no test
// pairs or the model translates none. Sentences that a person should read go to `noted`.
void translate_test_pairs(Transformer& model, const Corpus& corpus, const Recipe& recipe, const TranslationLimits& limits,
                          const std::function<void(const std::string&)>& noted, TrainingResult& result);

}  // namespace tilewave
