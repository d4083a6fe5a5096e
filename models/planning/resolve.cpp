#include "models/planning/resolve.h"

#include <algorithm>

namespace tilewave {
namespace {

// What step 2's rows cost in memory, which only a traced step tells.
void count_bytes_of_rows(const Recipe& recipe, const TokenizerFacts& tokenizer, const DeviceInfo& device,
                         std::vector<Adjustment>& adjustments) {
  Recipe rows = predictable(recipe);
  rows.guidelines.batch_multiple_of = 1;
  const auto bytes = [&] { return trace_step(resolve(rows, tokenizer), device).bytes(); };
  for (Adjustment& adjustment : adjustments) {
    if (adjustment.rule != "batch_multiple_of") continue;
    const std::int64_t before = bytes();
    (adjustment.what == "pictures"      ? rows.batch.pictures
     : adjustment.what == "source rows" ? rows.batch.source_tokens
                                        : rows.batch.target_tokens) = adjustment.to;
    adjustment.cost_bytes = bytes() - before;
  }
}

struct Asked {
  const Recipe& recipe;
  const TokenizerFacts& tokenizer;
  const DeviceInfo& device;
  NoWholeWaves none = NoWholeWaves::refused;
};
ResolvedRecipe resolve_shapes(const Asked& asked, RealTokenCounter& tokens) {
  validate(asked.recipe);
  const WaveFree waves = settle_wave_free_batch(asked.recipe, asked.device, tokens, asked.none);
  ResolvedRecipe resolved = resolve(waves.recipe, asked.tokenizer);
  count_bytes_of_rows(waves.recipe, asked.tokenizer, asked.device, resolved.adjustments);
  resolved.adjustments.insert(resolved.adjustments.end(), waves.adjustments.begin(), waves.adjustments.end());
  return resolved;
}

}  // namespace

ResolvedRecipe resolve(const Recipe& recipe, const TokenizerFacts& tokenizer, const DeviceInfo& device, RealTokenCounter& tokens,
                       NoWholeWaves none) {
  ResolvedRecipe resolved = resolve_shapes({.recipe = recipe, .tokenizer = tokenizer, .device = device, .none = none}, tokens);
  resolved.segments = tokens.segments(resolved);
  return resolved;
}

ResolvedRecipe resolve(const Recipe& recipe, const TokenizerFacts& tokenizer, const DeviceInfo& device) {
  RealTokenCounter tokens(recipe);
  return resolve_shapes({.recipe = recipe, .tokenizer = tokenizer, .device = device}, tokens);
}

ResolvedRecipe resolve_with(const Corpus& corpus, const Recipe& recipe, const DeviceInfo& device, NoWholeWaves none) {
  RealTokenCounter tokens(recipe, &corpus);
  return resolve(recipe, {.vocabulary = corpus.tokenizer() ? corpus.tokenizer()->vocabulary() : 0}, device, tokens, none);
}

Recipe with_settled_waves(const Recipe& asked, const Recipe& settled, std::span<const Adjustment> answers) {
  const bool open = asked.guidelines.wave_free_batch != WaveFreeBatch::off && settled.guidelines.wave_free_batch == WaveFreeBatch::off;
  const auto answered = [&](std::string_view side, std::int64_t from, std::int64_t to) {
    const bool moved = std::any_of(answers.begin(), answers.end(), [&](const Adjustment& answer) {
      const bool both = answer.what == "source and target rows";
      return answer.rule == "wave_free_batch" && (both || answer.what == side) && answer.from == from && answer.to == to;
    });
    return from == to || moved;
  };
  const bool settled_before =
      std::any_of(answers.begin(), answers.end(), [](const Adjustment& answer) { return answer.rule == "wave_free_batch"; });
  if (!open || !settled_before || !answered("source rows", asked.batch.source_tokens, settled.batch.source_tokens) ||
      !answered("target rows", asked.batch.target_tokens, settled.batch.target_tokens)) {
    return asked;
  }
  Recipe recipe = without_waves(asked);
  recipe.batch.source_tokens = settled.batch.source_tokens;
  recipe.batch.target_tokens = settled.batch.target_tokens;
  return recipe;
}

}  // namespace tilewave
