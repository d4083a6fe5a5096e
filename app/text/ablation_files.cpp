// JSON from the report; the table from the JSON.
#include "app/text/ablation_files.h"

#include "framework/io/file.h"
#include "kernels/gemm/cost/cost_model.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

Json gemm_json(const GemmTimes& gemm) {
  const GemmProblem& problem = gemm.problem;
  const PlanWaves waves = waves_of(gemm.plan);
  const auto unless_library = [&](const Json& value) { return gemm.library ? Json() : value; };
  return {{"layer", gemm.layer},
          {"role", name_of(gemm.role)},
          {"count", gemm.count},
          {"m", problem.m},
          {"n", problem.n},
          {"k", problem.k},
          {"a_alignment_bytes", problem.a_alignment},
          {"b_alignment_bytes", problem.b_alignment},
          {"d_alignment_bytes", problem.d_alignment},
          {"kernel", name_of(gemm.plan.composition)},
          {"plan", gemm.library ? name_of(gemm.plan.composition) : name_of(gemm.plan)},
          {"tile", unless_library(concat(gemm.plan.tile.m, "x", gemm.plan.tile.n))},
          {"split", unless_library(gemm.plan.split)},
          {"useful_fraction", unless_library(gemm.plan.tiling.useful_fraction)},
          {"waves", unless_library(waves.waves)},
          {"tail_fraction", unless_library(waves.tail_fraction)},
          {"concerned", gemm.concerned},
          {"time_us", 1e6 * gemm.measured_s},
          {"predicted_us", unless_library(1e6 * gemm.predicted_s)},
          {"tflops", 1e-12 * static_cast<double>(gemm.flops) / gemm.measured_s}};
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json same_loss_json(const SameLoss& same) {
  Json json = {{"verdict", name_of(same.verdict)},
               {"how", same.how},
               {"loss_error", same.distance.loss},
               {"gradient_error", same.distance.gradient},
               {"worst_parameter", same.distance.worst}};
  if (same.error_ratio > 0.0) {
    json.update({{"reference_precision", name_of(same.reference)},
                 {"reference_loss_error", same.mathematics.loss},
                 {"reference_gradient_error", same.mathematics.gradient},
                 {"own_error_loss", same.ours.loss},
                 {"own_error_gradient", same.ours.gradient},
                 {"baseline_error_loss", same.baseline.loss},
                 {"baseline_error_gradient", same.baseline.gradient},
                 {"error_ratio", same.error_ratio},
                 {"largest_error_ratio", same.largest_ratio}});
  }
  if (same.tolerance > 0.0) json["tolerance"] = same.tolerance;
  if (same.curve_tolerance > 0.0) {
    json.update({{"curve_loss_error", same.curve.loss},
                 {"curve_gradient_norm_error", same.curve.gradient},
                 {"curve_tolerance", same.curve_tolerance}});
  }
  return json;
}

Json variant_json(const AblationReport& report, const AblationVariant& variant) {
  Json json = {{"name", variant.setting.name}, {"baseline", report.baseline_of(variant).setting.name}, {"ran", variant.ran()}};
  if (!variant.ran()) {
    json["refused"] = variant.refused;
    return json;
  }
  if (variant.same_as) json["same_launches_as"] = report.variants[*variant.same_as].setting.name;
  const StepShapes& shapes = variant.resolved.shapes;
  const Recipe& recipe = variant.resolved.recipe;
  const std::int64_t passes = recipe.batch.accumulate;
  json.update({{"source_rows", shapes.source_rows * passes},
               {"target_rows", shapes.target_rows * passes},
               {"vocabulary", shapes.vocabulary},
               {"vocabulary_padded", shapes.vocabulary_padded},
               {"target_tokens", variant.target_tokens},
               {"step_us", 1e6 * variant.step.median_s},
               {"step_lower_quartile_us", 1e6 * variant.step.lower_quartile_s},
               {"step_upper_quartile_us", 1e6 * variant.step.upper_quartile_s},
               {"step_predicted_us", variant.predicted_s ? Json(1e6 * *variant.predicted_s) : Json()},
               {"target_tokens_per_s", variant.target_tokens_per_s()},
               {"tflops", variant.tflops()},
               {"memory_bytes", variant.memory_bytes},
               {"predicted_gain_fraction", number_or_null(variant.predicted_gain)},
               {"measured_gain_fraction", number_or_null(variant.measured_gain)},
               {"measured_gain_low_fraction", variant.gain_interval ? Json(variant.gain_interval->low) : Json()},
               {"measured_gain_high_fraction", variant.gain_interval ? Json(variant.gain_interval->high) : Json()},
               {"measured_gain_confidence_fraction", variant.gain_interval ? Json(variant.gain_interval->confidence) : Json()},
               {"rounds", variant.step.rounds_s.size()},
               {"prediction_error_points", number_or_null(variant.error_points())},
               {"predicted_gemm_gain_fraction", number_or_null(variant.predicted_gemm_gain)},
               {"measured_gemm_gain_fraction", number_or_null(variant.measured_gemm_gain)},
               {"gemm_prediction_error_fraction", number_or_null(variant.gemm_error())},
               {"same_loss", same_loss_json(variant.same_loss)},
               {"label_smoothing", recipe.optimizer.label_smoothing},
               {"dropout", recipe.model.dropout},
               {"attention_dropout", recipe.model.attention_dropout},
               {"losses", variant.curve.losses},
               {"gradient_norms", variant.curve.gradient_norms}});
  Json adjustments = Json::array(), gemms = Json::array();
  for (const Adjustment& adjustment : variant.resolved.adjustments) {
    adjustments.push_back({{"rule", adjustment.rule},
                           {"what", adjustment.what},
                           {"from", adjustment.from},
                           {"to", adjustment.to},
                           {"why", adjustment.why},
                           {"cost_tokens", adjustment.cost_tokens},
                           {"cost_bytes", adjustment.cost_bytes}});
  }
  for (const GemmTimes& gemm : variant.gemms) gemms.push_back(gemm_json(gemm));
  json["adjustments"] = std::move(adjustments);
  json["gemms"] = std::move(gemms);
  return json;
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

Json ablation_json(const AblationReport& report) {
  Json json = {{"recipe", report.recipe},
               {"device", report.device.name},
               {"sm_count", report.device.sm_count},
               {"time_model", report.device.backend == Backend::cuda ? Json(source_of(cost_model_of(report.device))) : Json()},
               {"counted", report.of_pictures ? "pictures" : "target tokens"},
               {"changes", report.changes},
               {"steps", report.steps},
               {"variants", Json::array()}};
  for (const AblationVariant& variant : report.variants) json["variants"].push_back(variant_json(report, variant));
  return json;
}

// A recipe's name comes from a file's, which may be no UTF-8.
std::string text_of(const Json& ablation) { return ablation.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string ablation_csv(const Json& ablation) {
  constexpr const char* kColumns[] = {"name",
                                      "baseline",
                                      "source_rows",
                                      "target_rows",
                                      "vocabulary_padded",
                                      "target_tokens",
                                      "step_us",
                                      "step_lower_quartile_us",
                                      "step_upper_quartile_us",
                                      "step_predicted_us",
                                      "target_tokens_per_s",
                                      "tflops",
                                      "memory_bytes",
                                      "predicted_gain_fraction",
                                      "measured_gain_fraction",
                                      "prediction_error_points",
                                      "predicted_gemm_gain_fraction",
                                      "measured_gemm_gain_fraction"};
  std::string text;
  for (const char* column : kColumns) text += std::string(text.empty() ? "" : ",") + column;
  text += ",same_loss\n";
  for (const Json& variant : ablation["variants"]) {
    for (const char* column : kColumns) text += csv_field(variant.contains(column) ? variant[column] : Json("")) + ",";
    text += csv_field(variant.contains("same_loss") ? variant["same_loss"]["verdict"] : variant["refused"]) + "\n";
  }
  return text;
}

void write_ablation(const std::filesystem::path& folder, const AblationReport& report) {
  const Json json = ablation_json(report);
  write_file_atomically(folder / "ablation.json", text_of(json) + "\n");
  write_file_atomically(folder / "ablation.csv", ablation_csv(json));
  write_file_atomically(folder / "ablation.html", ablation_page(json));
}

}  // namespace tilewave
