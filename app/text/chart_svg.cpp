// The drawer: a chart as SVG, panels one below the other, nothing beside it.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "app/text/chart.h"
#include "app/text/html.h"
#include "app/text/svg.h"
#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr double kWidth = 760, kPanelHeight = 250, kLeft = 74, kRight = 28, kTop = 30, kBottom = 46, kLegendLine = 17;
constexpr const char* kPalette[] = {"#2f6da8", "#c47a1c", "#3f8f4f", "#a8433f", "#7a5aa8", "#5a7a80", "#b0578a", "#7d7d2a"};

std::string tick_text(double value) {
  const double size = std::abs(value);
  return size >= 1e6 ? number_text(value / 1e6, "%.4gM") : number_text(value, "%.5g");
}

struct Extent {
  double low = 0.0, high = 1.0;
};

// Round numbers from one end to the other, about `wanted` of them.
std::vector<double> linear_ticks(const Extent& range, int wanted) {
  const double rough = (range.high - range.low) / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = power * (rough / power < 1.5 ? 1.0 : rough / power < 3.5 ? 2.0 : rough / power < 7.5 ? 5.0 : 10.0);
  std::vector<double> ticks;
  for (double tick = std::ceil(range.low / step) * step; tick <= range.high * (1.0 + 1e-9); tick += step) ticks.push_back(tick);
  return ticks;
}

// Powers of 10, of 4 or of 2, whatever leaves no more than ten.
std::vector<double> log_ticks(const Extent& range) {
  for (const double base : {2.0, 4.0, 10.0, 100.0}) {
    std::vector<double> ticks;
    const double first = std::ceil(std::log(range.low) / std::log(base) - 1e-9);
    for (double power = first;; ++power) {
      const double tick = std::pow(base, power);
      if (tick > range.high * (1.0 + 1e-9)) break;
      ticks.push_back(tick);
    }
    if (ticks.size() <= 10) return ticks;
  }
  return {};
}

class Axis {
 public:
  Axis(AxisScale scale, Extent range, double from, double to) : scale_(scale), range_(range), from_(from), to_(to) {}
  double place(double value) const {
    const auto of = [&](double v) { return scale_ == AxisScale::log ? std::log(v) : v; };
    return from_ + (to_ - from_) * (of(value) - of(range_.low)) / (of(range_.high) - of(range_.low));
  }
  bool has(double value) const { return value >= range_.low && value <= range_.high; }
  std::vector<double> ticks() const { return scale_ == AxisScale::log ? log_ticks(range_) : linear_ticks(range_, 7); }

 private:
  AxisScale scale_;
  Extent range_;
  double from_, to_;
};

Extent x_range(const ChartPanel& panel, std::size_t categories) {
  if (panel.x_scale == AxisScale::categories) return {-0.5, static_cast<double>(categories) - 0.5};
  Extent range = {INFINITY, -INFINITY};
  for (const ChartCurve& curve : panel.curves) {
    for (const ChartPoint& point : curve.points) range = {std::min(range.low, point.x), std::max(range.high, point.x)};
  }
  if (range.low < range.high) return range;
  return {range.low * 0.5, range.high * 2.0 + 1.0};
}

Extent y_range(const ChartPanel& panel) {
  Extent range = {INFINITY, panel.floor == ChartFloor::least ? -INFINITY : 0.0};
  for (const ChartCurve& curve : panel.curves) {
    for (const ChartPoint& point : curve.points) range = {std::min(range.low, point.y), std::max({range.high, point.y, point.high})};
  }
  for (const FigureLine& level : panel.levels) range = {std::min(range.low, level.at), std::max(range.high, level.at)};
  if (panel.y_scale == AxisScale::log) return {range.low / 1.2, range.high * 1.2};
  if (panel.floor == ChartFloor::least && range.low <= range.high) {
    const double margin = range.high > range.low ? 0.06 * (range.high - range.low) : 0.5 * std::abs(range.high) + 1e-6;
    return {range.low - margin, range.high + margin};
  }
  return {0.0, range.high > 0.0 ? 1.06 * range.high : 1.0};
}

std::string rule(double x1, double y1, double x2, double y2, const char* look) {
  return concat(R"(<line x1=")", svg_number(x1), R"(" y1=")", svg_number(y1), R"(" x2=")", svg_number(x2), R"(" y2=")", svg_number(y2),
                R"(" )", look, "/>\n");
}

const char* color_of(const ChartCurve& curve) { return kPalette[curve.color % std::size(kPalette)]; }

// Draws one panel with its top at `top`.
class PanelDrawing {
 public:
  PanelDrawing(const Chart& chart, const ChartPanel& panel, double top)
      : chart_(chart),
        panel_(panel),
        top_(top),
        x_(panel.x_scale, x_range(panel, chart.categories.size()), kLeft, kWidth - kRight),
        y_(panel.y_scale, y_range(panel), top + kPanelHeight - kBottom, top + kTop) {}

  std::string text() const {
    std::string svg = svg_words({.x = kLeft, .y = top_ + 18, .anchor = "start", .more = R"( font-weight="600")"}, panel_.title);
    svg += axes() + lines();
    const bool bars = panel_.x_scale == AxisScale::categories;
    for (std::size_t i = 0; i < panel_.curves.size(); ++i) svg += bars ? bars_of(i) : curve_of(panel_.curves[i]);
    return svg;
  }

 private:
  double floor() const { return top_ + kPanelHeight - kBottom; }

  std::string axes() const {
    std::string svg;
    for (const double tick : y_.ticks()) {
      if (!y_.has(tick)) continue;
      svg += rule(kLeft, y_.place(tick), kWidth - kRight, y_.place(tick), R"(stroke="#ddd")");
      svg += svg_words({.x = kLeft - 6, .y = y_.place(tick) + 4, .anchor = "end"}, tick_text(tick));
    }
    if (panel_.x_scale == AxisScale::categories) {
      const bool many = chart_.categories.size() > 9;
      for (std::size_t i = 0; i < chart_.categories.size(); ++i) {
        const double lower = many && i % 2 == 1 ? 11 : 0;
        svg += svg_words({.x = x_.place(static_cast<double>(i)), .y = floor() + 15 + lower}, chart_.categories[i]);
      }
    } else {
      for (const double tick : x_.ticks()) {
        if (!x_.has(tick)) continue;
        svg += rule(x_.place(tick), floor(), x_.place(tick), floor() + 4, R"(stroke="#444")");
        svg += svg_words({.x = x_.place(tick), .y = floor() + 16}, tick_text(tick));
      }
    }
    svg += rule(kLeft, floor(), kWidth - kRight, floor(), R"(stroke="#444")");
    svg += rule(kLeft, top_ + kTop, kLeft, floor(), R"(stroke="#444")");
    svg += svg_words({.x = (kLeft + kWidth - kRight) / 2, .y = floor() + 36}, panel_.x_label);
    const double middle = (top_ + kTop + floor()) / 2;
    return svg + concat(R"(<text transform="translate(16 )", svg_number(middle), ") rotate(-90)\" text-anchor=\"middle\">",
                        html(panel_.y_label), "</text>\n");
  }

  std::string lines() const {
    std::string svg;
    for (const FigureLine& mark : panel_.marks) {
      if (!x_.has(mark.at)) continue;
      svg += concat("<g><title>", html(mark.label), "</title>",
                    rule(x_.place(mark.at), top_ + kTop, x_.place(mark.at), floor(), R"(stroke="#777" stroke-dasharray="2 3")"), "</g>");
    }
    // Levels that lie close share a line of words.
    std::vector<FigureLine> levels = panel_.levels;
    std::ranges::sort(levels, {}, &FigureLine::at);
    double last = INFINITY, right = kWidth - kRight - 4;
    for (const FigureLine& level : levels) {
      const double y = y_.place(level.at);
      svg += rule(kLeft, y, kWidth - kRight, y, R"(stroke="#a8433f" stroke-width="0.7")");
      right = last - y < 12 ? right - 94 : kWidth - kRight - 4;
      if (right < kLeft + 90) right = kWidth - kRight - 4;
      if (last - y >= 12) last = y;
      svg += svg_words({.x = right, .y = y - 3, .anchor = "end", .more = R"( font-size="10")"}, level.label);
    }
    return svg;
  }

  std::string curve_of(const ChartCurve& curve) const {
    std::string path, dots;
    for (const ChartPoint& point : curve.points) {
      const double x = x_.place(point.x), y = y_.place(point.y);
      path += concat(path.empty() ? "M" : "L", svg_number(x), ' ', svg_number(y));
      if (point.high > point.low)
        dots += rule(x, y_.place(point.low), x, y_.place(point.high), concat(R"(stroke=")", color_of(curve), R"(")").c_str());
      if (curve.kind == CurveKind::measured) {
        dots += concat(R"(<circle cx=")", svg_number(x), R"(" cy=")", svg_number(y), R"(" r="2" fill=")", color_of(curve), "\"/>\n");
      }
      if (curve.kind == CurveKind::library) {
        dots += concat(R"(<rect x=")", svg_number(x - 2), R"(" y=")", svg_number(y - 2), R"(" width="4" height="4" fill=")",
                       color_of(curve), "\"/>\n");
      }
    }
    const char* dash = curve.kind == CurveKind::predicted ? R"( stroke-dasharray="6 3")" : "";
    return concat(R"(<path d=")", path, R"(" fill="none" stroke-width="1.6" stroke=")", color_of(curve), R"(")", dash, "/>\n", dots);
  }

  std::string bars_of(std::size_t index) const {
    const ChartCurve& curve = panel_.curves[index];
    const double slot = (x_.place(1.0) - x_.place(0.0)) * 0.84, width = slot / static_cast<double>(panel_.curves.size());
    std::string svg;
    for (const ChartPoint& point : curve.points) {
      const double left = x_.place(point.x) - slot / 2 + static_cast<double>(index) * width, y = y_.place(point.y);
      const char* fill = curve.kind == CurveKind::predicted ? R"(fill-opacity="0.35")" : R"(fill-opacity="1")";
      svg += concat(R"(<rect x=")", svg_number(left), R"(" y=")", svg_number(y), R"(" width=")", svg_number(0.9 * width), R"(" height=")",
                    svg_number(floor() - y), R"(" fill=")", color_of(curve), R"(" stroke=")", color_of(curve), R"(" )", fill, "/>\n");
      const double middle = left + 0.45 * width;
      if (point.high > point.low) svg += rule(middle, y_.place(point.low), middle, y_.place(point.high), R"(stroke="#222")");
    }
    return svg;
  }

  const Chart& chart_;
  const ChartPanel& panel_;
  double top_;
  Axis x_, y_;
};

// Every curve that a panel has, once, three in a line.
struct Legend {
  std::vector<const ChartCurve*> curves;
  double height() const { return kLegendLine * std::ceil(static_cast<double>(curves.size()) / kAcross) + 8; }
  static constexpr double kAcross = 3;
};
Legend legend_of(const Chart& chart) {
  Legend legend;
  std::map<std::string, bool> known;
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartCurve& curve : panel.curves) {
      if (!std::exchange(known[curve.label], true)) legend.curves.push_back(&curve);
    }
  }
  return legend;
}

std::string text_of(const Legend& legend, double top) {
  std::string svg;
  for (std::size_t i = 0; i < legend.curves.size(); ++i) {
    const ChartCurve& curve = *legend.curves[i];
    const auto across = static_cast<std::size_t>(Legend::kAcross);
    const double x = kLeft + static_cast<double>(i % across) * (kWidth - kLeft) / Legend::kAcross;
    const std::size_t line = i / across;
    const double y = top + kLegendLine * static_cast<double>(line) + 8;
    const std::string look = concat(R"(stroke=")", color_of(curve), R"(" stroke-width="2.5")",
                                    curve.kind == CurveKind::predicted ? R"( stroke-dasharray="6 3")" : "");
    svg += rule(x, y, x + 22, y, look.c_str()) + svg_words({.x = x + 28, .y = y + 4, .anchor = "start"}, curve.label);
  }
  return svg;
}

}  // namespace

std::string svg_of(const Chart& chart) {
  constexpr double kTitle = 30;
  const Legend legend = legend_of(chart);
  const double height = kTitle + legend.height() + kPanelHeight * static_cast<double>(chart.panels.size());
  std::string svg = svg_open(chart.title, kWidth, height);
  svg += svg_words({.x = kLeft, .y = 20, .anchor = "start", .more = R"( font-size="14" font-weight="600")"}, chart.title);
  svg += text_of(legend, kTitle);
  double top = kTitle + legend.height();
  for (const ChartPanel& panel : chart.panels) {
    svg += PanelDrawing(chart, panel, top).text();
    top += kPanelHeight;
  }
  return svg + "</svg>\n";
}

// A and B as strips along K beside the output, whose tiles are coloured by wave and hatched where they hold nothing; below, how many of the
// slots every wave uses.
std::string svg_of(const TileDiagram& diagram) {
  const auto& [name, title, m, n, k, tile, slots] = diagram;
  TW_CHECK_INPUT(ceil_div(m, tile.m) * ceil_div(n, tile.n) <= kMaxDrawnTiles, m, " x ", n, " in tiles of ", tile.m, 'x', tile.n, " are ",
                 ceil_div(m, tile.m) * ceil_div(n, tile.n), " tiles, more than can be told apart in a picture (", kMaxDrawnTiles,
                 "); draw a smaller GEMM or larger tiles.");
  const Tiling tiling = tile_waves(m, n, tile, slots);
  constexpr double kArea = 420, kStrip = 60, kGap = 10, kHead = 44, kBar = 16;
  const double down = static_cast<double>(tiling.tiles_m * tile.m), across = static_cast<double>(tiling.tiles_n * tile.n);
  const double scale = kArea / std::max(down, across);
  const double left = 30 + kStrip + kGap, top = kHead + kStrip + kGap;
  const double width = scale * across, height = scale * down;
  const std::int64_t waves = ceil_div(tiling.tiles, slots), shown = std::min<std::int64_t>(waves, kMaxDrawnWaves);
  const double below = top + height + 36, page = below + static_cast<double>(shown) * (kBar + 5) + (shown < waves ? 24 : 10);
  std::string svg = svg_open(title, std::max(left + width + 24, 660.0), page);
  svg +=
      "<defs><pattern id=\"padding\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
      "<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#222\" stroke-width=\"1.2\"/></pattern></defs>\n";
  svg += svg_words({.x = 12, .y = 18, .anchor = "start", .more = R"( font-weight="600")"}, title);
  const double useful_height = scale * static_cast<double>(m), useful_width = scale * static_cast<double>(n);
  svg += svg_box({30, top, kStrip, useful_height}, R"(fill="#eee" stroke="#666")");
  svg += svg_box({30, top, kStrip, std::min(scale * static_cast<double>(tile.m), useful_height)}, R"(fill="#c9d8e6" stroke="#666")");
  svg += svg_words({.x = 30 + kStrip / 2, .y = top - 5}, concat("A, K = ", k));
  svg += svg_box({left, kHead, useful_width, kStrip}, R"(fill="#eee" stroke="#666")");
  svg += svg_box({left, kHead, std::min(scale * static_cast<double>(tile.n), useful_width), kStrip}, R"(fill="#c9d8e6" stroke="#666")");
  svg += svg_words({.x = left - 14, .y = kHead + kStrip / 2 + 4}, "B");
  const bool numbered = scale * static_cast<double>(std::min(tile.m, tile.n)) >= 24;
  for (std::int64_t i = 0; i < tiling.tiles; ++i) {
    // Down each column of tiles: a new column is what a larger N adds.
    const std::int64_t row = i % tiling.tiles_m, column = i / tiling.tiles_m;
    const double x = left + scale * static_cast<double>(column * tile.n), y = top + scale * static_cast<double>(row * tile.m);
    const double w = scale * static_cast<double>(tile.n), h = scale * static_cast<double>(tile.m);
    const auto wave = static_cast<std::size_t>(i / slots);
    svg += concat(R"(<g class="tile"><title>tile )", i + 1, ", wave ", wave + 1, "</title>",
                  svg_box({x, y, w, h}, concat(R"(fill=")", kPalette[wave % std::size(kPalette)], R"(" fill-opacity="0.6" stroke="#fff")")),
                  "</g>");
    if (numbered) svg += svg_words({.x = x + w / 2, .y = y + h / 2 + 4}, std::to_string(wave + 1));
  }
  if (useful_width < width)
    svg += svg_box({left + useful_width, top, width - useful_width, height}, "fill=\"url(#padding)\" class=\"padding\"");
  if (useful_height < height)
    svg += svg_box({left, top + useful_height, useful_width, height - useful_height}, "fill=\"url(#padding)\" class=\"padding\"");
  svg += svg_words(
      {.x = left, .y = below - 14, .anchor = "start"},
      concat(m, " x ", n, ", tiles of ", tile.m, 'x', tile.n, ": ", tiling.tiles, tiling.tiles == 1 ? " tile, " : " tiles, ",
             percent_text(tiling.useful_fraction), " useful; ", slots, " at a time: ", number_text(tiling.waves, "%.2f"), " waves"));
  for (std::int64_t wave = 0; wave < shown; ++wave) {
    const double y = below + static_cast<double>(wave) * (kBar + 5), whole = 330;
    const std::int64_t used = std::min(slots, tiling.tiles - wave * slots);
    const double share = static_cast<double>(used) / static_cast<double>(slots);
    svg += svg_words({.x = 90, .y = y + 12, .anchor = "end"}, concat("wave ", wave + 1));
    svg += svg_box({left, y, whole, kBar}, R"(fill="#eee" stroke="#666")");
    svg += svg_box({left, y, whole * share, kBar},
                   concat(R"(fill=")", kPalette[static_cast<std::size_t>(wave) % std::size(kPalette)], R"(" fill-opacity="0.6")"));
    svg += svg_words({.x = left + whole + 8, .y = y + 12, .anchor = "start"}, concat(used, " of ", slots, ", ", percent_text(share, 2)));
  }
  if (shown < waves) svg += svg_words({.x = left, .y = page - 8, .anchor = "start"}, concat("and ", waves - shown, " more waves"));
  return svg + "</svg>\n";
}

}  // namespace tilewave
