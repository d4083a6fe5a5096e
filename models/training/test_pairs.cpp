#include "models/training/test_pairs.h"

#include <new>
#include <utility>

#include "models/decoding/decode.h"

namespace tilewave {
namespace {

constexpr std::size_t kSamples = 5;

// None, and why, where even the least does not fit into memory.
std::optional<std::vector<std::vector<std::int32_t>>> translations_of(const TestPairs& asked, Transformer& model, const Corpus& corpus,
                                                                      const Recipe& recipe, const TranslationLimits& limits,
                                                                      std::string& not_translated) {
  try {
    return translate(model, asked.sources,
                     {.drawn = target_ids(*corpus.tokenizer()),
                      .vocabulary = corpus.tokenizer()->vocabulary(),
                      .positions = recipe.batch.sequence,
                      .bytes = limits.bytes(),
                      .interrupted = limits.interrupted});
  } catch (const OutOfMemory& error) {
    not_translated = error.what();
  } catch (const std::bad_alloc&) {
    not_translated = "there is not enough memory to translate a sentence; free some, or raise the limit.";
  }
  return std::nullopt;
}

}  // namespace

TestPairs test_pairs_of(const Corpus& corpus, const Recipe& recipe) {
  TestPairs asked;
  if (recipe.model.architecture != Architecture::encoder_decoder) return asked;
  const auto fits = [&](const std::vector<std::int32_t>& ids) { return std::ssize(ids) <= recipe.batch.sequence; };
  for (const TextPair& pair : corpus.test_pairs()) {
    std::vector<std::int32_t> ids = corpus.tokenizer()->encode_sentence(pair.source);
    if (!fits(ids) || !fits(corpus.tokenizer()->encode_sentence(pair.target))) continue;
    asked.sources.push_back(std::move(ids));
    asked.pairs.push_back(&pair);
  }
  return asked;
}

void translate_test_pairs(Transformer& model, const Corpus& corpus, const Recipe& recipe, const TranslationLimits& limits,
                          const std::function<void(const std::string&)>& noted, TrainingResult& result) {
  if (corpus.test_pairs().empty() || recipe.model.architecture != Architecture::encoder_decoder) return;
  const TestPairs asked = test_pairs_of(corpus, recipe);
  result.test_pairs.all = std::ssize(corpus.test_pairs());
  result.test_pairs.left_out = result.test_pairs.all - std::ssize(asked.pairs);
  if (result.test_pairs.left_out > 0) {
    noted(concat(result.test_pairs.left_out, " of ", result.test_pairs.all, " test pairs are longer than batch.sequence = ",
                 recipe.batch.sequence, " on a side and not translated; they count as not matched."));
  }
  const auto targets = translations_of(asked, model, corpus, recipe, limits, result.not_translated);
  if (!targets) {
    noted(concat("the test pairs are not translated: ", result.not_translated));
    return;
  }
  if (limits.interrupted()) return;
  const Tokenizer& tokenizer = *corpus.tokenizer();
  std::size_t exact = 0;
  for (std::size_t i = 0; i < targets->size(); ++i) {
    const std::string translation = tokenizer.decode((*targets)[i]);
    const TextPair& pair = *asked.pairs[i];
    if (translation == tokenizer.decode(tokenizer.encode(pair.target))) ++exact;  // which may know fewer kinds of spaces
    if (i < kSamples) result.samples.push_back({.source = pair.source, .expected = pair.target, .translation = translation});
  }
  result.exact_match = static_cast<double>(exact) / static_cast<double>(result.test_pairs.all);
}

}  // namespace tilewave
