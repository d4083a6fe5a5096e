// A chart as data: panels beside each other, curves or grouped bars in each. One drawer makes SVG of it, and plot.py, which reads the same
// as JSON, PNG.
#pragma once

#include <string>
#include <vector>

#include "models/figures/figure.h"

namespace tilewave {

enum class CurveKind : std::uint8_t { predicted, measured, library, plain };  // plain: a line without points

struct ChartPoint {
  double x = 0.0, y = 0.0;
  double low = 0.0, high = 0.0;  // a whisker; none where they are equal
};
struct ChartCurve {
  std::string label;
  CurveKind kind = CurveKind::measured;
  std::size_t color = 0;  // of the palette; a series has the same for what is predicted and what is measured
  std::vector<ChartPoint> points;
};
enum class ChartFloor : std::uint8_t { zero, least };  // where a linear y axis begins
struct ChartPanel {
  std::string title, x_label, y_label;
  AxisScale x_scale = AxisScale::linear, y_scale = AxisScale::linear;
  ChartFloor floor = ChartFloor::zero;
  std::vector<ChartCurve> curves;
  std::vector<FigureLine> marks, levels;  // across x, across y
};
struct Chart {
  std::string name, title;
  std::vector<std::string> categories;  // at x = 0, 1, ... where a scale is of categories
  std::vector<ChartPanel> panels;
};

struct ChartSource {
  const Figure& figure;
  const FigurePoints& asked;
  const FigureRecords& records;
  std::string device;
};
Chart chart_of(const ChartSource& source);

std::string svg_of(const Chart& chart);
inline constexpr std::int64_t kMaxDrawnTiles = 20000, kMaxDrawnWaves = 12;
std::string svg_of(const TileDiagram& diagram);         // InputError where it has more tiles
std::string json_of(const std::vector<Chart>& charts);  // for plot.py

}  // namespace tilewave
