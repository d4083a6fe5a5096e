// tilewave report RUN: a page of what became of a run, which stands by itself.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "app/options/command.h"
#include "app/text/json_fields.h"
#include "app/text/losses.h"
#include "app/text/report_page.h"
#include "app/text/terminal.h"
#include "app/text/units.h"
#include "framework/data/prepared_text.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/json_lines.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/decoding/decode.h"
#include "models/decoding/trained_model.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

using ReportJson = nlohmann::ordered_json;

struct ReportArguments {
  std::filesystem::path run, out;
  std::string prompt = "\n";
  std::int64_t tokens = 200;
  DeviceOptions device;
};

// The whole lines of a file of JSON objects; none where it is not there.
std::vector<ReportJson> json_lines_of(const std::filesystem::path& path) {
  std::vector<ReportJson> lines;
  std::istringstream text(is_there(path) ? read_file(path, kMaxJsonLinesBytes) : std::string());
  for (std::string line; std::getline(text, line);) {
    ReportJson object = ReportJson::parse(line, nullptr, false);
    if (object.is_object()) lines.push_back(std::move(object));
  }
  return lines;
}

std::optional<double> number_in(const ReportJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number() || !std::isfinite(found->get<double>())) return std::nullopt;
  return found->get<double>();
}

std::string text_in(const ReportJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// A step that was run again after a resume counts as it went last.
std::vector<ReportedStep> steps_of(const std::filesystem::path& run, const ReportJson& summary) {
  std::map<std::int64_t, ReportedStep> steps;
  for (const ReportJson& line : json_lines_of(run / "metrics.jsonl")) {
    const auto step = static_cast<std::int64_t>(number_in(line, "step").value_or(0.0));
    steps[step] = {.step = step,
                   .loss = number_in(line, "loss"),
                   .validation_loss = number_in(line, "validation_loss"),
                   .learning_rate = number_in(line, "learning_rate"),
                   .gradient_norm = number_in(line, "gradient_norm")};
  }
  const auto last = steps.find(static_cast<std::int64_t>(number_in(summary, "steps").value_or(-1.0)));
  if (last != steps.end()) last->second.validation_loss = number_in(summary, "validation_loss");
  std::vector<ReportedStep> all;
  for (auto& [step, one] : steps) all.push_back(one);
  return all;
}

std::string nats(double loss, bool pictures) {
  return number_text(loss, pictures ? "%.4f nats per picture" : "%.4f nats per target token");
}

std::vector<std::string> answers_of(const Recipe& recipe, const ReportJson& summary, const std::vector<ReportedStep>& steps) {
  std::vector<std::string> answers;
  const bool pictures = classifies(recipe.model);
  if (summary.empty()) {
    answers.push_back(steps.empty() ? "The run has done no step yet."
                                    : concat("The run is at step ", count_text(steps.back().step), " of ", count_text(recipe.run.steps),
                                             "; it goes on, or was stopped."));
  } else {
    answers.push_back(concat(count_text(static_cast<std::int64_t>(number_in(summary, "steps").value_or(0.0))), " steps in ",
                             duration_text(number_in(summary, "seconds").value_or(0.0)), ", ",
                             rate_text(number_in(summary, "target_tokens_per_s").value_or(0.0)),
                             pictures ? " pictures/s." : " target tokens/s."));
    if (const auto accuracy = number_in(summary, "validation_accuracy"))
      answers.push_back(concat("Held-out pictures whose class it says right: ", percent_text(*accuracy, 2), "."));
    if (const auto exact = number_in(summary, "exact_match"))
      answers.push_back(concat("Exact matches: ", percent_text(*exact), " of the test pairs."));
  }
  const auto last = std::find_if(steps.rbegin(), steps.rend(), [](const ReportedStep& step) { return step.validation_loss.has_value(); });
  if (last != steps.rend()) {
    answers.push_back(concat("The ", kValidationLoss, " after step ", count_text(last->step), " is ",
                             nats(*last->validation_loss, pictures),
                             pictures ? "." : number_text(std::exp(*last->validation_loss), ", a perplexity of %.4g.")));
  }
  if (!steps.empty() && steps.back().loss)
    answers.push_back(concat("The last ", training_loss_name(recipe), " is ", nats(*steps.back().loss, pictures), "."));
  return answers;
}

// Of a model that continues text: what it makes of the prompt.
ReportedSample generated_sample(const ReportArguments& options, TrainedModel& trained) {
  const Tokenizer& tokenizer = *trained.tokenizer;
  std::vector<std::int32_t> prompt = tokenizer.before();
  const std::vector<std::int32_t> text = tokenizer.encode(prepared_text(options.prompt, tokenizer.kind(), TextForm::document));
  prompt.insert(prompt.end(), text.begin(), text.end());
  std::vector<std::int32_t> drawn;
  generate(*trained.model, prompt,
           {.tokens = options.tokens,
            .temperature = 0.8,
            .top_k = 40,
            .drawn = drawn_ids(tokenizer),
            .vocabulary = tokenizer.vocabulary(),
            .positions = trained.resolved.recipe.batch.sequence},
           [&](std::int32_t id) { drawn.push_back(id); });
  return {.given = options.prompt, .expected = {}, .said = escaped(tokenizer.decode(drawn), LineEnds::kept)};
}

void add_samples(const ReportArguments& options, const Recipe& recipe, const ReportJson& summary, RunReport& report) {
  if (sees_pictures(recipe.model)) {
    report.without_samples = "The run's model sees pictures, and writes no text.";
    return;
  }
  if (recipe.model.architecture == Architecture::encoder_decoder) {
    const ReportJson samples = summary.contains("samples") && summary["samples"].is_array() ? summary["samples"] : ReportJson::array();
    for (const ReportJson& sample : samples) {
      report.samples.push_back(
          {.given = text_in(sample, "source"), .expected = text_in(sample, "expected"), .said = text_in(sample, "translation")});
    }
    report.without_samples = summary.empty() ? "A run translates some test pairs when it has ended."
                                             : "The run has translated no test pair: its data has none that fit the model.";
    return;
  }
  if (options.tokens == 0 || !uses_tokenizer(recipe.data)) {
    report.without_samples =
        options.tokens == 0 ? "No sample was asked for (--tokens 0)." : "The run's data is ids, and no tokenizer makes text of them.";
    return;
  }
  if (!has_complete_checkpoints(options.run)) {
    report.without_samples = "There is no checkpoint yet to draw a sample from.";
    return;
  }
  const DeviceInfo device = options.device.probe();
  TrainedModel trained = open_trained_model(options.run, options.device.make_queue(device), device);
  print_notes(trained.notes);
  report.samples.push_back(generated_sample(options, trained));
}

// What the profiled steps' launches took, beside what was predicted of them.
void add_profiled_gemms(const std::vector<ReportJson>& launches, RunReport& report) {
  std::set<std::int64_t> steps;
  std::map<std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t>, ReportedGemm> gemms;
  for (const ReportJson& launch : launches) {
    steps.insert(static_cast<std::int64_t>(number_in(launch, "step").value_or(0.0)));
    if (!launch.contains("role")) continue;
    const auto size = [&](const char* key) { return static_cast<std::int64_t>(number_in(launch, key).value_or(0.0)); };
    ReportedGemm one{.layer = without_numbers(text_in(launch, "layer")),
                     .role = text_in(launch, "role"),
                     .kernel = text_in(launch, launch.contains("kernel") ? "kernel" : "row"),
                     .m = size("m"),
                     .n = size("n"),
                     .k = size("k")};
    ReportedGemm& gemm = gemms.try_emplace({one.layer, one.role, one.kernel, one.m, one.n, one.k}, one).first->second;
    gemm.launches += 1.0;
    gemm.predicted_s += 1e-6 * number_in(launch, "predicted_us").value_or(0.0);
    gemm.measured_s += 1e-6 * number_in(launch, "time_us").value_or(0.0);
    gemm.flops += number_in(launch, "flops").value_or(0.0);
  }
  const double each = 1.0 / static_cast<double>(std::max<std::size_t>(1, steps.size()));
  for (auto& [key, gemm] : gemms) {
    for (double* sum : {&gemm.launches, &gemm.predicted_s, &gemm.measured_s, &gemm.flops}) *sum *= each;
    report.gemms.push_back(gemm);
  }
  report.times = concat("Times are of a step, the mean of ", steps.size(), steps.size() == 1 ? " step" : " steps",
                        " profiled launch by launch; predicted times are those of the plans it ran by.");
}

void add_predicted_gemms(const ReportArguments& options, const Recipe& recipe, RunReport& report) {
  const DeviceInfo device = options.device.probe();
  const ResolvedRecipe resolved = resolve(predictable(recipe));
  for (const GemmLine& line : plan_step(resolved, device).gemms) {
    report.gemms.push_back({.layer = line.layer,
                            .role = std::string(name_of(line.problem.role)),
                            .kernel = name_of(line.plan.composition),
                            .m = line.problem.m,
                            .n = line.problem.n,
                            .k = line.problem.k,
                            .launches = static_cast<double>(line.count),
                            .predicted_s = line.predicted_s(),
                            .flops = static_cast<double>(line.count) * static_cast<double>(line.problem.flops())});
  }
  report.times = concat("No step of the run was profiled, so times are predicted for ", device_text(device),
                        "; train with --profile FIRST:COUNT measures those steps, and they stand here beside the predicted ones.");
}

void add_gemms(const ReportArguments& options, const Recipe& recipe, RunReport& report) {
  const std::vector<ReportJson> launches = json_lines_of(options.run / "profile.jsonl");
  if (launches.empty()) {
    add_predicted_gemms(options, recipe, report);
  } else {
    add_profiled_gemms(launches, report);
  }
  std::ranges::stable_sort(report.gemms, std::ranges::greater(),
                           [](const ReportedGemm& gemm) { return gemm.measured_s > 0.0 ? gemm.measured_s : gemm.predicted_s; });
}

void add_settings(const ReportArguments& options, Recipe recipe, RunReport& report) {
  report.facts.emplace_back("run folder", options.run.string());
  const std::vector<ReportJson> plans = json_lines_of(options.run / "plans.jsonl");
  if (!plans.empty() && !text_in(plans.front(), "device").empty()) report.facts.emplace_back("device", text_in(plans.front(), "device"));
  if (const std::filesystem::path origin = options.run / "weights.json"; is_there(origin)) {
    const ReportJson weights = ReportJson::parse(read_file(origin, kMaxJsonLinesBytes), nullptr, false);
    if (weights.is_object()) report.facts.emplace_back("weights it began with", text_in(weights, "source"));
  }
  for (const ReportJson& adjustment : json_lines_of(options.run / "adjustments.jsonl")) {
    report.facts.emplace_back(text_in(adjustment, "rule"), concat(text_in(adjustment, "what"), ": ", adjustment.value("from", 0), " to ",
                                                                  adjustment.value("to", 0), "; ", text_in(adjustment, "why")));
  }
  Recipe defaults;
  const std::vector<Section> sections = sections_of(recipe), default_sections = sections_of(defaults);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    for (std::size_t k = 0; k < sections[i].fields.size(); ++k) {
      const Field& field = sections[i].fields[k];
      report.settings.push_back({.section = std::string(sections[i].name),
                                 .key = std::string(field.name),
                                 .value = value_text(field),
                                 .by_default = value_text(field) == value_text(default_sections[i].fields[k])});
    }
  }
}

int report_run(const ReportArguments& options) {
  TW_CHECK_INPUT(is_there(options.run / "recipe.toml"), options.run.string(),
                 ": there is no recipe.toml, so this is no run folder; name one that ./tilewave train has made.");
  const std::filesystem::path out = options.out.empty() ? options.run / "report.html" : options.out;
  check_output_file("--out", out);
  const Recipe recipe = read_recipe(options.run / "recipe.toml");
  const std::vector<ReportJson> summaries = json_lines_of(options.run / "summary.json");
  const ReportJson summary = summaries.empty() ? ReportJson::object() : summaries.front();
  RunReport report{
      .title = concat("Run ", std::filesystem::absolute(options.run / "").lexically_normal().parent_path().filename().string()),
      .training_loss = training_loss_name(recipe),
      .answers = {},
      .steps = steps_of(options.run, summary),
      .samples = {},
      .without_samples = {},
      .times = {},
      .gemms = {},
      .facts = {},
      .settings = {}};
  report.answers = answers_of(recipe, summary, report.steps);
  add_samples(options, recipe, summary, report);
  add_gemms(options, recipe, report);
  add_settings(options, recipe, report);
  write_file_atomically(out, report_page(report));
  std::cout << "report written to " << for_stdout(out.string(), LineEnds::escaped) << '\n';
  return 0;
}

}  // namespace

Command add_report(CLI::App& program) {
  CLI::App* command = program.add_subcommand("report", "make a page of a run: curves, samples, times of GEMMs, settings");
  const auto options = std::make_shared<ReportArguments>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("--out", options->out, "write the page to this file; without it, report.html in the run's folder")->type_name("FILE");
  command->add_option("--prompt", options->prompt, "a decoder-only run's sample continues this text; without it, a line feed");
  command->add_option("--tokens", options->tokens, "of that sample; 0: none is drawn")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  options->device.add_to(*command);
  return {command, [options] { return report_run(*options); }};
}

}  // namespace tilewave
