// Lanes below each other; loads are thin lines, as many beside each other as there are stages.
#include "app/text/tile_life_svg.h"

#include <algorithm>

#include "app/text/svg.h"
#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr double kLifeWidth = 860, kLifeLeft = 112, kLifeRight = 16, kLifeTitle = 40, kLifeHead = 26, kLifeLane = 26, kLifeBar = 18,
                 kLifeGap = 14, kLifeFoot = 44;
constexpr const char* kTileColors[] = {"#2f6da8", "#c47a1c", "#3f8f4f"};

double cycles_of(const std::vector<TileLife>& lives) {
  double most = 1.0;
  for (const TileLife& life : lives) {
    for (const LifeLane& lane : life.lanes) {
      for (const LifeSpan& span : lane.spans) most = std::max(most, span.end_cycles);
    }
  }
  return most;
}

std::string life_bar(const LifeSpan& span, double y, double scale) {
  const char* const color = kTileColors[static_cast<std::size_t>(span.tile) % std::size(kTileColors)];
  const double x = kLifeLeft + scale * span.begin_cycles, width = scale * (span.end_cycles - span.begin_cycles);
  const std::string title =
      concat("<title>", span.label, ", ", number_text(span.end_cycles - span.begin_cycles, "%.0f"), " cycles</title>");
  if (span.part == LifePart::load) {
    return concat(R"(<g class="load">)", title,
                  svg_box({x, y + kLifeBar / 2 - 1, width, 2}, concat(R"(fill=")", color, R"(" fill-opacity="0.35")")),
                  svg_box({x + width - 1.5, y + 2, 1.5, kLifeBar - 4}, concat(R"(fill=")", color, '"')), "</g>\n");
  }
  const bool mma = span.part == LifePart::mma;
  const std::string look =
      concat(R"(fill=")", color, mma ? R"(" fill-opacity="0.85")" : R"(" fill-opacity="0.25" stroke=")", mma ? "" : color, mma ? "" : "\"");
  const std::string text = span.label.substr(span.label.find(": ") + 2);
  std::string svg = concat(R"(<g class=")", mma ? "mma" : "epilogue", R"(">)", title, svg_box({x, y, width, kLifeBar}, look));
  constexpr double kLetter = 6.5;
  if (width > kLetter * static_cast<double>(text.size())) {
    svg += svg_words({.x = x + width / 2, .y = y + 13, .more = mma ? R"( fill="#fff")" : ""}, text);
  }
  return svg + "</g>\n";
}

std::string cycles_axis(double y, double most, double scale) {
  std::string svg;
  const double step = most > 60000 ? 20000 : most > 30000 ? 10000 : 5000;
  for (double at = 0.0; at <= most; at += step) {
    const double x = kLifeLeft + scale * at;
    svg += svg_box({x, kLifeTitle, 0.5, y - kLifeTitle}, R"(fill="#ddd")") + svg_words({.x = x, .y = y + 14}, number_text(at, "%.0f"));
  }
  return svg +
         svg_words(
             {.x = kLifeLeft, .y = y + 32, .anchor = "start"},
             "cycles of an SM, by the cost model; a line is a load, its mark where it arrives; filled are MMAs, light is the epilogue");
}

}  // namespace

std::string svg_of(const std::vector<TileLife>& lives, const std::string& title) {
  double height = kLifeTitle;
  for (const TileLife& life : lives) height += kLifeHead + kLifeLane * static_cast<double>(life.lanes.size()) + kLifeGap;
  const double most = cycles_of(lives), scale = (kLifeWidth - kLifeLeft - kLifeRight) / most;
  std::string svg = svg_open(title, kLifeWidth, height + kLifeFoot);
  svg += svg_words({.x = 12, .y = 22, .anchor = "start", .more = R"( font-size="14" font-weight="600")"}, title);
  svg += cycles_axis(height, most, scale);
  double y = kLifeTitle;
  for (const TileLife& life : lives) {
    svg += svg_words({.x = 12, .y = y + 16, .anchor = "start", .more = R"( font-weight="600")"}, life.title);
    y += kLifeHead;
    for (const LifeLane& lane : life.lanes) {
      svg += svg_words({.x = kLifeLeft - 8, .y = y + 13, .anchor = "end"}, lane.label);
      for (const LifeSpan& span : lane.spans) svg += life_bar(span, y, scale);
      y += kLifeLane;
    }
    y += kLifeGap;
  }
  return svg + "</svg>\n";
}

}  // namespace tilewave
