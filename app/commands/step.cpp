// tilewave step: one training step between files, to compare with another framework (docs/use/formats.md).
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "app/options/command.h"
#include "app/options/weight_options.h"
#include "app/text/losses.h"
#include "app/text/units.h"
#include "framework/io/file.h"
#include "framework/io/json_lines.h"
#include "models/planning/resolve.h"
#include "models/step/batch_file.h"
#include "models/step/step_file.h"
#include "models/step/step_plans.h"
#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

struct StepArguments {
  RecipeOptions recipe;
  DeviceOptions device;
  WeightOptions weights;
  std::filesystem::path batch, out, dump_weights;
  bool update = false;
  bool json = false;
};

constexpr std::int64_t kStep = 1;  // of the schedule

void print(const StepArguments& options, const Recipe& recipe, const StepReport& report) {
  if (options.json) {
    JsonObject object;
    object.add("loss", report.loss).add("target_tokens", report.target_tokens);
    if (options.update) object.add("learning_rate", report.learning_rate).add("gradient_norm", report.gradient_norm);
    std::cout << object.add("out", options.out.string()).text() << '\n';
    return;
  }
  const std::string loss = training_loss_name(recipe);
  const auto line = [&](std::string_view name) -> std::ostream& {
    return std::cout << name << std::string(std::max<std::size_t>(16, loss.size() + 2) - name.size(), ' ');
  };
  line(loss) << number_text(report.loss, "%.9g") << " nats per target token\n";
  line("target tokens") << count_text(report.target_tokens) << '\n';
  if (options.update) {
    line("learning rate") << number_text(report.learning_rate, "%.9g") << " at step " << kStep << '\n';
    line("gradient norm") << number_text(report.gradient_norm, "%.9g") << " before clipping\n";
  }
  line("written") << options.out.string() << '\n';
}

int run_step(const StepArguments& options) {
  TW_CHECK_INPUT(options.batch.empty() == options.out.empty() && (!options.batch.empty() || !options.dump_weights.empty()),
                 "a step takes --batch FILE and --out FILE together; --dump-weights FILE alone writes the weights it would start from.");
  TW_CHECK_INPUT(!options.batch.empty() || (!options.update && !options.json),
                 "--update and --json are of a step, and without --batch FILE there is none; leave them out.");
  const auto same = [](const std::filesystem::path& a, const std::filesystem::path& b) {
    std::error_code ignored;  // a path that cannot be followed is refused where it is opened
    const std::filesystem::path first = a.empty() ? a : std::filesystem::weakly_canonical(a, ignored);
    return !first.empty() && !b.empty() && first == std::filesystem::weakly_canonical(b, ignored);
  };
  for (const std::filesystem::path& read :
       {std::filesystem::path(options.recipe.path), options.batch, options.weights.wanted.path, options.dump_weights}) {
    TW_CHECK_INPUT(!same(read, options.out), "--out ", options.out.string(), " names a file that another option names too; name another.");
  }
  for (const std::filesystem::path& read : {std::filesystem::path(options.recipe.path), options.batch, options.weights.wanted.path}) {
    TW_CHECK_INPUT(!same(read, options.dump_weights), "--dump-weights ", options.dump_weights.string(),
                   " names a file that another option names too; name another.");
  }
  options.weights.check();
  if (!options.out.empty()) check_output_file("--out", options.out);
  if (!options.dump_weights.empty()) check_output_file("--dump-weights", options.dump_weights);
  Recipe recipe = options.recipe.read();
  const DeviceInfo device = options.device.probe();
  check_supported(recipe, device.backend);
  std::optional<BatchFile> batch;
  if (!options.batch.empty()) {
    batch = read_batch_file(options.batch, recipe.model);
    recipe = recipe_of_step(recipe, *batch);
  }
  const ResolvedRecipe resolved = resolve(recipe, {}, device);
  const Queue queue = options.device.make_queue(device);
  const GemmPlans plans =
      plans_for_step(resolved, {.queue = queue, .device = device, .noted = [](const std::string& note) { std::cerr << note << '\n'; }});
  Context context(queue, device, context_options(recipe, plans));
  TrainStep step(context, resolved);
  if (const InitialWeights& weights = options.weights.wanted; !weights.path.empty()) {
    const WeightOrigin origin = load_initial_weights(weights, step.model().parameters());
    if (weights.fit == WeightFit::partial) print_notes(origin.told());
  }
  if (!options.dump_weights.empty()) write_safetensors(options.dump_weights, weight_contents(step.model().parameters()));
  if (!batch) return 0;

  const Update update = options.update ? Update::yes : Update::no;
  const Batch packed[] = {pack(*batch, batch_shape(resolved))};
  const StepReport report = step.run(packed, kStep, update);
  TW_CHECK(std::isfinite(report.loss) && report.finite, "the loss is ", report.loss, " and the gradient norm ", report.gradient_norm,
           ", which are not both finite, so nothing was written; use smaller weights, or --set run.precision=fp64.");
  write_safetensors(options.out, step_contents(step, report, update));
  print(options, recipe, report);
  return 0;
}

}  // namespace

Command add_step(CLI::App& program) {
  CLI::App* app = program.add_subcommand("step", "one training step between files: weights and batch in, loss and gradients out");
  const auto options = std::make_shared<StepArguments>();
  options->recipe.add_to(*app);
  options->weights.add_to(*app, "the recipe's initial weights");
  app->add_option("--batch", options->batch,
                  "safetensors: target_in, target_out, target_lengths, and with an encoder source, source_lengths");
  app->add_option("--out", options->out, "safetensors: loss, gradient/<name>, and with --update weight/<name>");
  app->add_flag("--update", options->update, "take the first optimizer step of the recipe's schedule");
  app->add_option("--dump-weights", options->dump_weights, "write the weights that the step starts from");
  app->add_flag("--json", options->json, "print JSON");
  options->device.add_to(*app);
  return {.app = app, .action = [options] { return run_step(*options); }};
}

}  // namespace tilewave
