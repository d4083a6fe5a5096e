// tilewave step: training steps between files, to compare with another framework (docs/use/formats.md).
#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

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
  std::filesystem::path batch, out, dump_weights, optimizer;
  std::int64_t first_step = 0;  // of the schedule; 0: not given
  bool update = false;
  bool logits = false;
  bool json = false;
};

void print_json(const StepArguments& options, const std::vector<StepReport>& reports) {
  for (const StepReport& report : reports) {
    JsonObject object;
    if (reports.size() > 1) object.add("step", report.step);
    object.add("loss", report.loss).add("target_tokens", report.target_tokens);
    if (options.update) object.add("learning_rate", report.learning_rate).add("gradient_norm", report.gradient_norm);
    std::cout << object.add("out", options.out.string()).text() << '\n';
  }
}

void print(const StepArguments& options, const Recipe& recipe, const std::vector<StepReport>& reports) {
  if (options.json) return print_json(options, reports);
  const StepReport& report = reports.back();
  const std::string loss = training_loss_name(recipe);
  const auto line = [&](std::string_view name) -> std::ostream& {
    return std::cout << name << std::string(std::max<std::size_t>(16, loss.size() + 2) - name.size(), ' ');
  };
  if (reports.size() > 1) line("updates") << count_text(std::ssize(reports)) << "; the numbers below are the last one's\n";
  line(loss) << number_text(report.loss, "%.9g") << " nats per target token\n";
  line("target tokens") << count_text(report.target_tokens) << '\n';
  if (options.update) {
    line("learning rate") << number_text(report.learning_rate, "%.9g") << " at step " << report.step << '\n';
    line("gradient norm") << number_text(report.gradient_norm, "%.9g") << " before clipping\n";
  }
  line("written") << options.out.string() << '\n';
}

// What goes together, before anything is read.
void check_options(const StepArguments& options) {
  TW_CHECK_INPUT(options.batch.empty() == options.out.empty() && (!options.batch.empty() || !options.dump_weights.empty()),
                 "a step takes --batch FILE and --out FILE together; --dump-weights FILE alone writes the weights it would start from.");
  TW_CHECK_INPUT(!options.batch.empty() || (!options.update && !options.json && !options.logits && options.optimizer.empty()),
                 "--update, --logits, --optimizer and --json are of a step, and without --batch FILE there is none; leave them out.");
  TW_CHECK_INPUT(options.update || (options.optimizer.empty() && options.first_step == 0),
                 "--optimizer and --first-step are an update's; add --update, or leave them out.");
}

// No file that is written is one that another option names.
void check_files(const StepArguments& options) {
  const auto same = [](const std::filesystem::path& a, const std::filesystem::path& b) {
    std::error_code ignored;  // a path that cannot be followed is refused where it is opened
    const std::filesystem::path first = a.empty() ? a : std::filesystem::weakly_canonical(a, ignored);
    return !first.empty() && !b.empty() && first == std::filesystem::weakly_canonical(b, ignored);
  };
  const std::filesystem::path read[] = {options.recipe.path, options.batch, options.weights.wanted.path, options.optimizer};
  const auto check = [&](const char* option, const std::filesystem::path& written) {
    TW_CHECK_INPUT(std::ranges::none_of(read, [&](const std::filesystem::path& one) { return same(one, written); }) &&
                       !same(options.out, options.dump_weights),
                   option, ' ', written.string(), " names a file that another option names too; name another.");
    if (!written.empty()) check_output_file(option, written);
  };
  check("--out", options.out);
  check("--dump-weights", options.dump_weights);
}

// How many updates the file's batches are.
std::int64_t updates_of(const StepArguments& options, const StoredBatches& files, std::int64_t accumulate) {
  const std::int64_t batches = std::ssize(files.batches);
  TW_CHECK_INPUT(batches % accumulate == 0, options.batch.string(), ": it holds ", batches, " batches, and an update of this recipe takes ",
                 accumulate, "; take as many as some updates need, or set batch.accumulate.");
  TW_CHECK_INPUT(options.update || batches == accumulate, options.batch.string(), ": it holds the batches of ", batches / accumulate,
                 " steps; add --update to take them one behind the other, or take a file of one step's.");
  return batches / accumulate;
}

// The optimizer's moments of the file, and the number of the first update behind them.
std::int64_t load_state(const StepArguments& options, TrainStep& step) {
  if (options.optimizer.empty()) return std::max<std::int64_t>(options.first_step, 1);
  load_optimizer(options.optimizer, step.parameters(), step.optimizer());
  if (options.first_step > 0) return options.first_step;
  const std::int64_t done = steps_done(SafetensorsReader(options.optimizer));
  TW_CHECK_INPUT(done > 0, options.optimizer.string(),
                 ": it does not say how many updates it comes from, which AdamW and the schedule count on; say it with --first-step N.");
  return done + 1;
}

std::vector<StepReport> take_steps(const StepArguments& options, TrainStep& step, const StoredBatches& files, std::int64_t updates) {
  const std::int64_t first = options.update ? load_state(options, step) : 1;
  const auto passes = static_cast<std::size_t>(step.resolved().recipe.batch.accumulate);
  std::vector<StepReport> reports;
  for (std::int64_t i = 0; i < updates; ++i) {
    std::vector<Batch> packed;
    const auto from = files.batches.begin() + i * static_cast<std::int64_t>(passes);
    std::transform(from, from + static_cast<std::int64_t>(passes), std::back_inserter(packed),
                   [&](const BatchFile& file) { return pack(file, batch_shape(step.resolved())); });
    reports.push_back(step.run(packed, first + i, options.update ? Update::yes : Update::no));
    const StepReport& report = reports.back();
    TW_CHECK(std::isfinite(report.loss) && report.finite, updates > 1 ? concat("step ", report.step, ": ") : "", "the loss is ",
             report.loss, " and the gradient norm ", report.gradient_norm,
             ", which are not both finite, so nothing was written; use smaller weights, or --set run.precision=fp64.");
  }
  return reports;
}

std::vector<TensorSource> logits_of(TrainStep& step, const StoredBatches& files) {
  SafetensorsContents contents;
  for (std::size_t i = 0; i < files.batches.size(); ++i) {
    add_logits(contents, step, files.names == BatchNames::alone ? "logits" : batch_prefix(i) + "logits", files.batches[i]);
  }
  return std::move(contents.tensors);
}

int run_step(const StepArguments& options) {
  check_options(options);
  options.weights.check();
  check_files(options);
  Recipe recipe = options.recipe.read();
  check_reads_tokens(recipe, "tilewave step");
  const DeviceInfo device = options.device.probe();
  check_supported(recipe, device.backend);
  std::optional<StoredBatches> files;
  std::int64_t updates = 0;
  if (!options.batch.empty()) {
    files = read_batch_files(options.batch, recipe.model);
    recipe = recipe_of_step(recipe, *files);
    updates = updates_of(options, *files, recipe.batch.accumulate);
  }
  const ResolvedRecipe resolved = resolve(recipe, {}, device);
  const Queue queue = options.device.make_queue(device);
  const GemmPlans plans =
      plans_for_step(resolved, {.queue = queue, .device = device, .noted = [](const std::string& note) { std::cerr << note << '\n'; }});
  Context context(queue, device, context_options(recipe, plans));
  TrainStep step(context, resolved);
  if (const InitialWeights& weights = options.weights.wanted; !weights.path.empty()) {
    const WeightOrigin origin = load_initial_weights(weights, step.parameters());
    if (weights.fit == WeightFit::partial) print_notes(origin.told());
  }
  if (!options.dump_weights.empty()) write_safetensors(options.dump_weights, weight_contents(step.parameters()));
  if (!files) return 0;

  std::vector<TensorSource> logits;  // of the weights before the first update
  if (options.logits) logits = logits_of(step, *files);
  const std::vector<StepReport> reports = take_steps(options, step, *files, updates);
  SafetensorsContents contents = step_contents(step, reports, options.update ? Update::yes : Update::no);
  std::ranges::move(logits, std::back_inserter(contents.tensors));
  write_safetensors(options.out, contents);
  print(options, recipe, reports);
  return 0;
}

}  // namespace

Command add_step(CLI::App& program) {
  CLI::App* app = program.add_subcommand("step", "training steps between files: weights and batches in, losses, gradients and logits out");
  const auto options = std::make_shared<StepArguments>();
  options->recipe.add_to(*app);
  options->weights.add_to(*app, "the recipe's initial weights");
  app->add_option("--batch", options->batch,
                  "safetensors: target_in, target_out, target_lengths, and with an encoder source, source_lengths; of several batches "
                  "each behind batch/<number>/");
  app->add_option("--out", options->out, "safetensors: loss, gradient/<name>, and with --update weight/<name> and the optimizer's moments");
  app->add_flag("--update", options->update,
                "take optimizer steps of the recipe's schedule, one for each batch (or batch.accumulate of them)");
  app->add_option("--optimizer", options->optimizer,
                  "with --update: begin with the moments of this file, a checkpoint's or an earlier --out");
  app->add_option("--first-step", options->first_step,
                  "with --update: which step of the schedule comes first (default: 1, or the one behind those of --optimizer)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app->add_flag("--logits", options->logits, "write logits [sequences, longest target, vocabulary] of the starting weights too");
  app->add_option("--dump-weights", options->dump_weights, "write the weights that the step starts from");
  app->add_flag("--json", options->json, "print JSON");
  options->device.add_to(*app);
  return {.app = app, .action = [options] { return run_step(*options); }};
}

}  // namespace tilewave
