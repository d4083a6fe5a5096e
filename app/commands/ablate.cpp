// tilewave ablate RECIPE: one recipe under several settings, timed in turns, each shown to compute the same loss; docs/use/ablate.md
// explains the columns. Exit code 0: every variant ran and no loss differed; 1: one did not fit or differed; 2: a value that a key
// cannot have, after the variants that could run have run.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/bench/calibrate.h"
#include "app/options/command.h"
#include "app/process/own_output.h"
#include "app/text/ablation_files.h"
#include "app/text/ablation_text.h"
#include "app/text/plotter.h"
#include "framework/io/file.h"
#include "kernels/gemm/cost/cost_model.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

struct AblateArguments {
  RecipeOptions recipe;
  DeviceOptions device;
  std::vector<std::string> switches;
  std::int64_t steps = 5;
  int rounds = 9;
  fs::path out;
  PageOptions page;
  bool full = false, calibrate = false, json = false;
};

bool there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// An empty folder: the one asked for, or the next of runs/<recipe>-ablation, -2, -3. It goes again where nothing was written to it.
class ResultFolder {
 public:
  ResultFolder(const AblateArguments& options, const std::string& recipe) : path_(options.out), made_(!there(options.out)) {
    if (!options.out.empty()) {
      make_folders(options.out);
      TW_CHECK_INPUT(names_in(options.out).empty(), options.out.string(), " is not empty; name another folder with --out.");
      return;
    }
    make_folders("runs");
    std::error_code code;
    for (int number = 1; path_.empty() || !fs::create_directory(path_, code); ++number) {
      TW_CHECK(!code, path_.string(), ": cannot make the folder: ", code.message(), "; name another one with --out.");
      path_ = fs::path("runs") / (number == 1 ? recipe + "-ablation" : concat(recipe, "-ablation-", number));
    }
  }
  ~ResultFolder() {
    std::error_code not_empty;
    if (made_) fs::remove(path_, not_empty);
  }
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool made_;
};

// The recipe once more, as a file, by `bench step`, which starts its ranks.
RanksRun bench_of_ranks(const RanksAsked& asked, const DeviceOptions& device, const fs::path& folder) {
  const fs::path file = folder / "ranks.toml";
  write_file_atomically(file, to_toml(asked.recipe));
  const bool cpu = asked.device.backend == Backend::cpu;
  std::vector<std::string> words = {"bench",       "step",
                                    file.string(), "--json",
                                    "--steps",     std::to_string(asked.steps),
                                    "--rounds",    std::to_string(asked.rounds),
                                    "--device",    cpu ? "cpu" : device.device == "auto" ? "cuda" : device.device};
  if (cpu) words.insert(words.end(), {"--threads", std::to_string(asked.device.sm_count)});
  std::string said;
  try {
    said = own_output(words);
  } catch (...) {
    fs::remove(file);
    throw;
  }
  fs::remove(file);
  const nlohmann::json figures = nlohmann::json::parse(said);
  RanksRun run;
  for (const nlohmann::json& step : figures.at("steps")) {
    const auto number = [&](const char* key) { return step.at(key).is_null() ? NAN : step.at(key).get<double>(); };
    run.curve.losses.push_back(number("loss"));
    run.curve.gradient_norms.push_back(number("gradient_norm"));
  }
  const auto seconds = [](const nlohmann::json& of, const char* key) { return of.at(key).get<double>() * 1e-6; };
  run.step = {.median_s = seconds(figures, "time_us"),
              .lower_quartile_s = seconds(figures, "lower_quartile_us"),
              .upper_quartile_s = seconds(figures, "upper_quartile_us")};
  for (const nlohmann::json& round : figures.at("rounds")) run.step.rounds_s.push_back(seconds(round, "time_us"));
  return run;
}

int run_ablation(const AblateArguments& options) {
  check_output_folder("--out", options.out);
  Recipe recipe = options.recipe.read();
  std::string switches;
  for (const std::string& one : options.switches) switches += (switches.empty() ? "" : " ") + one;
  AblationRequest request;
  request.recipe = recipe;
  request.settings = settings_of(parse_switches(options.switches.empty() ? recipe.ablation.switches : switches), recipe.model);
  request.steps = options.steps;
  request.sizes = options.full ? AblationSizes::full : AblationSizes::fitting;
  request.timing.rounds = options.rounds;
  request.timing.finalists = kMaxSettings;
  request.device = options.device.probe();
  TW_CHECK_INPUT(!options.calibrate || request.device.backend == Backend::cuda, "--calibrate fits the cost model of a GPU, and ",
                 request.device.name, " is none; a CPU's kernels have models of their own (docs/understand/cpu-gemm.md).");
  request.queue = options.device.make_queue(request.device);
  request.noted = [](const std::string& note) { std::cerr << note << '\n'; };
  const ResultFolder folder(options, recipe.name);
  request.start_ranks = [&](const RanksAsked& asked) { return bench_of_ranks(asked, options.device, folder.path()); };
  if (options.calibrate) {
    const Calibration calibration = calibration_of(measure_calibration(options.device, request.device), request.device);
    request.device.cost_model = std::make_shared<CostModel>(calibration.model);
  }
  const AblationReport report = ablate(request);
  write_ablation(folder.path(), report);
  draw(folder.path(), "ablation.png");

  for (const AblationVariant& variant : report.variants) {
    if (!variant.ran()) std::cerr << "tilewave: " << variant.setting.name << ": " << variant.refused << '\n';
  }
  if (options.json) {
    std::cout << text_of(ablation_json(report)) << '\n';
  } else {
    print_ablation(std::cout, {.report = report, .folder = folder.path(), .rounds = options.rounds}, options.page.of_stdout());
  }
  const bool usage = std::any_of(report.variants.begin(), report.variants.end(), [](const auto& one) { return one.refused_input; });
  return usage ? 2 : report.holds() ? 0 : 1;
}

}  // namespace

Command add_ablate(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("ablate", "measure what each guideline is worth on a recipe, and that its loss stays the same");
  const auto options = std::make_shared<AblateArguments>();
  options->recipe.add_to(*command);
  command->add_option("--switch", options->switches, "a key and its values; several make every combination (default: ablation.switches)")
      ->take_all()
      ->type_name("KEY=VALUE,VALUE");
  command->add_option("--steps", options->steps, "steps whose losses are compared")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--rounds", options->rounds, "interleaved rounds of timing")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--out", options->out, "an empty folder for the results (default: runs/<recipe>-ablation, then -2, -3)");
  command->add_flag("--full", options->full, "the recipe's own sizes, also on a CPU");
  command->add_flag("--calibrate", options->calibrate, "GPU: predict by a cost model that this run measures first, on other shapes");
  command->add_flag("--json", options->json, "print ablation.json instead of tables");
  options->page.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return run_ablation(*options); }};
}

}  // namespace tilewave
