#include "models/figures/effects.h"

#include <algorithm>

#include "kernels/core/error.h"

namespace tilewave {

const FigureRecord* find_record(const FigureRecords& records, const PointName& name) {
  const auto is_it = [&](const FigureRecord& record) {
    const bool there = name.label.empty() ? record.x == name.x : record.label == name.label;
    return record.series == name.series && record.group == name.group && there;
  };
  const auto found = std::ranges::find_if(records, is_it);
  return found == records.end() ? nullptr : &*found;
}

void add_ratio(std::vector<Effect>& effects, const Ratio& ratio) {
  const auto& [what, of, over, under] = ratio;
  if (over == nullptr || under == nullptr) return;
  const double work = static_cast<double>(over->flops) / static_cast<double>(under->flops);
  const auto of_times = [&, kind = of](double a, double b) { return kind == RatioOf::times ? a / b : work * b / a; };
  Effect effect = {.what = what, .predicted = of_times(over->predicted_s, under->predicted_s)};
  if (over->measured() && under->measured()) {
    effect.measured = of_times(over->measured_s, under->measured_s);
    const double one = of_times(over->lower_quartile_s, under->upper_quartile_s);
    const double other = of_times(over->upper_quartile_s, under->lower_quartile_s);
    effect.low = std::min(one, other), effect.high = std::max(one, other);
  }
  if (!std::isnan(effect.predicted) || !std::isnan(effect.measured)) effects.push_back(std::move(effect));
}

std::vector<Effect> last_over_first(const FigureRecords& records, const PlaceWords& words) {
  std::vector<Effect> effects;
  for (const std::string& series : series_of(records)) {
    const std::vector<const FigureRecord*> all = records_of(records, series);
    add_ratio(effects, {.what = concat("FLOP/s at ", words.before, std::llround(all.back()->x), words.behind, " over those at ",
                                       std::llround(all.front()->x), ", ", series),
                        .of = RatioOf::rates,
                        .over = all.back(),
                        .under = all.front()});
  }
  return effects;
}

std::vector<std::string> series_of(const FigureRecords& records) {
  std::vector<std::string> names;
  for (const FigureRecord& record : records) {
    if (std::ranges::find(names, record.series) == names.end()) names.push_back(record.series);
  }
  return names;
}

std::vector<const FigureRecord*> records_of(const FigureRecords& records, std::string_view series, std::string_view group) {
  std::vector<const FigureRecord*> found;
  for (const FigureRecord& record : records) {
    if (record.series == series && (group.empty() || record.group == group)) found.push_back(&record);
  }
  return found;
}

PredictionError prediction_error(const FigureRecords& records) {
  PredictionError error;
  double sum = 0.0;
  for (const FigureRecord& record : records) {
    if (!record.measured() || std::isnan(record.predicted_s)) continue;
    sum += std::abs(record.predicted_s / record.measured_s - 1.0);
    ++error.points;
  }
  if (error.points > 0) error.mean = sum / static_cast<double>(error.points);
  return error;
}

}  // namespace tilewave
