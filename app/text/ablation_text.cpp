#include "app/text/ablation_text.h"

#include <algorithm>
#include <ostream>

#include "app/text/ablation_files.h"
#include "app/text/ablation_sentences.h"
#include "app/text/adjustments.h"
#include "app/text/size_text.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

constexpr std::size_t kPrintedGroups = 9;  // of GEMMs; the files hold them all

// What settings are called behind the first table: their names, or where these are long the numbers that it gives them.
class Labels {
 public:
  explicit Labels(const AblationReport& report) : report_(report) {
    for (const AblationVariant& variant : report.variants) numbered_ = numbered_ || variant.setting.name.size() > kShort;
  }
  // "2: wave_free_batch=up batch.source_tokens+batch.target_tokens=50"
  std::string full(const AblationVariant& variant) const {
    return numbered_ ? concat(number(variant), ": ", variant.setting.name) : variant.setting.name;
  }
  std::string in_cell(const AblationVariant& variant) const { return numbered_ ? std::to_string(number(variant)) : variant.setting.name; }
  std::string in_heading(const AblationVariant& variant) const {
    return numbered_ ? concat("setting ", number(variant)) : variant.setting.name;
  }

 private:
  static constexpr std::size_t kShort = 28;

  std::ptrdiff_t number(const AblationVariant& variant) const { return &variant - report_.variants.data() + 1; }

  const AblationReport& report_;
  bool numbered_ = false;
};

bool compared(const AblationVariant& variant) {
  return variant.same_loss.verdict != SameLoss::Verdict::itself && variant.measured_gain.has_value();
}

RateUnit rates_of(const AblationReport& report) {
  double fastest = 0.0;
  for (const AblationVariant& variant : report.variants) {
    if (variant.ran()) fastest = std::max(fastest, 1e12 * variant.tflops());
  }
  return rate_unit(fastest);
}

void print_settings(std::ostream& stream, const AblationReport& report, const Page& page) {
  const RateUnit rates = rates_of(report);
  const Labels labels(report);
  Table table({{.heading = "setting", .align = Align::left},
               {.heading = report.of_pictures ? "pictures" : "rows", .rank = 7},
               {.heading = report.of_pictures ? "classes" : "V", .rank = 6},
               {.heading = "step time"},
               {.heading = "quartiles", .rank = 5},
               {.heading = report.of_pictures ? "pictures/s" : "tokens/s", .rank = 2},
               {.heading = rates.unit, .rank = 9},
               {.heading = "memory", .rank = 8},
               {.heading = "predicted gain", .rank = 1},
               {.heading = "measured gain"},
               {.heading = "error in points", .rank = 10},
               {.heading = "GEMMs' gain", .rank = 4},
               {.heading = "loss", .align = Align::left, .rank = 3}});
  for (const AblationVariant& variant : report.variants) {
    if (!variant.ran()) {
      table.remark(concat(labels.full(variant), " did not run: ", variant.refused));
      continue;
    }
    const Recipe& recipe = variant.resolved.recipe;
    const bool beside = compared(variant), predicted = beside && variant.error_points();
    table.add({labels.full(variant), count_text(variant.resolved.shapes.target_rows * recipe.batch.accumulate),
               count_text(variant.resolved.shapes.vocabulary_padded), time_text(variant.step.median_s),
               concat(time_text(variant.step.lower_quartile_s), " to ", time_text(variant.step.upper_quartile_s)),
               rate_text(variant.target_tokens_per_s()), number_text(rates.scale * 1e12 * variant.tflops(), "%.4g"),
               bytes_text(variant.memory_bytes), predicted ? gain_text(*variant.predicted_gain) : "",
               beside ? gain_text(*variant.measured_gain) : "", predicted ? number_text(*variant.error_points(), "%+.2f") : "",
               beside && variant.measured_gemm_gain ? gain_text(*variant.measured_gemm_gain) : "",
               std::string(name_of(variant.same_loss.verdict))});
  }
  table.print(stream, page);
}

void print_adjustments(std::ostream& stream, const AblationReport& report, const Page& page) {
  std::vector<AdjustedSetting> adjusted;
  for (const AblationVariant& variant : report.variants) {
    if (variant.ran()) adjusted.push_back({.name = variant.setting.name, .adjustments = variant.resolved.adjustments});
  }
  print_adjustments(stream, adjusted, page);
}

// A layer's GEMMs of one role, over all settings.
struct GemmGroup {
  std::string layer;
  GemmRole role{};
  double seconds = 0.0;  // the longest
};

// Those whose problem or plan a setting changes, the slowest first.
std::vector<GemmGroup> changed_groups(const AblationReport& report) {
  std::vector<GemmGroup> groups;
  for (const AblationVariant& variant : report.variants) {
    for (const GemmTimes& gemm : variant.gemms) {
      if (!gemm.concerned) continue;
      const auto known =
          std::ranges::find_if(groups, [&](const GemmGroup& one) { return one.layer == gemm.layer && one.role == gemm.role; });
      if (known == groups.end()) {
        groups.push_back({.layer = gemm.layer, .role = gemm.role, .seconds = gemm.measured_s});
      } else {
        known->seconds = std::max(known->seconds, gemm.measured_s);
      }
    }
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), &GemmGroup::seconds);
  return groups;
}

// Launches that several settings make alike, and who makes them.
struct AlikeGemms {
  const GemmTimes* gemm = nullptr;
  std::vector<std::string> settings;
};
std::vector<AlikeGemms> folded(const AblationReport& report, const GemmGroup& group) {
  const Labels labels(report);
  std::vector<AlikeGemms> all;
  for (const AblationVariant& variant : report.variants) {
    for (const GemmTimes& gemm : variant.gemms) {
      if (gemm.layer != group.layer || gemm.role != group.role) continue;
      const auto alike = std::ranges::find_if(all, [&](const AlikeGemms& one) {
        return one.gemm->problem == gemm.problem && one.gemm->plan == gemm.plan && one.gemm->count == gemm.count &&
               one.gemm->measured_s == gemm.measured_s;
      });
      if (alike == all.end()) {
        all.push_back({.gemm = &gemm, .settings = {labels.in_cell(variant)}});
      } else {
        alike->settings.push_back(labels.in_cell(variant));
      }
    }
  }
  return all;
}

std::vector<std::string> cells_of(const AlikeGemms& alike, std::size_t settings, const RateUnit& rates) {
  const GemmTimes& gemm = *alike.gemm;
  const GemmPlan& plan = gemm.plan;
  const PlanWaves filled = waves_of(plan);
  const auto unless_library = [&](std::string text) { return gemm.library ? std::string() : text; };
  return {settings_text(alike.settings, settings),
          count_text(gemm.count),
          size_text(gemm.problem),
          concat(plan.a_alignment, "/", plan.b_alignment, "/", plan.d_alignment),
          gemm.library ? name_of(plan.composition) : name_of(plan),
          unless_library(percent_text(plan.tiling.useful_fraction)),
          unless_library(number_text(filled.waves, "%.2f")),
          unless_library(percent_text(filled.tail_fraction)),
          time_text(gemm.measured_s),
          unless_library(time_text(gemm.predicted_s)),
          number_text(rates.scale * static_cast<double>(gemm.flops) / gemm.measured_s, "%.4g")};
}

void print_gemms(std::ostream& stream, const AblationReport& report, const Page& page) {
  std::vector<GemmGroup> groups = changed_groups(report);
  if (groups.empty()) return;
  const std::string all = groups.size() > kPrintedGroups ? concat("the ", kPrintedGroups, " slowest of ", groups.size(), " groups of GEMMs")
                                                         : std::string("the GEMMs");
  stream << '\n'
         << wrapped(concat(all, " that a setting changes, launch by launch, all of a step together; the files hold every GEMM"), page)
         << '\n';
  groups.resize(std::min(groups.size(), kPrintedGroups));
  const RateUnit rates = rates_of(report);
  const auto ran = static_cast<std::size_t>(std::ranges::count_if(report.variants, &AblationVariant::ran));
  Table table({{.heading = "setting", .align = Align::left},
               {.heading = "count", .rank = 4},
               {.heading = "MxNxK"},
               {.heading = "alignment of A/B/D", .rank = 7},
               {.heading = "kernel/tile", .align = Align::left},
               {.heading = "useful", .rank = 5},
               {.heading = "waves", .rank = 3},
               {.heading = "tail", .rank = 6},
               {.heading = "time"},
               {.heading = "predicted time", .rank = 1},
               {.heading = rates.unit, .rank = 2}});
  for (const GemmGroup& group : groups) {
    table.section(concat(group.layer, ", ", name_of(group.role)));
    for (const AlikeGemms& alike : folded(report, group)) table.add(cells_of(alike, ran, rates));
  }
  table.print(stream, page);
}

void print_prediction(std::ostream& stream, const AblationReport& report, const Page& page) {
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
  stream << '\n'
         << wrapped(concat("GEMM times are predicted within ", percent_text(sum / count), " of measured ones on average; ", model), page)
         << '\n';
}

// Settings beside each other, as many as a line holds; then the others below.
void print_curves(std::ostream& stream, const AblationReport& report, const Page& page) {
  constexpr std::size_t kPair = 28, kStep = 6;  // characters of a loss and a norm, and of a step's number with its gap
  const Labels labels(report);
  std::vector<const AblationVariant*> left;
  for (const AblationVariant& variant : report.variants) {
    if (variant.ran() && !variant.same_as) left.push_back(&variant);
  }
  const std::size_t beside = page.columns == Page::kUnbounded ? left.size() : (page.columns - kStep) / (kPair + 2);
  for (std::size_t begin = 0; begin < left.size(); begin += beside) {
    const std::vector<const AblationVariant*> shown(left.begin() + static_cast<std::ptrdiff_t>(begin),
                                                    left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), begin + beside)));
    std::vector<Column> columns = {{.heading = "step"}};
    for (const AblationVariant* variant : shown) columns.push_back({.heading = labels.in_heading(*variant), .align = Align::left});
    Table table(columns);
    for (std::size_t step = 0; step < static_cast<std::size_t>(report.steps); ++step) {
      std::vector<std::string> cells = {count_text(static_cast<std::int64_t>(step) + 1)};
      for (const AblationVariant* variant : shown) {
        cells.push_back(
            concat(number_text(variant->curve.losses[step], "%.9g"), "  ", number_text(variant->curve.gradient_norms[step], "%.9g")));
      }
      table.add(std::move(cells));
    }
    table.print(stream, page);
  }
}

std::vector<std::string> proof_lines(const AblationVariant& variant, std::int64_t steps) {
  const SameLoss& same = variant.same_loss;
  const auto two = [](double value) { return number_text(value, "%.2g"); };
  std::vector<std::string> lines = {concat("    ", name_of(same.verdict), ", ", same.how, ": loss off by ", two(same.distance.loss),
                                           ", gradients by ", two(same.distance.gradient), same.distance.worst.empty() ? "" : ", most in ",
                                           same.distance.worst)};
  if (same.error_ratio > 0.0) {
    lines.push_back(concat("      in ", name_of(same.reference), ": loss off by ", two(same.mathematics.loss), ", gradients by ",
                           two(same.mathematics.gradient), ", of ", two(same.tolerance), " allowed"));
    lines.push_back(concat("      from ", name_of(same.reference), ": gradients off by up to ", two(same.ours.gradient),
                           ", the baseline's by ", two(same.baseline.gradient), "; on average ", number_text(same.error_ratio, "%.2f"),
                           " times the baseline's, at most ", number_text(same.largest_ratio, "%.2f")));
  } else if (same.tolerance > 0.0) {
    lines.push_back(concat("      of ", two(same.tolerance), " allowed"));
  }
  if (same.curve_tolerance > 0.0) {
    lines.push_back(concat("      over ", steps, " steps: loss off by ", two(same.curve.loss), ", gradient norm by ",
                           two(same.curve.gradient), ", of ", two(same.curve_tolerance), " allowed"));
  }
  return lines;
}

void print_losses(std::ostream& stream, const AblationReport& report, const Page& page) {
  for (const AblationVariant& variant : report.variants) {
    if (!variant.ran() || variant.same_as) continue;
    const SameLoss& same = variant.same_loss;
    if (same.verdict == SameLoss::Verdict::itself || same.verdict == SameLoss::Verdict::another_model) continue;
    stream << wrapped("  " + variant.setting.name, page) << '\n';
    for (const std::string& line : proof_lines(variant, report.steps)) stream << wrapped(line, page) << '\n';
  }
}

}  // namespace

void print_ablation(std::ostream& stream, const AblationText& text, const Page& page) {
  const AblationReport& report = text.report;
  const nlohmann::ordered_json json = ablation_json(report);
  const auto line = [&](const std::string& prose) { stream << wrapped(prose, page) << '\n'; };
  line(concat(report.recipe, " on ", device_text(report.device), ": ", verdict(json)));
  line(concat("medians of ", text.rounds,
              report.by_ranks    ? " rounds, each setting in processes of its own"
              : text.rounds == 1 ? " round"
                                 : " interleaved rounds",
              "; folder ", text.folder.string()));
  if (!report.changes.empty()) line("made to fit a CPU, whose threads stand for multiprocessors (--full leaves it as it is):");
  for (const std::string& change : report.changes) line("  " + change);
  stream << '\n';
  print_settings(stream, report, page);
  print_adjustments(stream, report, page);
  print_gemms(stream, report, page);
  print_prediction(stream, report, page);
  stream << '\n' << wrapped(concat(training_loss_name(json), " and gradient norm"), page) << '\n';
  print_curves(stream, report, page);
  print_losses(stream, report, page);
  const std::vector<std::string> sentences = gain_sentences(json);
  if (sentences.empty()) return;
  stream << '\n' << wrapped(kIntervalLegend, page, 0) << '\n';
  for (const std::string& one : sentences) line(one);
}

}  // namespace tilewave
