// Candidates by tile arithmetic, each with a plan of its own.
#include "models/wave_free.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <set>
#include <sstream>

#include "kernels/error.h"

namespace tilewave {
namespace {

Recipe without_waves(const Recipe& recipe) {
  Recipe settled = recipe;
  settled.guidelines.wave_free_batch = WaveFreeBatch::off;
  return settled;
}

bool asked_for(const GemmLine& line, const GuidelinesConfig& guidelines) {
  return line.problem.role == guidelines.wave_role && named_by(line.layer, guidelines.wave_layer);
}

// The tiles whose waves count, with the blocks of each that run at a time: guidelines.wave_tile, one block an SM as the guide has
// it, or those that come near the fastest.
struct WaveTile {
  Tile tile;
  std::int64_t slots = 0;
};
std::vector<WaveTile> wave_tiles(const GuidelinesConfig& guidelines, const GemmLine& line, const DeviceInfo& device) {
  constexpr double kNear = 1.5;  // times as long
  const std::vector<GemmPlan> candidates = gemm_candidates(line.problem, device);
  if (const std::optional<Tile> tile = parse_tile(guidelines.wave_tile)) {
    std::vector<std::string> known;
    for (const GemmPlan& plan : candidates) {
      if (plan.tile == *tile) return {{.tile = *tile, .slots = device.sm_count}};
      const std::string text = sentence(plan.tile.m, "x", plan.tile.n);
      if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(text);
    }
    std::string all = "chosen";
    for (const std::string& one : known) all += sentence(", ", one);
    throw InputError(sentence("guidelines.wave_tile = \"", guidelines.wave_tile, "\" is no tile that ", name_of(guidelines.wave_role),
                              " of ", line.layer, " can have on ", device.name, "; write one of ", all, "."));
  }
  std::vector<WaveTile> tiles;
  for (const GemmPlan& plan : candidates) {
    if (plan.predicted_s <= kNear * line.plan.predicted_s) tiles.push_back({.tile = plan.tile, .slots = plan.tiling.slots});
  }
  return tiles;
}

double wave_efficiency(const GuidelinesConfig& guidelines, const GemmLine& line, const DeviceInfo& device) {
  const std::optional<Tile> tile = parse_tile(guidelines.wave_tile);
  return tile ? tile_waves(line.problem.m, line.problem.n, *tile, device.sm_count).wave_efficiency : waves_of(line.plan).efficiency;
}

const GemmLine& line_of(const StepPlan& step, const GuidelinesConfig& guidelines, std::int64_t rows) {
  const auto line = std::find_if(step.gemms.begin(), step.gemms.end(), [&](const GemmLine& candidate) {
    return asked_for(candidate, guidelines) && candidate.problem.n == rows;
  });
  TW_CHECK(line != step.gemms.end(), "no GEMM of ", guidelines.wave_layer, " has ", rows, " rows.");
  return *line;
}

std::string percent(double fraction) {
  std::ostringstream stream;
  stream << std::fixed << std::setprecision(1) << 100.0 * fraction << " %";
  return stream.str();
}

// "4096 x 4224 in 256x128: 528 tiles, 4.00 waves"
std::string waves_text(const GuidelinesConfig& guidelines, const GemmLine& line, const DeviceInfo& device) {
  const std::optional<Tile> tile = parse_tile(guidelines.wave_tile);
  const Tiling tiling = tile ? tile_waves(line.problem.m, line.problem.n, *tile, device.sm_count) : line.plan.tiling;
  const Tile used = tile ? *tile : line.plan.tile;
  std::ostringstream stream;
  stream << line.problem.m << " x " << line.problem.n << " in " << used.m << "x" << used.n << ": " << tiling.tiles << " tiles, "
         << std::fixed << std::setprecision(2) << (tile ? tiling.waves : waves_of(line.plan).waves) << " waves";
  return stream.str();
}

Adjustment adjustment_of(const Recipe& recipe, const WaveRows& rows, const RowsPlan& from, const RowsPlan& to, const DeviceInfo& device) {
  const GuidelinesConfig& guidelines = recipe.guidelines;
  const std::string before = waves_text(guidelines, line_of(from.step, guidelines, from.rows), device);
  const std::int64_t sides = (rows.source ? 1 : 0) + (rows.target ? 1 : 0);
  std::string why = sentence(name_of(guidelines.wave_role), " of ", rows.layer, " on ", device.name, ", ", before);
  if (to.rows == from.rows) {
    why += sentence("; no wave-free number within ", percent(guidelines.wave_limit), " is predicted to take less time a row");
  } else {
    why += sentence("; then ", waves_text(guidelines, line_of(to.step, guidelines, to.rows), device), "; the step is predicted to take ",
                    percent(1.0 - to.step.seconds_a_row() / from.step.seconds_a_row()), " less time a row");
  }
  return {.rule = "wave_free_batch",
          .what = rows.source && rows.target ? "source and target rows"
                  : rows.source              ? "source rows"
                                             : "target rows",
          .from = to.rows == from.rows ? from.rows : rows.asked,
          .to = to.rows,
          .why = std::move(why),
          .cost_tokens = to.rows == from.rows ? 0 : sides * (to.rows - rows.asked),
          .cost_bytes = to.step.bytes - from.step.bytes};
}

// What step 2's rows cost in memory, which only a traced step tells.
void count_bytes_of_rows(const Recipe& recipe, const TokenizerFacts& tokenizer, const DeviceInfo& device,
                         std::vector<Adjustment>& adjustments) {
  Recipe rows = predictable(recipe);
  rows.guidelines.batch_multiple_of = 1;
  const auto bytes = [&] { return trace_step(resolve(rows, tokenizer), device).bytes(); };
  for (Adjustment& adjustment : adjustments) {
    if (adjustment.rule != "batch_multiple_of") continue;
    const std::int64_t before = bytes();
    (adjustment.what == "source rows" ? rows.batch.source_tokens : rows.batch.target_tokens) = adjustment.to;
    adjustment.cost_bytes = bytes() - before;
  }
}

}  // namespace

Recipe WaveRows::moved(const Recipe& recipe, std::int64_t rows) const {
  Recipe moved = without_waves(recipe);
  if (source) moved.batch.source_tokens = rows;
  if (target) moved.batch.target_tokens = rows;
  return moved;
}

std::vector<WaveRows> wave_rows(const Recipe& recipe, const DeviceInfo& device) {
  const GuidelinesConfig& guidelines = recipe.guidelines;
  TW_CHECK_INPUT(guidelines.wave_role != GemmRole::wgrad,
                 "guidelines.wave_role = \"wgrad\": rows of tokens are K of a weight gradient, and its tiles do not depend on them; "
                 "use \"forward\" or \"dgrad\".");
  const ResolvedRecipe resolved = resolve(predictable(without_waves(recipe)));
  const StepPlan step = plan_step(resolved, device);
  std::vector<WaveRows> found;
  std::set<std::string> layers;
  for (const GemmLine& line : step.gemms) {
    layers.insert(line.layer);
    if (!asked_for(line, guidelines)) continue;
    WaveRows rows{.source = line.problem.n == resolved.shapes.source_rows,
                  .target = line.problem.n == resolved.shapes.target_rows,
                  .layer = line.layer};
    // Asked for as many, both move; else each moves by itself.
    rows.asked = rows.target ? recipe.batch.target_tokens : recipe.batch.source_tokens;
    const bool known = std::any_of(found.begin(), found.end(), [&](const WaveRows& other) { return other.source == rows.source; });
    if (!known && (rows.source || rows.target)) found.push_back(rows);
  }
  if (!found.empty()) return found;
  std::string known;
  for (const std::string& layer : layers) known += sentence(known.empty() ? "" : ", ", layer);
  throw InputError(sentence("guidelines.wave_layer = \"", guidelines.wave_layer, "\" names no layer with a ", name_of(guidelines.wave_role),
                            " GEMM over rows of tokens; a layer is named by the end of its name, and there are ", known, "."));
}

std::vector<RowsPlan> wave_free_steps(const Recipe& recipe, const WaveRows& rows, std::int64_t least, std::int64_t most,
                                      const DeviceInfo& device) {
  const GuidelinesConfig& guidelines = recipe.guidelines;
  const std::int64_t multiple = guidelines.batch_multiple_of;
  const StepPlan asked = plan_step(resolve(predictable(without_waves(recipe))), device);
  const GemmLine& line = line_of(asked, guidelines, round_up(rows.asked, multiple));
  std::set<std::int64_t> candidates;
  for (const WaveTile& wave : wave_tiles(guidelines, line, device)) {
    for (std::int64_t columns = ceil_div(least, wave.tile.n); columns * wave.tile.n <= most; ++columns) {
      const std::int64_t number = columns * wave.tile.n / multiple * multiple;
      if (number < std::max(least, recipe.batch.sequence)) continue;
      if (tile_waves(line.problem.m, number, wave.tile, wave.slots).wave_efficiency >= kWaveFreeEfficiency) candidates.insert(number);
    }
  }
  std::vector<RowsPlan> steps;
  for (const std::int64_t number : candidates) {
    StepPlan step = plan_step(resolve(predictable(rows.moved(recipe, number))), device);
    if (wave_efficiency(guidelines, line_of(step, guidelines, number), device) < kWaveFreeEfficiency) continue;
    steps.push_back({.rows = number, .step = std::move(step)});
  }
  return steps;
}

WaveFree settle_wave_free_batch(const Recipe& recipe, const DeviceInfo& device) {
  WaveFree result{.recipe = recipe, .adjustments = {}};
  const GuidelinesConfig& guidelines = recipe.guidelines;
  const WaveFreeBatch direction = guidelines.wave_free_batch;
  if (direction == WaveFreeBatch::off) return result;
  for (const WaveRows& rows : wave_rows(recipe, device)) {
    const double reach = guidelines.wave_limit * static_cast<double>(rows.asked);
    const std::int64_t least = rows.asked - (direction == WaveFreeBatch::up ? 0 : static_cast<std::int64_t>(reach));
    const std::int64_t most = rows.asked + (direction == WaveFreeBatch::down ? 0 : static_cast<std::int64_t>(reach));
    const std::vector<RowsPlan> steps = wave_free_steps(result.recipe, rows, std::max<std::int64_t>(1, least), most, device);
    TW_CHECK_INPUT(!steps.empty(), "guidelines.wave_free_batch = \"", name_of(direction), "\": from ", least, " to ", most,
                   " rows no number fills whole waves in ", name_of(guidelines.wave_role), " of ", rows.layer, " on ", device.name, " (",
                   device.sm_count, device.backend == Backend::cuda ? " SMs" : " threads",
                   "); widen guidelines.wave_limit, or name another wave_layer or wave_tile.");

    const std::int64_t asked = round_up(rows.asked, guidelines.batch_multiple_of);
    const RowsPlan stay{.rows = asked, .step = plan_step(resolve(predictable(without_waves(result.recipe))), device)};
    double best = stay.step.seconds_a_row();
    for (const RowsPlan& step : steps) best = std::min(best, step.step.seconds_a_row());
    const RowsPlan* chosen = &stay;
    const auto wins = [&](const RowsPlan& candidate) {
      const bool chosen_is_slow = chosen->step.seconds_a_row() > best * (1.0 + kSameTime);
      const auto distance = [&](const RowsPlan& plan) { return std::abs(plan.rows - rows.asked); };
      return candidate.step.seconds_a_row() <= best * (1.0 + kSameTime) && (chosen_is_slow || distance(candidate) < distance(*chosen));
    };
    for (const RowsPlan& step : steps) {
      if (wins(step)) chosen = &step;
    }
    result.adjustments.push_back(adjustment_of(result.recipe, rows, stay, *chosen, device));
    if (chosen != &stay) result.recipe = rows.moved(result.recipe, chosen->rows);
  }
  result.recipe = without_waves(result.recipe);
  return result;
}

ResolvedRecipe resolve(const Recipe& recipe, const TokenizerFacts& tokenizer, const DeviceInfo& device) {
  validate(recipe);
  const WaveFree waves = settle_wave_free_batch(recipe, device);
  ResolvedRecipe resolved = resolve(waves.recipe, tokenizer);
  count_bytes_of_rows(waves.recipe, tokenizer, device, resolved.adjustments);
  resolved.adjustments.insert(resolved.adjustments.end(), waves.adjustments.begin(), waves.adjustments.end());
  return resolved;
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
