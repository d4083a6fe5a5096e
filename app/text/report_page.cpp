#include "app/text/report_page.h"

#include <algorithm>
#include <cmath>

#include "app/text/chart.h"
#include "app/text/html.h"
#include "app/text/losses.h"
#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::size_t kDrawnPoints = 400;  // of a curve
constexpr std::size_t kBars = 12;

std::string said(const std::string& text) { return concat("<p>", html(text), "</p>\n"); }

// Of many steps the means of as many stretches as are drawn.
std::vector<ChartPoint> points_of(const std::vector<ReportedStep>& steps, std::optional<double> ReportedStep::*number) {
  std::vector<ChartPoint> all;
  for (const ReportedStep& step : steps) {
    if (step.*number) all.push_back({.x = static_cast<double>(step.step), .y = *(step.*number)});
  }
  const std::size_t together = (all.size() + kDrawnPoints - 1) / kDrawnPoints;
  if (together < 2) return all;
  std::vector<ChartPoint> means;
  for (std::size_t first = 0; first < all.size(); first += together) {
    const std::size_t count = std::min(together, all.size() - first);
    ChartPoint mean;
    for (std::size_t i = first; i < first + count; ++i) mean.x += all[i].x, mean.y += all[i].y;
    means.push_back({.x = mean.x / static_cast<double>(count), .y = mean.y / static_cast<double>(count)});
  }
  return means;
}

ChartPanel panel_of(const std::string& title, const std::string& y_label) {
  return {.title = title, .x_label = "step", .y_label = y_label, .curves = {}, .marks = {}, .levels = {}};
}

void add_curve(ChartPanel& panel, const std::string& label, std::size_t color, std::vector<ChartPoint> points) {
  if (points.empty()) return;
  const CurveKind kind = points.size() > 60 ? CurveKind::plain : CurveKind::measured;
  panel.curves.push_back({.label = label, .kind = kind, .color = color, .points = std::move(points)});
}

std::string curves_of(const RunReport& report) {
  Chart chart{.name = "curves", .title = "over the steps", .categories = {}, .panels = {}};
  ChartPanel losses = panel_of("loss", "nats per target token");
  losses.floor = ChartFloor::least;
  add_curve(losses, report.training_loss, 0, points_of(report.steps, &ReportedStep::loss));
  add_curve(losses, kValidationLoss, 1, points_of(report.steps, &ReportedStep::validation_loss));
  ChartPanel rate = panel_of("learning rate", "");  // whose numbers are long
  add_curve(rate, "learning rate", 2, points_of(report.steps, &ReportedStep::learning_rate));
  ChartPanel norm = panel_of("gradient norm, before clipping", "");
  add_curve(norm, "gradient norm", 5, points_of(report.steps, &ReportedStep::gradient_norm));
  for (ChartPanel* panel : {&losses, &rate, &norm}) {
    if (!panel->curves.empty()) chart.panels.push_back(std::move(*panel));
  }
  if (chart.panels.empty()) return said("metrics.jsonl has no step yet, so there is no curve.");
  return concat("<div class=\"picture ink\">", svg_of(chart), "</div>\n");
}

std::string samples_of(const RunReport& report) {
  if (report.samples.empty()) return said(report.without_samples);
  std::string text;
  for (const ReportedSample& sample : report.samples) {
    text += concat("<blockquote class=\"sample\"><p><b>", html(sample.given), "</b></p>\n<p>", html(sample.said), "</p>\n");
    if (!sample.expected.empty() && sample.expected != sample.said) text += concat("<p>expected: ", html(sample.expected), "</p>\n");
    text += "</blockquote>\n";
  }
  return text;
}

std::string time_cell(double seconds) { return seconds > 0.0 ? time_text(seconds) : ""; }

std::string gemm_bars(const std::vector<ReportedGemm>& gemms) {
  std::vector<Bar> bars;
  for (const ReportedGemm& gemm : gemms) {
    if (bars.size() >= 2 * kBars) break;
    const std::string name = concat(gemm.layer, ", ", gemm.role);
    if (gemm.predicted_s > 0.0) {
      bars.push_back(
          {.label = name + ", predicted", .value = time_text(gemm.predicted_s), .length = gemm.predicted_s, .kind = "predicted"});
    }
    if (gemm.measured_s > 0.0) {
      bars.push_back({.label = name + ", measured", .value = time_text(gemm.measured_s), .length = gemm.measured_s});
    }
  }
  return html_bars(bars);
}

std::string gemms_of(const RunReport& report) {
  std::string text = said(report.times);
  if (report.gemms.empty()) return text;
  text += gemm_bars(report.gemms);
  HtmlTable table({{"layer", false},
                   {"GEMM", false},
                   {"MxNxK"},
                   {"kernel", false},
                   {"launches per step"},
                   {"predicted"},
                   {"measured"},
                   {"error of the prediction"},
                   {"rate"}});
  for (const ReportedGemm& gemm : report.gemms) {
    const bool both = gemm.predicted_s > 0.0 && gemm.measured_s > 0.0;
    const double seconds = gemm.measured_s > 0.0 ? gemm.measured_s : gemm.predicted_s;
    table.add({gemm.layer, gemm.role, concat(gemm.m, 'x', gemm.n, 'x', gemm.k), gemm.kernel, number_text(gemm.launches, "%.4g"),
               time_cell(gemm.predicted_s), time_cell(gemm.measured_s), both ? gain_text(gemm.predicted_s / gemm.measured_s - 1.0) : "",
               seconds > 0.0 && gemm.flops > 0.0 ? flops_text(gemm.flops / seconds) : ""});
  }
  return text + concat("<details><summary>", report.gemms.size(), report.gemms.size() == 1 ? " GEMM" : " GEMMs", "</summary>\n",
                       table.html(), "</details>\n");
}

std::string settings_of(const RunReport& report) {
  HtmlTable facts({{"what", false}, {"value", false}});
  for (const auto& [what, value] : report.facts) facts.add({what, value});
  HtmlTable set({{"key", false}, {"value", false}}), defaults = set;
  std::size_t by_default = 0;
  for (const ReportedSetting& setting : report.settings) {
    by_default += setting.by_default ? 1 : 0;
    (setting.by_default ? defaults : set).add({concat(setting.section, '.', setting.key), setting.value});
  }
  return concat(report.facts.empty() ? "" : facts.html(), "<h3>Keys that differ from their defaults</h3>\n", set.html(),
                "<details><summary>", by_default, " keys with their defaults</summary>\n", defaults.html(), "</details>\n");
}

}  // namespace

std::string report_page(const RunReport& report) {
  std::string body;
  for (const std::string& answer : report.answers) body += said(answer);
  body += "<h2>Curves</h2>\n" + curves_of(report);
  body += "<h2>Samples</h2>\n" + samples_of(report);
  body += "<h2>The step's GEMMs</h2>\n" + gemms_of(report);
  body += "<h2>Settings</h2>\n" + settings_of(report);
  return html_text({.title = report.title, .body = body});
}

}  // namespace tilewave
