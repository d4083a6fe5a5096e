// tilewave bench step RECIPE: whole training steps, of one rank or of several together, and the rate of their matrix products, attention's
// included. Batches of tokens are made as training makes them. Pictures are read or drawn before steps are timed, a few batches that steps
// take in turns: how fast pictures come is no property of a step.
#include <cmath>
#include <iostream>
#include <optional>

#include "app/bench/bench.h"
#include "app/options/join_ranks.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "framework/measure/interleave.h"
#include "framework/measure/rank_times.h"
#include "kernels/core/memory.h"
#include "models/planning/plan.h"
#include "models/planning/resolve.h"
#include "models/recipe/corpus_of.h"
#include "models/step/memory_check.h"
#include "models/step/step_batches.h"
#include "models/step/step_plans.h"
#include "models/step/train_step.h"
#include "models/study/same_loss.h"

namespace tilewave {
namespace {

constexpr std::int64_t kRepeatedBatches = 4;  // of pictures

struct StepOptions {
  RecipeOptions recipe;
  DeviceOptions device;
  RankOptions ranks;
  PageOptions page;
  bool json = false;
  int rounds = 25;
  std::int64_t steps = 0;  // whose losses are printed
};

struct StepFigures {
  Timing timing;
  LossCurve curve;
  double floor_s = 0.0, tokens_per_s = 0.0;
  std::int64_t matrix_flops = 0;
  bool pictures = false;  // in the place of target tokens
};

void print(const std::string& where, const StepFigures& figures, bool of_ranks, const Page& page) {
  const Timing& timing = figures.timing;
  const auto line = [&](const std::string& text) { std::cout << wrapped(text, page) << '\n'; };
  line(concat(where, ": ", time_text(timing.median_s), " per step, ", rate_text(figures.tokens_per_s),
              figures.pictures ? " pictures/s, " : " target tokens/s, ",
              flops_text(static_cast<double>(figures.matrix_flops) / timing.median_s), " in matrix products",
              of_ranks ? " of each rank" : ""));
  line(concat("quartiles ", time_text(timing.lower_quartile_s), " to ", time_text(timing.upper_quartile_s),
              figures.floor_s > 0.0 ? concat("; roofline time ", time_text(figures.floor_s)) : std::string()));
}

void print_json(const Recipe& recipe, const DeviceInfo& device, const StepFigures& figures) {
  const Timing& timing = figures.timing;
  JsonObject object;
  object.add("device", device.name).add("recipe", recipe.name).add("ranks", recipe.run.ranks).add("time_us", timing.median_s * 1e6);
  object.add("lower_quartile_us", timing.lower_quartile_s * 1e6).add("upper_quartile_us", timing.upper_quartile_s * 1e6);
  object.add("floor_us", figures.floor_s > 0.0 ? figures.floor_s * 1e6 : NAN);
  object.add("target_tokens_per_s", figures.tokens_per_s).add("matrix_flops", figures.matrix_flops);
  object.add("matrix_tflops", static_cast<double>(figures.matrix_flops) / timing.median_s * 1e-12);
  std::vector<JsonObject> rounds, steps;
  for (const double seconds : timing.rounds_s) rounds.emplace_back().add("time_us", seconds * 1e6);
  for (std::size_t i = 0; i < figures.curve.losses.size(); ++i) {
    steps.emplace_back().add("loss", figures.curve.losses[i]).add("gradient_norm", figures.curve.gradient_norms[i]);
  }
  object.add("rounds", rounds);
  if (!steps.empty()) object.add("steps", steps);
  std::cout << object.text() << '\n';
}

int bench_step(const StepOptions& given) {
  StepOptions options = given;
  options.ranks.apply(options.recipe);
  options.ranks.apply(options.device);
  TW_CHECK_INPUT(options.steps == 0 || options.json, "--steps prints losses into the JSON object; add --json.");
  const RankEnvironment started = rank_environment();
  Recipe recipe = options.recipe.read();
  if (started.count == 1 && recipe.run.ranks > 1) return start_ranks(recipe.run.ranks, options.device);
  recipe = for_ranks(std::move(recipe), started);
  const JoinedRanks joined = join_ranks(started, options.device);
  const auto say = [&](const std::string& note) {
    if (joined.speaks()) std::cerr << note << '\n';
  };
  const DeviceInfo device = joined.device.probe();
  check_supported(recipe, device.backend);
  check_files(recipe);
  const Corpus corpus = corpus_of(recipe);
  for (const std::string& note : corpus.notes()) say(note);
  const ResolvedRecipe resolved = resolve_with(corpus, recipe, device);
  Queue queue = joined.device.make_queue(device);
  const GemmPlans plans = plans_for_step(resolved, {.queue = queue, .device = device, .noted = say});
  const StepTrace trace = trace_step(resolved, device, {.plans = plans, .ranks = joined.ranks});
  if (const std::optional<std::int64_t> free = free_bytes(queue)) check_memory(resolved, trace, device, *free);
  Context context(queue, device, context_options(resolved.recipe, plans, joined.ranks));
  TrainStep step(context, resolved);
  step.use_step_memory(trace);
  const std::int64_t passes = resolved.recipe.batch.accumulate;
  StepBatches batches(corpus, batch_shape(resolved), passes);
  std::optional<RepeatedBatches> pictures;
  if (pictures_of(resolved.recipe)) pictures.emplace(corpus, batch_shape(resolved), kRepeatedBatches);
  const auto next_batches = [&] {
    if (pictures) return pictures->next_step(passes);
    batches.next_step();
    return batches.current();
  };
  const LossCurve curve = run_steps(step, corpus, options.steps);
  std::int64_t done = options.steps, tokens = 0, timed = 0;
  const auto launch = [&] {
    const StepReport report = step.run(next_batches(), ++done);
    TW_CHECK(report.finite || report.skipped(), "step ", done,
             ": the loss or the gradient norm is not finite, so that what follows is no training step; lower optimizer.learning_rate, or "
             "take another run.precision.");
    tokens += report.target_tokens;
    ++timed;
  };
  const Timing timing =
      joined.ranks.alone()
          ? compare({{.name = recipe.name, .launch = [&](std::size_t) { launch(); }}}, {}, {.rounds = options.rounds}).ours.front()
          : time_together(context, recipe.name, {.rounds = options.rounds, .load_s = 2.0, .block_s = 0.02}, launch);
  if (!joined.speaks()) return 0;
  const StepFigures figures = {.timing = timing,
                               .curve = curve,
                               .floor_s = floor_s(trace.trace, precision_table(recipe.run.precision), device),
                               .tokens_per_s = static_cast<double>(tokens) / static_cast<double>(timed) / timing.median_s,
                               .matrix_flops = trace.matrix_flops(),
                               .pictures = classifies(recipe.model)};
  options.json
      ? print_json(recipe, device, figures)
      : print(concat(recipe.name, " on ", joined.ranks.alone() ? "" : concat(joined.ranks.count, " ranks, each "), device_text(device)),
              figures, !joined.ranks.alone(), options.page.of_stdout());
  return 0;
}

}  // namespace

Command add_bench_step(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("step", "training steps of a recipe; pictures are read or drawn before they are timed");
  const auto options = std::make_shared<StepOptions>();
  options->recipe.add_to(*command);
  command->add_option("--rounds", options->rounds, "measured blocks of steps")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--steps", options->steps, "with --json: print the loss and the gradient norm of so many first steps")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->json, "one JSON object");
  options->page.add_to(*command);
  options->ranks.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return bench_step(*options); }};
}

}  // namespace tilewave
