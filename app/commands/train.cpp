// tilewave train RECIPE: trains, shows progress, ends with what came of it. --dry-run says what would be done and stops.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <thread>

#include "app/options/command.h"
#include "app/options/join_ranks.h"
#include "app/options/version.h"
#include "app/options/weight_options.h"
#include "app/process/stop_signals.h"
#include "app/text/adjustments.h"
#include "app/text/losses.h"
#include "app/text/plotter.h"
#include "app/text/progress.h"
#include "app/text/step_table.h"
#include "app/text/terminal.h"
#include "app/text/units.h"
#include "framework/distributed/host_name.h"
#include "framework/io/file.h"
#include "framework/io/json_lines.h"
#include "kernels/core/device_profiles.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/decoding/decoding_memory.h"
#include "models/planning/plan.h"
#include "models/planning/real_tokens.h"
#include "models/planning/resolve.h"
#include "models/training/dumped_batches.h"
#include "models/training/trainer.h"

namespace tilewave {
namespace {

struct TrainArguments {
  RecipeOptions recipe;
  DeviceOptions device;
  RankOptions ranks;
  WeightOptions weights;
  std::string commit;  // of this program
  std::filesystem::path run;
  bool resume = false;
  bool force = false;
  bool dry_run = false;
  std::string planned_for;
  std::string profile;
  std::vector<std::string> dump_batches;  // how many, and the file
  Output output = Output::table;
  PageOptions page;
};

// Until the run's first byte is written, while steps are taken, and behind the last one, when all of them are saved.
void answer_before_the_run() {
  answer_first_signal(FirstSignal::ends_the_process, "stopped by a signal before the first step; nothing was written");
}

int answer_during_steps() {
  answer_first_signal(FirstSignal::is_asked_for,
                      "caught a signal: the run stops as soon as the step under way is done and saved; a second signal ends it at once");
  return caught_signal();
}

void answer_behind_the_steps(const std::filesystem::path& folder) {
  answer_first_signal(FirstSignal::ends_the_process, concat("stopped by a signal behind the last step, which is saved; --resume --run ",
                                                            folder.string(), " does the rest"));
}

void answer_behind_the_run() {
  answer_first_signal(FirstSignal::ends_the_process, "stopped by a signal; the run has ended, and its folder is whole");
}

int dry_run(const TrainArguments& options) {
  TW_CHECK_INPUT(options.output == Output::table,
                 "--json prints what a training run came to; a step that is not run is JSON with tilewave plan RECIPE --json.");
  TW_CHECK_INPUT(options.profile.empty() && options.weights.wanted.path.empty() && !options.resume && !options.force,
                 "--profile, --weights, --resume and --force go with a run, and --dry-run makes none; leave it or them out.");
  TW_CHECK_INPUT(options.planned_for.empty() || options.device.device == "auto", "--for ", options.planned_for, " and --device ",
                 options.device.device, " name a device each; leave one of them out.");
  const Recipe recipe = options.recipe.read();
  check_files(recipe);
  const DeviceInfo device = options.planned_for.empty() ? options.device.probe() : profile_named(options.planned_for);
  check_plannable(recipe, device);
  RealTokenCounter tokens(recipe);
  const ResolvedRecipe resolved = resolve(recipe, {}, device, tokens);
  StepTrace trace = trace_step(resolved, device);
  if (packs_pairs(recipe.data)) trace.decoding_bytes = least_decoding_bytes(resolved, device, recipe.batch.sequence);
  const Page page = options.page.of_stdout();
  print_step(std::cout, {.resolved = resolved, .trace = trace, .device = device}, page);
  std::cout << '\n';
  print_adjustments(std::cout, resolved, page);
  std::cout << "the recipe as it would run\n\n" << to_toml(resolved.recipe);
  return 0;
}

// What the steps' matrix products came to, beside the device's peak where that is known.
std::string matrix_rate_text(double flops_per_s, double peak_flops_per_s) {
  std::string text = concat(", ", flops_text(flops_per_s), " in matrix products");
  if (peak_flops_per_s > 0.0) {
    text += concat(", ", percent_text(flops_per_s / peak_flops_per_s), " of the peak of ", flops_text(peak_flops_per_s));
  }
  return text;
}

// What the validation loss speaks of.
std::string validation_text(const TrainingResult& result) {
  const PairCounts& pairs = result.validation_pairs;
  std::string text = concat(" (over ", count_text(result.validation.target_tokens), " tokens");
  if (pairs.all > 0) {
    text += concat(" of ", count_text(pairs.counted()), pairs.left_out > 0 ? concat(" of ", count_text(pairs.all)) : "", " pairs");
  }
  return text + ")";
}

// What a passage of a run trains on and validates on.
std::string_view examples_of(const ModelConfig& model) {
  if (sees_pictures(model)) return " pictures";
  return model.architecture == Architecture::encoder_decoder ? " pairs" : " tokens";
}

std::string test_pairs_text(const PairCounts& pairs) {
  const std::string all = concat(" of ", count_text(pairs.all), " test pairs");
  return pairs.left_out > 0 ? concat(all, ", ", count_text(pairs.left_out), " of them too long to be translated") : all;
}

// How the rows of a step are shared out.
std::string shares_text(const ResolvedRecipe& resolved, std::int64_t ranks) {
  const BatchShape share = share_shape(resolved, ranks);
  const std::string source = share.source_rows > 0 ? concat(count_text(share.source_rows), " source and ") : "";
  return concat(ranks, " ranks of ", source, count_text(share.target_rows),
                " target rows each; a batch whose sequences do not fit them takes ", "another pass");
}

// What a person does with a run that has ended, as it is typed.
std::string next_command(const Recipe& recipe, const std::filesystem::path& folder) {
  const std::string run = shell_word(folder.string());
  if (captions(recipe.model)) return concat("tilewave caption ", run, " FILES");
  if (classifies(recipe.model)) return concat("tilewave evaluate ", run);
  if (recipe.data.kind == DataKind::synthetic) return concat("tilewave report ", run);  // its ids mean nothing
  if (recipe.model.architecture == Architecture::encoder_decoder) return concat("tilewave translate ", run, " < FILE");
  return concat("tilewave generate ", run, uses_tokenizer(recipe.data) ? " --prompt 'TEXT'" : " --ids 'IDS'");
}

struct Summary {
  const TrainingResult& result;
  const Recipe& recipe;
  double peak_flops_per_s = 0.0;
};

// What was learned, then what it took.
void print_table(const Summary& summary, const Page& page) {
  const TrainingResult& result = summary.result;
  const auto line = [&](const std::string& text) { std::cout << wrapped(text, page) << '\n'; };
  const bool pictures = result.validation.right.has_value();
  const auto nats = [&](double loss) { return number_text(loss, pictures ? " %.4f nats per picture" : " %.4f nats per target token"); };
  if (pictures) line(concat(kValidationAccuracy, ' ', accuracy_text(result.validation)));
  if (result.exact_match) line(concat("exact matches ", percent_text(*result.exact_match), test_pairs_text(result.test_pairs)));
  line(concat(kValidationLoss, nats(result.validation.loss), pictures ? std::string() : validation_text(result)));
  if (result.best) {
    line(concat("least ", kValidationLoss, nats(result.best->loss), " after step ", count_text(result.best->step), ", kept in ",
                (result.folder / kBestFolder).string()));
  }
  line(concat(training_loss_name(summary.recipe), nats(result.loss)));
  line(concat(result.steps, " steps in ", duration_text(result.seconds), ", ", rate_text(result.target_tokens_per_s),
              pictures ? " pictures/s" : " target tokens/s", matrix_rate_text(result.matrix_flops_per_s, summary.peak_flops_per_s)));
  if (result.extra_passes > 0) {
    line(concat(count_text(result.extra_passes), result.extra_passes == 1 ? " pass more" : " passes more",
                " than the steps have, since sequences did not fit the ranks' shares"));
  }
  const auto shown = [](const std::string& text) { return for_stdout(text, LineEnds::escaped); };
  for (const SampleTranslation& sample : result.samples) {
    std::cout << "  " << shown(sample.source) << "\n    -> " << shown(sample.translation);
    if (sample.translation != sample.expected) std::cout << "\n       (expected " << shown(sample.expected) << ')';
    std::cout << '\n';
  }
  std::cout << "run folder " << result.folder.string() << '\n' << std::flush;
  std::cerr << "next: " << next_command(summary.recipe, result.folder) << '\n';
}

void print_json(const TrainingResult& result) {
  JsonObject object;
  object.add("run", result.folder.string()).add("steps", result.steps);
  add_numbers(object, result);
  object.add("target_tokens_per_s", result.target_tokens_per_s).add("seconds", result.seconds);
  std::cout << object.text() << '\n';
}

ProfiledSteps profiled_steps(const std::string& text, std::int64_t last_step) {
  if (text.empty()) return {};
  ProfiledSteps steps;
  const char* const end = text.data() + text.size();
  const auto [colon, first_error] = std::from_chars(text.data(), end, steps.first);
  const bool cut = first_error == std::errc() && colon != end && *colon == ':';
  const auto [stop, count_error] = std::from_chars(cut ? colon + 1 : end, end, steps.count);
  TW_CHECK_INPUT(cut && count_error == std::errc() && stop == end && steps.first > 0 && steps.count > 0, "--profile ", text,
                 ": it takes FIRST:COUNT, the first step and how many, as in 5:2.");
  TW_CHECK_INPUT(steps.count <= last_step && steps.first <= last_step - steps.count + 1, "--profile ", text, ": the run ends with step ",
                 last_step, "; profile earlier ones, or raise run.steps.");
  return steps;
}

// A run that goes on has its recipe in its folder, which stands in the recipe's place or behind --run.
TrainArguments with_own_recipe(TrainArguments options) {
  std::filesystem::path& recipe = options.recipe.path;
  std::error_code ignored;
  const bool folder = !recipe.empty() && std::filesystem::is_directory(recipe, ignored);
  TW_CHECK_INPUT(!folder || options.resume, recipe.string(), ": is a folder; to go on with the run in it, add --resume.");
  TW_CHECK_INPUT(!folder || options.run.empty(), recipe.string(), " and --run ", options.run.string(), " are two runs' folders; name one.");
  if (folder) options.run = std::exchange(recipe, {});
  if (!recipe.empty()) return options;
  TW_CHECK_INPUT(options.resume && !options.run.empty(), "tilewave train: recipe is required; tilewave train --help says what it takes.");
  recipe = options.run / "recipe.toml";
  TW_CHECK_INPUT(is_there(recipe), options.run.string(), ": holds no run to resume; start one without --resume, or check the path.");
  return options;
}

// Writes the first batches that the run would train on, and makes none.
int dump_first_batches(const TrainArguments& options) {
  TW_CHECK_INPUT(!options.dry_run && !options.resume && !options.force && options.run.empty() && options.profile.empty() &&
                     options.planned_for.empty() && options.weights.wanted.path.empty() && options.output == Output::table,
                 "--dump-batches writes a file and makes no run: it goes with --set, --device and --threads alone.");
  const std::string& count = options.dump_batches.front();
  BatchDump dump{.file = options.dump_batches.back()};
  const char* const end = count.data() + count.size();
  const auto [stop, error] = std::from_chars(count.data(), end, dump.batches);
  constexpr std::int64_t kMaxBatches = 1 << 20;
  TW_CHECK_INPUT(error == std::errc() && stop == end && dump.batches > 0 && dump.batches <= kMaxBatches, "--dump-batches ", count, ' ',
                 dump.file.string(), ": it takes how many, 1 to ", kMaxBatches, ", and a file, as in 50 batches.safetensors.");
  std::error_code ignored;
  TW_CHECK_INPUT(!std::filesystem::equivalent(options.recipe.path, dump.file, ignored), "--dump-batches ", dump.file.string(),
                 " is the recipe; name another file.");
  check_output_file("--dump-batches", dump.file);
  const Recipe recipe = options.recipe.read();
  check_reads_tokens(recipe, "--dump-batches");
  dump_batches(recipe, options.device.probe(), dump, {.noted = [](const std::string& note) { std::cerr << note << '\n'; }});
  std::cout << "written " << count_text(dump.batches) << (dump.batches == 1 ? " batch to " : " batches to ") << dump.file.string() << '\n';
  return 0;
}

// Without a rank no other can end in order: what is in memory is lost, and the last checkpoint stands.
void end_without(const std::string& sentence) {
  std::cerr << concat("tilewave: ", sentence, '\n') << std::flush;
  std::_Exit(1);
}

// A rank that is not the first says nothing, and what is wrong with all of them is the first one's to say.
int follow_first(const TrainingRequest& request) {
  try {
    const TrainingResult result = train(request, {.beginning = answer_during_steps});
    return result.signal != 0 ? 128 + result.signal : 0;
  } catch (const std::exception& error) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const std::string sentence = concat("rank ", request.ranks.rank, " on ", host_name(), ": ", error.what());
    if (dynamic_cast<const InputError*>(&error) != nullptr) throw InputError(sentence);
    throw Error(sentence);
  }
}

int train_recipe(const TrainArguments& given) {
  TrainArguments options = with_own_recipe(given);
  options.ranks.apply(options.recipe);
  options.ranks.apply(options.device);
  options.weights.check();
  if (!options.dump_batches.empty()) return dump_first_batches(options);
  if (options.dry_run) return dry_run(options);
  TW_CHECK_INPUT(options.planned_for.empty(), "--for ", options.planned_for,
                 " goes with --dry-run; to train, name a device that is here with --device.");
  check_output_folder("--run", options.run);
  Recipe recipe = options.recipe.read();
  const RankEnvironment started = rank_environment();
  if (started.count == 1 && recipe.run.ranks > 1) return start_ranks(recipe.run.ranks, options.device);
  recipe = for_ranks(std::move(recipe), started);
  const JoinedRanks joined = join_ranks(started, options.device);
  if (given.recipe.path != options.recipe.path) recipe.name = std::filesystem::absolute(options.run / "").parent_path().filename().string();
  const DeviceInfo device = joined.device.probe();
  ProgressDisplay display(recipe.run.steps);
  if (classifies(recipe.model)) display.count_pictures();
  answer_before_the_run();
  catch_stop_signals();
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the output that goes away takes no run with it
  const TrainingRequest request{.recipe = recipe,
                                .run = {.recipe = recipe.name,
                                        .folder = options.run,
                                        .start = options.resume ? RunStart::resume : RunStart::fresh,
                                        .overwrite = options.force ? Overwrite::force : Overwrite::refuse},
                                .queue = joined.device.make_queue(device),
                                .device = device,
                                .profile = profiled_steps(options.profile, recipe.run.steps),
                                .weights = options.weights.wanted,
                                .ranks = joined.ranks,
                                .program = concat(version(), ' ', options.commit),
                                .rank_lost = end_without,
                                .stop_signal = caught_signal};
  std::filesystem::path folder;  // once there is one
  Redrawing redrawing;
  const TrainingObserver observer{
      .beginning = answer_during_steps,
      .started =
          [&](const TrainingStart& start) {
            folder = start.folder;
            print_adjustments(std::cerr, *start.resolved, options.page.of_stderr());
            display.say(concat(recipe.name, ": ", count_text(start.parameters), " parameters, ",
                               count_text(start.resolved->shapes.target_rows * recipe.batch.accumulate),
                               classifies(recipe.model)
                                   ? concat(" pictures per step of ", patches_of(recipe.model, recipe.data), " rows each, ")
                                   : std::string(" target rows per step, "),
                               name_of(recipe.run.precision), " on ", device_text(request.device), ", ", bytes_text(start.bytes),
                               "; run folder ", start.folder.string()));
            if (const std::int64_t ranks = recipe.run.ranks; ranks > 1) display.say(shares_text(*start.resolved, ranks));
            if (start.data.training > 0) {
              display.say(concat(count_text(start.data.training), examples_of(recipe.model), " to train on, ",
                                 count_text(start.data.validation), " to validate on"));
            }
            if (const std::string legend = losses_legend(recipe); !legend.empty()) display.say(legend);
            if (request.device.backend == Backend::cuda) {
              display.say(concat("GEMMs are planned by predicted times, ", source_of(cost_model_of(request.device))));
            }
            if (start.first_step > 1) display.say(concat("resumed after step ", start.first_step - 1));
            display.begin(start.first_step);
          },
      .stepped = [&](const TrainingProgress& progress) { display.show(progress); },
      .validated =
          [&](std::int64_t step, const ValidationLoss& loss) {
            const std::string accuracy = loss.right ? concat(", ", kValidationAccuracy, ' ', accuracy_text(loss)) : std::string();
            display.say(concat("step ", step, ": ", kValidationLoss, ' ', loss.loss, accuracy));
            redrawing.draw(folder);
          },
      .profiled =
          [&](const std::vector<ProfiledLaunch>& launches, std::int64_t steps) {
            std::ostringstream table;
            print_profile(table, {.launches = launches, .steps = steps}, options.page.of_stderr());
            display.say(table.str());
            const std::string where = concat("every launch is in ", (folder / "profile.jsonl").string(),
                                             " and, for Perfetto or chrome://tracing, in ", (folder / "trace.json").string());
            display.say(wrapped(where, options.page.of_stderr()));
          },
      .saved = answer_behind_the_steps,
      .noted = [&](const std::string& note) { display.say(note); }};
  if (!joined.speaks()) return follow_first(request);
  const TrainingResult result = train(request, observer);
  if (result.signal != 0 && result.folder.empty()) return 128 + result.signal;
  if (result.signal != 0) {
    display.say(concat("stopped by a signal after step ", result.steps, "; the checkpoint is saved, go on with --resume --run ",
                       result.folder.string()));
    return 128 + result.signal;
  }
  answer_behind_the_run();
  display.say("");
  redrawing.finish();
  draw(result.folder, "loss.csv and loss.png");
  const PrecisionTable types = precision_table(recipe.run.precision);
  if (options.output == Output::json) {
    print_json(result);
  } else {
    const double peak = peak_flops_per_s(request.device, types.activation, types.math);
    print_table({.result = result, .recipe = recipe, .peak_flops_per_s = peak}, options.page.of_stdout());
  }
  return 0;
}

}  // namespace

Command add_train(CLI::App& program, const std::string& commit) {
  CLI::App* command = program.add_subcommand("train", "train a Transformer from a recipe");
  const auto options = std::make_shared<TrainArguments>();
  options->commit = commit;
  options->recipe.add_to(*command)->required(false)->description(
      "the recipe, a TOML file (docs/use/recipes.md); with --resume, a run's folder will do");
  options->weights.add_to(*command, "the recipe's initial weights");
  options->device.add_to(*command);
  options->ranks.add_to(*command);
  command->add_option("--run", options->run, "the run's folder (default: runs/<recipe>, then -2, -3)");
  command->add_flag("--resume", options->resume, "go on from the newest valid checkpoint");
  command->add_flag("--force", options->force, "overwrite a run that has ended; with --resume, accept a changed recipe or corpus");
  command->add_flag("--dry-run", options->dry_run, "print the step's memory and GEMMs and the resolved recipe, and stop");
  command->add_option("--for", options->planned_for, "with --dry-run: a GPU that need not be here, as plan has it")->type_name("NAME");
  command->add_option("--profile", options->profile, "time every launch of COUNT steps from step FIRST on, one by one")
      ->type_name("FIRST:COUNT");
  command->add_option("--dump-batches", options->dump_batches, "write the first N batches for another framework, and stop")
      ->expected(2)
      ->type_name("N FILE");
  command->add_flag_callback(
      "--json", [options] { options->output = Output::json; }, "print the result as one JSON object");
  options->page.add_to(*command);
  return {command, [options] { return train_recipe(*options); }};
}

}  // namespace tilewave
