#include "app/text/chart.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/core/error.h"
#include "models/figures/effects.h"
#include "models/figures/gemm_points.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

// A series' points in one panel, predicted or measured; empty where there are none.
ChartCurve curve_of(const std::vector<const FigureRecord*>& records, Quantity quantity, CurveKind kind) {
  ChartCurve curve = {.label = {}, .kind = kind, .points = {}};
  const bool of_time = quantity == Quantity::time || quantity == Quantity::rate || quantity == Quantity::bandwidth;
  for (const FigureRecord* record : records) {
    const double seconds = kind == CurveKind::predicted ? record->predicted_s : record->measured_s;
    const double y = record->value(quantity, seconds);
    if (!std::isfinite(y) || (of_time && !(seconds > 0.0))) continue;
    ChartPoint point = {.x = record->x, .y = y};
    if (kind != CurveKind::predicted && of_time) {
      const double one = record->value(quantity, record->lower_quartile_s), other = record->value(quantity, record->upper_quartile_s);
      point.low = std::min(one, other), point.high = std::max(one, other);
    }
    curve.points.push_back(point);
  }
  std::ranges::stable_sort(curve.points, {}, &ChartPoint::x);
  return curve;
}

bool is_counted(Quantity quantity) { return quantity == Quantity::tiles || quantity == Quantity::intensity; }

void add_curves(ChartPanel& panel, const FigurePanel& shown, const Figure& figure, const FigureRecords& records) {
  // What is counted shares its legend with what is predicted beside it.
  const bool alone = std::ranges::all_of(figure.panels, [](const FigurePanel& one) { return is_counted(one.quantity); });
  std::size_t color = 0;
  for (const std::string& series : series_of(records)) {
    const std::vector<const FigureRecord*> of_series = records_of(records, series, shown.group);
    const bool library = series.find(with_library("")) != std::string::npos;
    const bool counted = is_counted(shown.quantity);
    for (const CurveKind kind : {CurveKind::predicted, library ? CurveKind::library : CurveKind::measured}) {
      if (counted && kind != CurveKind::predicted) continue;
      ChartCurve curve = curve_of(of_series, shown.quantity, kind);
      if (curve.points.empty()) continue;
      curve.color = color;
      curve.label = series + (alone ? "" : kind == CurveKind::predicted ? ", predicted" : library ? "" : ", measured");
      panel.curves.push_back(std::move(curve));
    }
    ++color;
  }
}

Json lines_json(const std::vector<FigureLine>& lines) {
  Json json = Json::array();
  for (const FigureLine& line : lines) json.push_back({{"label", line.label}, {"at", line.at}});
  return json;
}

}  // namespace

Chart chart_of(const ChartSource& source) {
  const auto& [figure, asked, records, device] = source;
  Chart chart = {.name = std::string(figure.name), .title = concat(figure.name, ", ", device), .categories = {}, .panels = {}};
  if (figure.scale == AxisScale::categories) {
    for (const FigureRecord& record : records) {
      const auto place = static_cast<std::size_t>(record.x);
      if (chart.categories.size() <= place) chart.categories.resize(place + 1);
      chart.categories[place] = record.label;
    }
  }
  for (const FigurePanel& shown : figure.panels) {
    const bool steep = shown.quantity == Quantity::intensity || (figure.scale == AxisScale::log && shown.quantity == Quantity::time);
    ChartPanel panel = {.title = std::string(shown.title),
                        .x_label = std::string(figure.axis),
                        .y_label = std::string(label_of(shown.quantity)),
                        .x_scale = figure.scale,
                        .y_scale = steep ? AxisScale::log : AxisScale::linear,
                        .curves = {},
                        .marks = asked.marks,
                        .levels = asked.levels};
    add_curves(panel, shown, figure, records);
    if (!panel.curves.empty()) chart.panels.push_back(std::move(panel));
  }
  return chart;
}

std::string json_of(const std::vector<Chart>& charts) {
  constexpr const char* kScales[] = {"linear", "log", "categories"};
  constexpr const char* kKinds[] = {"predicted", "measured", "library", "plain"};
  Json all = Json::array();
  for (const Chart& chart : charts) {
    Json panels = Json::array();
    for (const ChartPanel& panel : chart.panels) {
      Json curves = Json::array();
      for (const ChartCurve& curve : panel.curves) {
        Json points = Json::array();
        for (const ChartPoint& point : curve.points) points.push_back({point.x, point.y, point.low, point.high});
        curves.push_back(
            {{"label", curve.label}, {"kind", kKinds[static_cast<int>(curve.kind)]}, {"color", curve.color}, {"points", points}});
      }
      panels.push_back({{"title", panel.title},
                        {"x_label", panel.x_label},
                        {"y_label", panel.y_label},
                        {"x_scale", kScales[static_cast<int>(panel.x_scale)]},
                        {"y_scale", kScales[static_cast<int>(panel.y_scale)]},
                        {"curves", curves},
                        {"marks", lines_json(panel.marks)},
                        {"levels", lines_json(panel.levels)}});
    }
    all.push_back({{"name", chart.name}, {"title", chart.title}, {"categories", chart.categories}, {"panels", panels}});
  }
  return Json{{"charts", all}}.dump(1) + '\n';
}

}  // namespace tilewave
