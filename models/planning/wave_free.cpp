// Candidates by tile arithmetic, each with a plan of its own.
#include "models/planning/wave_free.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iterator>
#include <set>
#include <sstream>

#include "kernels/core/error.h"
#include "kernels/gemm/forced_gemm.h"
#include "models/planning/layered_plan.h"

namespace tilewave {
namespace {

constexpr std::size_t kMaxTried = 64;  // numbers of rows, each in a whole step

bool asked_for(const GemmLine& line, const GuidelinesConfig& guidelines) {
  return line.problem.role == guidelines.wave_role && named_by(line.layer, guidelines.wave_layer);
}

// The tiles whose waves count, with the blocks of each that run at a time: guidelines.wave_tile, one block per SM as the guide has
// it, or those that come near the fastest, or would if their last wave were no longer than the rows it is for.
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
      const std::string text = concat(plan.tile.m, "x", plan.tile.n);
      if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(text);
    }
    std::string all = "chosen";
    for (const std::string& one : known) all += concat(", ", one);
    throw InputError(concat("guidelines.wave_tile = \"", guidelines.wave_tile, "\" is no tile that ", name_of(guidelines.wave_role), " of ",
                            line.layer, " can have on ", device.name, "; write one of ", all, "."));
  }
  std::vector<WaveTile> tiles;
  for (const GemmPlan& plan : candidates) {
    if (plan.predicted_s * waves_of(plan).efficiency <= kNear * line.plan.predicted_s) {
      tiles.push_back({.tile = plan.tile, .slots = plan.tiling.slots});
    }
  }
  return tiles;
}

// So many of the numbers, two at least, from the first to the last; all where there are no more.
std::set<std::int64_t> spread(const std::set<std::int64_t>& numbers, std::size_t most) {
  if (numbers.size() <= most) return numbers;
  const std::vector<std::int64_t> all(numbers.begin(), numbers.end());
  std::set<std::int64_t> some;
  for (std::size_t i = 0; i < most; ++i) some.insert(all[i * (all.size() - 1) / (most - 1)]);
  return some;
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

// What one rank's GEMMs have as N of a batch: its share of the rows, all of them where it is alone.
std::int64_t rank_rows(const ResolvedRecipe& resolved, const WaveRows& rows) {
  const BatchShape share = share_shape(resolved, resolved.recipe.run.ranks);
  return rows.target ? share.target_rows : share.source_rows;
}

// Numbers of rows between two of them, and what a rank has of each, which grows with it.
class RowsOfRanks {
 public:
  RowsOfRanks(const Recipe& recipe, const WaveRows& rows, std::int64_t least, std::int64_t most)
      : recipe_(recipe), rows_(rows), multiple_(recipe.guidelines.batch_multiple_of) {
    first_ = ceil_div(std::max(least, recipe.batch.sequence), multiple_);
    last_ = most / multiple_;
  }

  bool none() const { return first_ > last_; }
  std::int64_t least() const { return first_ * multiple_; }
  std::int64_t most() const { return last_ * multiple_; }
  std::int64_t of_rank(std::int64_t number) const {
    return recipe_.run.ranks == 1 ? number : rank_rows(resolve(predictable(rows_.moved(recipe_, number))), rows_);
  }
  // The largest of which a rank has no more than `share`; nothing where it has more of all.
  std::optional<std::int64_t> with_share(std::int64_t share) const {
    std::int64_t low = first_ - 1, high = last_;
    while (low < high) {
      const std::int64_t middle = high - (high - low) / 2;
      if (of_rank(middle * multiple_) <= share) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low >= first_ ? std::optional(low * multiple_) : std::nullopt;
  }

 private:
  const Recipe& recipe_;
  const WaveRows& rows_;
  std::int64_t multiple_, first_ = 0, last_ = 0;
};

// One way to settle the rows of each side: a number for each of the WaveRows, what a rank has of it, and what its step is worth.
struct Choice {
  std::vector<std::int64_t> rows, of_rank;
  Recipe recipe;
  StepPlan step;
  StepWorth worth;
};

class Settling {
 public:
  Settling(const Recipe& recipe, const DeviceInfo& device, RealTokenCounter& tokens, NoWholeWaves none)
      : recipe_(recipe), device_(device), tokens_(tokens), none_(none), sides_(wave_rows(recipe, device)) {
    for (const WaveRows& side : sides_) asked_.push_back(round_up(side.asked, recipe.guidelines.batch_multiple_of));
    none_fill_.resize(sides_.size());
  }

  WaveFree settle() {
    std::vector<std::set<std::int64_t>> numbers;
    for (std::size_t i = 0; i < sides_.size(); ++i) numbers.push_back(numbers_of(i));
    const Choice stay = choice(asked_);
    std::vector<Choice> choices;
    for (const std::vector<std::int64_t>& rows : combinations(numbers)) {
      if (rows != asked_) choices.push_back(choice(rows));
    }
    double best = 1.0;
    for (const Choice& one : choices) best = std::min(best, relative_time(one.worth, stay.worth));
    const Choice* chosen = &stay;
    const double same = std::min(1.0, best * (1.0 + kSameTime));  // what stays is 1, and nothing slower wins
    const auto is_best = [&](const Choice& one) { return relative_time(one.worth, stay.worth) <= same; };
    for (const Choice& one : choices) {
      if (is_best(one) && (!is_best(*chosen) || distance(one) < distance(*chosen))) chosen = &one;
    }
    WaveFree result{.recipe = without_waves(chosen->recipe), .adjustments = {}};
    for (std::size_t i = 0; i < sides_.size(); ++i) result.adjustments.push_back(adjustment_of(i, stay, *chosen));
    return result;
  }

 private:
  // The wave-free numbers of a side, and the one asked for.
  std::set<std::int64_t> numbers_of(std::size_t side) {
    const GuidelinesConfig& guidelines = recipe_.guidelines;
    const WaveFreeBatch direction = guidelines.wave_free_batch;
    const WaveRows& rows = sides_[side];
    const auto reach = static_cast<std::int64_t>(guidelines.wave_limit * static_cast<double>(rows.asked));
    const std::int64_t least = std::max<std::int64_t>(1, rows.asked - (direction == WaveFreeBatch::up ? 0 : reach));
    const std::int64_t most = rows.asked + (direction == WaveFreeBatch::down ? 0 : reach);
    const std::vector<RowsPlan> steps = wave_free_steps(recipe_, rows, least, most, device_);
    none_fill_[side] = steps.empty();
    TW_CHECK_INPUT(!steps.empty() || none_ == NoWholeWaves::rows_stay, "guidelines.wave_free_batch = \"", name_of(direction), "\": from ",
                   least, " to ", most, " rows no number fills whole waves in ", name_of(guidelines.wave_role), " of ", rows.layer, " on ",
                   device_.name, " (", device_.sm_count, device_.backend == Backend::cuda ? " SMs" : " threads",
                   "); widen guidelines.wave_limit, or name another wave_layer or wave_tile.");
    std::set<std::int64_t> numbers = {asked_[side]};
    for (const RowsPlan& step : steps) numbers.insert(step.rows);
    return numbers;
  }

  // Of two sides: each number beside the other side's asked one and beside those nearest to its proportion.
  std::set<std::vector<std::int64_t>> combinations(const std::vector<std::set<std::int64_t>>& numbers) const {
    std::set<std::vector<std::int64_t>> all;
    if (numbers.size() == 1) {
      for (const std::int64_t number : numbers.front()) all.insert({number});
      return all;
    }
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const std::size_t other = 1 - side;
      const auto add = [&](std::int64_t number, std::int64_t beside) {
        all.insert(side == 0 ? std::vector{number, beside} : std::vector{beside, number});
      };
      for (const std::int64_t number : numbers[side]) {
        add(number, asked_[other]);
        const auto above = numbers[other].lower_bound(number * asked_[other] / asked_[side]);
        if (above != numbers[other].end()) add(number, *above);
        if (above != numbers[other].begin()) add(number, *std::prev(above));
      }
    }
    return all;
  }

  Choice choice(const std::vector<std::int64_t>& rows) {
    Choice one{.rows = rows, .of_rank = {}, .recipe = moved(rows), .step = {}, .worth = {}};
    ResolvedRecipe resolved = resolve(predictable(one.recipe));
    for (const WaveRows& side : sides_) one.of_rank.push_back(rank_rows(resolved, side));
    resolved.segments = tokens_.segments(resolved);
    one.step = plan_by_layers(resolved, device_);
    one.worth = {.seconds = one.step.predicted_s(), .tokens = tokens_(resolved)};
    return one;
  }

  // Rows that stay are those that the recipe says, which batch_multiple_of rounds.
  Recipe moved(const std::vector<std::int64_t>& rows) const {
    Recipe recipe = without_waves(recipe_);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != asked_[i]) recipe = sides_[i].moved(recipe, rows[i]);
    }
    return recipe;
  }

  double distance(const Choice& one) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      sum += std::abs(static_cast<double>(one.rows[i] - sides_[i].asked)) / static_cast<double>(sides_[i].asked);
    }
    return sum;
  }

  // Memory is counted side after side.
  Adjustment adjustment_of(std::size_t side, const Choice& from, const Choice& to) {
    const GuidelinesConfig& guidelines = recipe_.guidelines;
    const WaveRows& rows = sides_[side];
    const std::int64_t ranks = recipe_.run.ranks;
    std::string why = concat(name_of(guidelines.wave_role), " of ", rows.layer, " on ", device_.name,
                             ranks > 1 ? concat(", a share of each of ", ranks, " ranks") : "", ", ",
                             waves_text(guidelines, line_of(from.step, guidelines, from.of_rank[side]), device_));
    std::vector<std::int64_t> before = from.rows;
    std::copy_n(to.rows.begin(), side, before.begin());
    std::vector<std::int64_t> after = before;
    after[side] = to.rows[side];
    const bool stays = to.rows[side] == from.rows[side];
    if (none_fill_[side]) {
      why += concat("; no number within ", percent(guidelines.wave_limit), " fills whole waves");
    } else if (stays) {
      why += concat("; no wave-free number within ", percent(guidelines.wave_limit), " is predicted to take less time per real token");
    } else {
      why += concat("; then ", waves_text(guidelines, line_of(to.step, guidelines, to.of_rank[side]), device_),
                    "; the step is predicted to take ", percent(1.0 - relative_time(to.worth, from.worth)), " less time per real token");
    }
    return {.rule = "wave_free_batch",
            .what = rows.source && rows.target ? "source and target rows"
                    : rows.source              ? "source rows"
                                               : "target rows",
            .from = stays ? from.rows[side] : rows.asked,
            .to = to.rows[side],
            .why = std::move(why),
            .cost_tokens = stays ? 0 : ((rows.source ? 1 : 0) + (rows.target ? 1 : 0)) * (to.rows[side] - rows.asked),
            .cost_bytes = stays ? 0 : bytes_of(after) - bytes_of(before)};
  }

  std::int64_t bytes_of(const std::vector<std::int64_t>& rows) const {
    return trace_step(resolve(predictable(moved(rows))), device_).bytes();
  }

  const Recipe& recipe_;
  const DeviceInfo& device_;
  RealTokenCounter& tokens_;
  NoWholeWaves none_;
  std::vector<WaveRows> sides_;
  std::vector<std::int64_t> asked_;  // of each side, rounded
  std::vector<bool> none_fill_;      // whole waves, of the numbers that each side may have
};

}  // namespace

Recipe without_waves(const Recipe& recipe) {
  Recipe settled = recipe;
  settled.guidelines.wave_free_batch = WaveFreeBatch::off;
  return settled;
}

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
  const StepPlan step = plan_by_layers(resolved, device);
  const BatchShape share = share_shape(resolved, recipe.run.ranks);
  const bool told_apart = recipe.batch.source_tokens == recipe.batch.target_tokens || share.source_rows != share.target_rows;
  TW_CHECK_INPUT(told_apart || recipe.run.ranks == 1, "guidelines.wave_free_batch = \"", name_of(guidelines.wave_free_batch), "\": of ",
                 recipe.batch.source_tokens, " source and ", recipe.batch.target_tokens,
                 " target rows each of run.ranks = ", recipe.run.ranks, " has ", share.source_rows,
                 ", and the two cannot be told apart; ask for as many of both, or for more.");
  std::vector<WaveRows> found;
  std::set<std::string> layers;
  for (const GemmLine& line : step.gemms) {
    layers.insert(line.layer);
    if (!asked_for(line, guidelines)) continue;
    WaveRows rows{.source = line.problem.n == share.source_rows, .target = line.problem.n == share.target_rows, .layer = line.layer};
    // Asked for as many, both move; else each moves by itself.
    rows.asked = rows.target ? recipe.batch.target_tokens : recipe.batch.source_tokens;
    const bool known = std::any_of(found.begin(), found.end(), [&](const WaveRows& other) { return other.source == rows.source; });
    if (!known && (rows.source || rows.target)) found.push_back(rows);
  }
  if (!found.empty()) return found;
  std::string known;
  for (const std::string& layer : layers) known += concat(known.empty() ? "" : ", ", layer);
  throw InputError(concat("guidelines.wave_layer = \"", guidelines.wave_layer, "\" names no layer with a ", name_of(guidelines.wave_role),
                          " GEMM over rows of tokens; a layer is named by the end of its name, and there are ", known, "."));
}

std::vector<RowsPlan> wave_free_steps(const Recipe& recipe, const WaveRows& rows, std::int64_t least, std::int64_t most,
                                      const DeviceInfo& device) {
  const GuidelinesConfig& guidelines = recipe.guidelines;
  const std::int64_t multiple = guidelines.batch_multiple_of;
  const ResolvedRecipe resolved = resolve(predictable(without_waves(recipe)));
  const StepPlan asked = plan_by_layers(resolved, device);
  const GemmLine& line = line_of(asked, guidelines, rank_rows(resolved, rows));
  const RowsOfRanks numbers(recipe, rows, least, most);
  std::set<std::int64_t> candidates;
  for (const WaveTile& wave : wave_tiles(guidelines, line, device)) {
    if (numbers.none()) break;
    const std::int64_t largest = numbers.of_rank(most);
    for (std::int64_t columns = ceil_div(numbers.of_rank(numbers.least()), wave.tile.n); columns * wave.tile.n <= largest; ++columns) {
      const std::optional<std::int64_t> number = numbers.with_share(columns * wave.tile.n);
      if (!number) continue;
      const Tiling tiling = tile_waves(line.problem.m, numbers.of_rank(*number), wave.tile, wave.slots);
      if (tiling.wave_efficiency >= kWaveFreeEfficiency) candidates.insert(*number);
    }
  }
  candidates = spread(candidates, kMaxTried);  // of many waves each number gains alike
  const std::int64_t stays = round_up(rows.asked, multiple);
  if (stays >= least && stays <= most) candidates.insert(stays);
  std::vector<RowsPlan> steps;
  const auto try_number = [&](std::int64_t number) {
    StepPlan step = plan_by_layers(resolve(predictable(rows.moved(recipe, number))), device);
    const GemmLine& moved = line_of(step, guidelines, numbers.of_rank(number));
    if (wave_efficiency(guidelines, moved, device) < kWaveFreeEfficiency) return;
    steps.push_back({.rows = number, .step = std::move(step)});
  };
  for (const std::int64_t number : candidates) try_number(number);
  // A last column of tiles that `most` cuts may fill the wave.
  if (steps.empty() && !numbers.none()) try_number(numbers.most());
  return steps;
}

WaveFree settle_wave_free_batch(const Recipe& recipe, const DeviceInfo& device, RealTokenCounter& tokens, NoWholeWaves none) {
  if (recipe.guidelines.wave_free_batch == WaveFreeBatch::off) return {.recipe = recipe, .adjustments = {}};
  return Settling(recipe, device, tokens, none).settle();
}

WaveFree settle_wave_free_batch(const Recipe& recipe, const DeviceInfo& device) {
  RealTokenCounter tokens(recipe);
  return settle_wave_free_batch(recipe, device, tokens);
}

}  // namespace tilewave
