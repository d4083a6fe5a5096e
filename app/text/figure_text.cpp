#include "app/text/figure_text.h"

#include <algorithm>
#include <utility>

#include "app/text/units.h"
#include "kernels/core/error.h"
#include "models/figures/effects.h"

namespace tilewave {
namespace {

std::string value_text(double value, std::string_view unit) {
  if (unit == "%") return percent_text(value, 2);
  if (unit == "x") return number_text(value, "%.3g") + " times";
  return number_text(value, "%.6g");
}

}  // namespace

std::string effect_text(const Effect& effect) {
  const bool counted = effect.unit.empty() || std::isnan(effect.measured);
  std::string text = effect.what + ": ";
  if (!std::isnan(effect.predicted))
    text += concat(counted && effect.unit != "x" ? "" : "predicted ", value_text(effect.predicted, effect.unit));
  if (std::isnan(effect.measured)) return text;
  text += concat(std::isnan(effect.predicted) ? "" : ", ", "measured ", value_text(effect.measured, effect.unit));
  if (effect.high > effect.low)
    text += concat(" (", value_text(effect.low, effect.unit), " to ", value_text(effect.high, effect.unit), ')');
  return text;
}

std::string error_text(const FigureRecords& records) {
  const PredictionError error = prediction_error(records);
  if (error.points == 0) return {};
  return concat("prediction: ", percent_text(error.mean), " off on average, over ", error.points,
                error.points == 1 ? " measured point" : " measured points");
}

std::vector<std::string> gap_texts(const FigureRecords& records) {
  std::vector<std::pair<std::string, int>> reasons;
  for (const FigureRecord& record : records) {
    if (record.refused.empty()) continue;
    const auto known = std::ranges::find(reasons, record.refused, &std::pair<std::string, int>::first);
    if (known == reasons.end()) {
      reasons.emplace_back(record.refused, 1);
    } else {
      ++known->second;
    }
  }
  std::vector<std::string> texts;
  for (const auto& [reason, count] : reasons)
    texts.push_back(concat(count, count == 1 ? " point is a gap: " : " points are gaps: ", reason));
  return texts;
}

bool is_empty(const Figure& figure, const FigureRecords& records) {
  const auto unanswered = [&](const FigureRecord& record) {
    return figure.runs ? std::isnan(record.predicted_s) && !record.measured() : std::isnan(record.flops_per_byte());
  };
  return figure.points && std::ranges::all_of(records, unanswered);
}

}  // namespace tilewave
