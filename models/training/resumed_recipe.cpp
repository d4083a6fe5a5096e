// What a run was begun with, in its folder and back.
#include "models/training/resumed_recipe.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/json_fault.h"
#include "framework/io/json_lines.h"
#include "models/planning/resolve.h"

namespace tilewave {
namespace {

constexpr std::string_view kAdjustmentsFile = "adjustments.jsonl";

// What the guidelines changed, a line each.
void save_adjustments(const std::filesystem::path& path, const std::vector<Adjustment>& adjustments) {
  std::string lines;
  for (const Adjustment& adjustment : adjustments) {
    JsonObject line;
    line.add("rule", adjustment.rule).add("what", adjustment.what).add("from", adjustment.from).add("to", adjustment.to);
    line.add("why", adjustment.why).add("cost_tokens", adjustment.cost_tokens).add("cost_bytes", adjustment.cost_bytes);
    lines += line.text() + "\n";
  }
  write_file_atomically(path, lines);
}

// The same again: rule, what, from and to.
std::vector<Adjustment> stored_adjustments(const std::filesystem::path& folder) {
  constexpr std::int64_t kMaxBytes = 1 << 20;
  const std::filesystem::path shown = folder / kAdjustmentsFile, path = is_there(shown) ? shown : folder / kHiddenAdjustments;
  std::vector<Adjustment> adjustments;
  std::istringstream lines(is_there(path) ? read_file(path, kMaxBytes) : std::string());
  for (std::string line; std::getline(lines, line);) {
    try {
      const nlohmann::json json = nlohmann::json::parse(line);
      adjustments.push_back({.rule = json.at("rule").get<std::string>(),
                             .what = json.at("what").get<std::string>(),
                             .from = json.at("from").get<std::int64_t>(),
                             .to = json.at("to").get<std::int64_t>(),
                             .why = {}});
    } catch (const nlohmann::json::exception& error) {
      throw InputError(concat(path.string(), ": a line is no adjustment (", json_fault(error), "); start a new run."));
    }
  }
  return adjustments;
}

}  // namespace

Recipe decisive(Recipe recipe) {
  Recipe defaults;
  const std::vector<Section> sections = sections_of(recipe), default_sections = sections_of(defaults);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    for (std::size_t k = 0; k < sections[i].fields.size(); ++k) {
      const Field& field = sections[i].fields[k];
      if (field.key.resumed == Resumed::may_change) assign(field, default_sections[i].fields[k]);
    }
  }
  if (recipe.guidelines.wave_free_batch == WaveFreeBatch::off) {  // a question that is not asked
    recipe.guidelines.wave_layer = GuidelinesConfig{}.wave_layer;
    recipe.guidelines.wave_role = GuidelinesConfig{}.wave_role;
    recipe.guidelines.wave_tile = GuidelinesConfig{}.wave_tile;
    recipe.guidelines.wave_limit = GuidelinesConfig{}.wave_limit;
  }
  return recipe;
}

void store_recipe(const std::filesystem::path& folder, const ResolvedRecipe& resolved) {
  const std::filesystem::path shown = folder / kAdjustmentsFile, hidden = folder / kHiddenAdjustments, recipe = folder / "recipe.toml";
  const bool begun = is_there(recipe) && is_there(hidden);
  const bool first = !is_there(shown);
  if (first && !begun) save_adjustments(hidden, resolved.adjustments);
  write_file_atomically(recipe, to_toml(resolved.recipe));
  if (!first) return;
  rename_path(hidden, shown);
  sync_folder(folder);
}

Recipe resumed_recipe(const Recipe& asked, const std::filesystem::path& folder, Overwrite overwrite) {
  const Recipe stored = read_recipe(folder / "recipe.toml");
  Recipe recipe = asked;
  if (recipe.schedule.decay_steps == 0) recipe.schedule.decay_steps = stored.schedule.decay_steps;
  if (recipe.schedule.decay_from == 0) recipe.schedule.decay_from = stored.schedule.decay_from;
  if (recipe.data.tokenizer_vocabulary == 0) recipe.data.tokenizer_vocabulary = stored.data.tokenizer_vocabulary;
  recipe = with_settled_waves(recipe, stored, stored_adjustments(folder));
  if (overwrite == Overwrite::force) return recipe;
  Recipe before = decisive(stored), now = decisive(recipe);
  if (!has_complete_checkpoints(folder)) {  // which would have the fingerprint
    before.data = stored.data;
    now.data = recipe.data;
  }
  const std::vector<KeyDifference> changed = differences(before, now);
  TW_CHECK_INPUT(changed.empty(), folder.string(), " was begun with ", changed.front().key, " = ", changed.front().first,
                 ", and this recipe says ", changed.front().second,
                 ": a resumed run cannot change it; give it the old value, start a new run, or insist with --force.");
  return recipe;
}

}  // namespace tilewave
