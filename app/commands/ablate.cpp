// tilewave ablate RECIPE: one recipe under several settings, timed in turns, each shown to compute the same loss; docs/use/ablate.md
// explains the columns. Exit code 0: every variant ran and no loss differed; 1: one did not fit or differed; 2: a value that a key
// cannot have, after the variants that could run have run.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <set>

#include "app/bench/calibrate.h"
#include "app/options/command.h"
#include "app/text/ablation_files.h"
#include "app/text/gemm_text.h"
#include "app/text/plotter.h"
#include "app/text/step_table.h"
#include "framework/io/file.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPrintedGroups = 9;  // of GEMMs; the files hold them all

struct Options {
  RecipeOptions recipe;
  DeviceOptions device;
  std::vector<std::string> switches;
  std::int64_t steps = 5;
  int rounds = 9;
  fs::path out;
  bool full = false, calibrate = false, json = false;
};

template <class... Values>
void print_line(const char* pattern, const Values&... values) {
  char line[512];
  std::snprintf(line, sizeof line, pattern, values...);
  std::cout << line << '\n';
}

bool there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// An empty folder: the one asked for, or the next of runs/<recipe>-ablation, -2, -3. It goes again where nothing was written to it.
class ResultFolder {
 public:
  ResultFolder(const Options& options, const std::string& recipe) : path_(options.out), made_(!there(options.out)) {
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

void print_steps(const AblationReport& report) {
  std::size_t width = 8;
  for (const AblationVariant& variant : report.variants) width = std::max(width, variant.setting.name.size());
  const int name = static_cast<int>(width);
  print_line("%-*s %6s %6s %19s %10s %8s %9s %9s %9s %7s %9s  %s", name, "variant", "rows", "V", "step ms (quartiles)", "tokens/s",
             "TFLOP/s", "memory", "predicted", "measured", "error", "of GEMMs", "same loss");
  for (const AblationVariant& variant : report.variants) {
    if (!variant.ran()) {
      std::cout << variant.setting.name << std::string(width - variant.setting.name.size(), ' ') << " did not run: " << variant.refused
                << '\n';
      continue;
    }
    char step[64], predicted[32] = "", measured[32] = "", error[32] = "", of_gemms[32] = "";
    std::snprintf(step, sizeof step, "%.3f (%.3f-%.3f)", 1e3 * variant.step.median_s, 1e3 * variant.step.lower_quartile_s,
                  1e3 * variant.step.upper_quartile_s);
    if (variant.same_loss.verdict != SameLoss::Verdict::itself && variant.measured_gain) {
      std::snprintf(measured, sizeof measured, "%+.2f %%", 100.0 * *variant.measured_gain);
      std::snprintf(of_gemms, sizeof of_gemms, "%+.2f %%", 100.0 * *variant.measured_gemm_gain);
    }
    if (variant.same_loss.verdict != SameLoss::Verdict::itself && variant.error_points()) {
      std::snprintf(predicted, sizeof predicted, "%+.2f %%", 100.0 * *variant.predicted_gain);
      std::snprintf(error, sizeof error, "%+.2f", *variant.error_points());
    }
    const SameLoss& same = variant.same_loss;
    print_line("%-*s %6ld %6ld %19s %10.0f %8.2f %9s %9s %9s %7s %9s  %s%s%s", name, variant.setting.name.c_str(),
               static_cast<long>(variant.resolved.shapes.target_rows * variant.resolved.recipe.batch.accumulate),
               static_cast<long>(variant.resolved.shapes.vocabulary_padded), step, variant.target_tokens_per_s(), variant.tflops(),
               bytes_text(variant.memory_bytes).c_str(), predicted, measured, error, of_gemms, std::string(name_of(same.verdict)).c_str(),
               same.how.empty() ? "" : ", ", same.how.c_str());
  }
}

void print_adjustments(const AblationReport& report) {
  std::vector<AdjustedSetting> adjusted;
  for (const AblationVariant& variant : report.variants) {
    if (variant.ran()) adjusted.push_back({.name = variant.setting.name, .adjustments = variant.resolved.adjustments});
  }
  print_adjustments(std::cout, adjusted);
}

// The largest groups of GEMMs whose problem or plan a setting changes, each in every variant.
void print_gemms(const AblationReport& report) {
  struct Group {
    std::string layer;
    GemmRole role;
    double seconds;
  };
  std::vector<Group> groups;
  for (const AblationVariant& variant : report.variants) {
    for (const GemmTimes& gemm : variant.gemms) {
      if (!gemm.concerned) continue;
      const auto known =
          std::find_if(groups.begin(), groups.end(), [&](const Group& one) { return one.layer == gemm.layer && one.role == gemm.role; });
      if (known == groups.end()) {
        groups.push_back({gemm.layer, gemm.role, gemm.measured_s});
      } else {
        known->seconds = std::max(known->seconds, gemm.measured_s);
      }
    }
  }
  if (groups.empty()) return;
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.seconds > b.seconds; });
  std::cout << '\n';
  if (groups.size() > kPrintedGroups) {
    print_line("the %zu largest of %zu groups of GEMMs that a setting changes, launch by launch; the files hold them all", kPrintedGroups,
               groups.size());
    groups.resize(kPrintedGroups);
  }
  print_line("%-28s %-8s %5s %6s %6s %6s %-9s %-36s %6s %6s %6s %9s %9s %8s  %s", "layer", "role", "count", "M", "N", "K", "align",
             "row/tile", "useful", "waves", "tail", "us", "predicted", "TFLOP/s", "variant");
  for (const Group& group : groups) {
    for (const AblationVariant& variant : report.variants) {
      for (const GemmTimes& gemm : variant.gemms) {
        if (gemm.layer != group.layer || gemm.role != group.role) continue;
        const GemmPlan& plan = gemm.plan;
        const auto number = [](std::int64_t value) { return static_cast<long>(value); };
        char useful[16] = "", waves[16] = "", tail[16] = "", predicted[16] = "";
        if (!gemm.library) {
          const PlanWaves filled = waves_of(plan);
          std::snprintf(useful, sizeof useful, "%.1f%%", 100.0 * plan.tiling.useful_fraction);
          std::snprintf(waves, sizeof waves, "%.2f", filled.waves);
          std::snprintf(tail, sizeof tail, "%.1f%%", 100.0 * filled.tail_fraction);
          std::snprintf(predicted, sizeof predicted, "%.1f", 1e6 * gemm.predicted_s);
        }
        print_line("%-28s %-8s %5ld %6ld %6ld %6ld %-9s %-36s %6s %6s %6s %9.1f %9s %8.2f  %s", gemm.layer.c_str(),
                   std::string(name_of(gemm.role)).c_str(), number(gemm.count), number(gemm.problem.m), number(gemm.problem.n),
                   number(gemm.problem.k), concat(plan.a_alignment, "/", plan.b_alignment, "/", plan.d_alignment).c_str(),
                   gemm.library ? std::string(plan.row).c_str() : row_text(plan).c_str(), useful, waves, tail, 1e6 * gemm.measured_s,
                   predicted, 1e-12 * static_cast<double>(gemm.flops) / gemm.measured_s, variant.setting.name.c_str());
      }
    }
  }
}

void print_prediction(const AblationReport& report) {
  double sum = 0.0;
  int count = 0;
  for (const AblationVariant& variant : report.variants) {
    const std::optional<double> error = variant.gemm_error();
    if (!error) continue;
    sum += *error;
    ++count;
  }
  if (count == 0) return;
  const std::string model = report.device.backend == Backend::cuda
                                ? "cost model " + source_of(cost_model_of(report.device))
                                : std::string("predicted gains are of GEMMs alone, as a CPU's bandwidth is not known");
  print_line("\nGEMM times are predicted within %.1f %% of measured ones on average; %s", 100.0 * sum / count, model.c_str());
}

// Variants beside each other, as many as a wide line holds; then the others below.
void print_curves(const AblationReport& report) {
  constexpr std::size_t kLine = 170, kPair = 30;  // characters of a line, and of a loss and a norm
  std::vector<const AblationVariant*> left;
  for (const AblationVariant& variant : report.variants) {
    if (variant.ran() && !variant.same_as) left.push_back(&variant);
  }
  while (!left.empty()) {
    std::vector<std::string> lines = {"  step"};
    for (std::int64_t step = 1; step <= report.steps; ++step) {
      char number[32];
      std::snprintf(number, sizeof number, "%6ld", static_cast<long>(step));
      lines.emplace_back(number);
    }
    std::size_t shown = 0;
    for (; shown < left.size(); ++shown) {
      const AblationVariant& variant = *left[shown];
      const std::size_t width = std::max(variant.setting.name.size(), kPair), before = lines.front().size();
      if (shown > 0 && before + 2 + width > kLine) break;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        char pair[64] = "";
        if (i > 0) std::snprintf(pair, sizeof pair, "%-14.9g  %-14.9g", variant.curve.losses[i - 1], variant.curve.gradient_norms[i - 1]);
        lines[i] += std::string(before + 2 - lines[i].size(), ' ') + (i == 0 ? variant.setting.name : pair);
      }
      lines.front().resize(before + 2 + width, ' ');
    }
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(shown));
    for (const std::string& line : lines) std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

void print_losses(const AblationReport& report) {
  std::cout << "\nloss and gradient norm\n";
  print_curves(report);
  for (const AblationVariant& variant : report.variants) {
    if (!variant.ran() || variant.same_as) continue;
    const SameLoss& same = variant.same_loss;
    if (same.verdict == SameLoss::Verdict::itself || same.verdict == SameLoss::Verdict::another_model) continue;
    std::cout << "  " << variant.setting.name << '\n';
    print_line("    %s, %s: loss off by %.2g, gradients by %.2g%s%s", std::string(name_of(same.verdict)).c_str(), same.how.c_str(),
               same.distance.loss, same.distance.gradient, same.distance.worst.empty() ? "" : ", most in ", same.distance.worst.c_str());
    if (same.error_ratio > 0.0) {
      print_line("      in %s: loss off by %.2g, gradients by %.2g, of %.2g allowed", std::string(name_of(same.reference)).c_str(),
                 same.mathematics.loss, same.mathematics.gradient, same.tolerance);
      print_line("      from %s: gradients off by up to %.2g, the baseline's by %.2g; on average %.2f times the baseline's, at most %.2f",
                 std::string(name_of(same.reference)).c_str(), same.ours.gradient, same.baseline.gradient, same.error_ratio,
                 same.largest_ratio);
    } else if (same.tolerance > 0.0) {
      print_line("      of %.2g allowed", same.tolerance);
    }
    if (same.curve_tolerance > 0.0) {
      print_line("      over %lld steps: loss off by %.2g, gradient norm by %.2g, of %.2g allowed", static_cast<long long>(report.steps),
                 same.curve.loss, same.curve.gradient, same.curve_tolerance);
    }
  }
}

int run_ablation(const Options& options) {
  check_output_folder("--out", options.out);
  Recipe recipe = options.recipe.read();
  std::string switches;
  for (const std::string& one : options.switches) switches += (switches.empty() ? "" : " ") + one;
  AblationRequest request;
  request.recipe = recipe;
  request.settings = settings_of(parse_switches(options.switches.empty() ? recipe.ablation.switches : switches));
  request.steps = options.steps;
  request.sizes = options.full ? AblationSizes::full : AblationSizes::fitting;
  request.timing.rounds = options.rounds;
  request.timing.finalists = kMaxSettings;
  request.device = options.device.probe();
  TW_CHECK_INPUT(!options.calibrate || request.device.backend == Backend::cuda, "--calibrate fits the cost model of a GPU, and ",
                 request.device.name, " is none; a CPU's rows have models of their own (docs/understand/cpu-gemm.md).");
  request.queue = options.device.make_queue(request.device);
  request.noted = [](const std::string& note) { std::cerr << note << '\n'; };
  const ResultFolder folder(options, recipe.name);
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
    std::cout << recipe.name << " on " << device_text(report.device) << "; medians of " << options.rounds << " interleaved rounds\n";
    if (!report.changes.empty()) std::cout << "made to fit a CPU, whose threads stand for multiprocessors (--full leaves it as it is):\n";
    for (const std::string& change : report.changes) std::cout << "  " << change << '\n';
    std::cout << '\n';
    print_steps(report);
    print_adjustments(report);
    print_gemms(report);
    print_prediction(report);
    print_losses(report);
    std::cout << "\nfolder " << folder.path().string() << '\n';
  }
  const bool usage = std::any_of(report.variants.begin(), report.variants.end(), [](const auto& one) { return one.refused_input; });
  return usage ? 2 : report.holds() ? 0 : 1;
}

}  // namespace

Command add_ablate(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("ablate", "measure what each guideline is worth on a recipe, and that its loss stays the same");
  const auto options = std::make_shared<Options>();
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
  options->device.add_to(*command);
  return {command, [options] { return run_ablation(*options); }};
}

}  // namespace tilewave
