// The drawer: what a picture shows is there, once, and within it; tiles are coloured by their wave, and padding is hatched.
#include "app/text/chart.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "app/text/tile_life_svg.h"
#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "models/figures/figures.h"
#include "models/figures/run_figure.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

// Elements open and close as XML asks, and no coordinate is no number.
void expect_well_formed(const std::string& svg) {
  static const std::regex element(R"(<(/?)([a-z]+)([^<>]*?)(/?)>)");
  std::vector<std::string> open;
  for (std::sregex_iterator match(svg.begin(), svg.end(), element), end; match != end; ++match) {
    if ((*match)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*match)[2].str());
      open.pop_back();
    } else if ((*match)[4].length() == 0) {
      open.push_back((*match)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
  for (const char* word : {"nan", "inf", "NaN"}) EXPECT_EQ(count(svg, word + std::string("\"")) + count(svg, std::string("\"") + word), 0U);
}

Chart chart_on(const Figure& figure, const char* profile) {
  const FigureSetting setting = {.device = device_profile(profile).device, .precision = Precision::fp16};
  const FigureRun run = run_figure({.figure = figure, .setting = setting});
  return chart_of({.figure = figure, .asked = run.asked, .records = run.records, .device = "a device"});
}

TEST(Chart, EveryFigureIsDrawn) {
  for (const Figure* figure : figures()) {
    if (!figure->points) continue;
    const Chart chart = chart_on(*figure, "h200");
    EXPECT_EQ(chart.panels.size(), figure->panels.size()) << figure->name;
    const std::string svg = svg_of(chart);
    expect_well_formed(svg);
    for (const ChartPanel& panel : chart.panels) {
      EXPECT_NE(svg.find(">" + panel.title + "<"), std::string::npos) << panel.title;
      EXPECT_FALSE(panel.curves.empty()) << panel.title;
    }
    for (const std::string& category : chart.categories) EXPECT_NE(svg.find(">" + category + "<"), std::string::npos) << category;
  }
}

TEST(Chart, APointStandsWhereItsNumbersSay) {
  Chart chart = {.name = "c", .title = "t <&>", .categories = {}, .panels = {}};
  chart.panels.push_back({.title = "p", .x_label = "x", .y_label = "y"});
  chart.panels.front().curves.push_back({.label = "m",
                                         .kind = CurveKind::measured,
                                         .points = {{.x = 0, .y = 0}, {.x = 5, .y = 50}, {.x = 10, .y = 100, .low = 90, .high = 105}}});
  chart.panels.front().curves.push_back({.label = "p", .kind = CurveKind::predicted, .points = {{.x = 0, .y = 10}, {.x = 10, .y = 20}}});
  const std::string svg = svg_of(chart);
  expect_well_formed(svg);
  EXPECT_NE(svg.find("t &lt;&amp;&gt;"), std::string::npos);
  static const std::regex circle("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  std::vector<std::pair<double, double>> places;
  for (std::sregex_iterator match(svg.begin(), svg.end(), circle), end; match != end; ++match)
    places.emplace_back(std::stod((*match)[1]), std::stod((*match)[2]));
  ASSERT_EQ(places.size(), 3U);  // of what was measured alone
  EXPECT_NEAR(places[1].first, (places[0].first + places[2].first) / 2, 0.11);
  EXPECT_NEAR(places[1].second, (places[0].second + places[2].second) / 2, 0.11);
  EXPECT_LT(places[2].second, places[0].second) << "larger is higher";
  EXPECT_EQ(count(svg, "stroke-dasharray=\"6 3\""), 2U) << "what is predicted is dashed, in the panel and in the legend";
}

TEST(Chart, PlotterReadsTheSame) {
  const Chart chart = chart_on(kWaveQuantizationFigure, "h200");
  const auto json = nlohmann::json::parse(json_of({chart}));
  ASSERT_EQ(json.at("charts").size(), 1U);
  const auto& panel = json["charts"][0].at("panels").at(0);
  EXPECT_EQ(panel.at("curves").size(), chart.panels[0].curves.size());
  EXPECT_EQ(panel["curves"][0].at("points").size(), chart.panels[0].curves[0].points.size());
  EXPECT_GE(panel.at("marks").size(), 4U);
}

// The waves that the tiles of a drawing are in.
std::multiset<int> waves_in(const std::string& svg) {
  static const std::regex tile("<title>tile [0-9]+, wave ([0-9]+)</title>");
  std::multiset<int> waves;
  for (std::sregex_iterator match(svg.begin(), svg.end(), tile), end; match != end; ++match) waves.insert(std::stoi((*match)[1]));
  return waves;
}

TEST(TileDrawing, IsTheGuidesFigures) {
  const std::string whole = svg_of(TileDiagram{.title = "a", .m = 256, .n = 256, .k = 64, .tile = {128, 128}, .slots = 4});
  const std::string beyond = svg_of(TileDiagram{.title = "b", .m = 256, .n = 257, .k = 64, .tile = {128, 128}, .slots = 4});
  const std::string twelve = svg_of(TileDiagram{.title = "c", .m = 384, .n = 512, .k = 64, .tile = {128, 128}, .slots = 8});
  for (const std::string* svg : {&whole, &beyond, &twelve}) expect_well_formed(*svg);
  EXPECT_EQ(waves_in(whole).size(), 4U);
  EXPECT_EQ(waves_in(beyond).size(), 6U);
  EXPECT_EQ(count(whole, "class=\"padding\""), 0U);
  EXPECT_EQ(count(beyond, "class=\"padding\""), 1U);
  EXPECT_EQ(waves_in(twelve).count(1), 8U);
  EXPECT_EQ(waves_in(twelve).count(2), 4U);
  EXPECT_NE(twelve.find("4 of 8, 50.00 %"), std::string::npos);
  EXPECT_THROW(svg_of(TileDiagram{.title = "d", .m = 1 << 20, .n = 1 << 20, .k = 64, .tile = {64, 64}, .slots = 8}), InputError);
}

TEST(TileLifeDrawing, HasEveryLoadAndTile) {
  const std::vector<TileLife> lives = tile_lives(device_profile("h200").device);
  const std::string svg = svg_of(lives, "three tiles");
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"load\""), 3U * 3U * 16U);
  EXPECT_EQ(count(svg, "class=\"mma\""), 3U * 3U);
  for (const TileLife& life : lives) EXPECT_NE(svg.find(life.title.substr(0, life.title.find('\''))), std::string::npos) << life.title;
}

// TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=GemmDocument.* --data tests writes the picture instead.
TEST(GemmDocument, DrawsATilesLife) {
  const std::filesystem::path page = std::filesystem::absolute(test_environment().data).lexically_normal() / "../docs/understand/gemm.md";
  if (!std::filesystem::exists(page)) GTEST_SKIP() << page << " is not beside --data";
  const std::filesystem::path path = page.parent_path() / "tile-life.svg";
  const std::string svg = svg_of(tile_lives(device_profile("h200").device), "Three tiles of a CTA on an NVIDIA H200");
  if (std::getenv("TILEWAVE_WRITE_DOCS") != nullptr) return write_text(path, svg);
  EXPECT_TRUE(file_text(path) == svg) << path << " is not what is drawn";
}

}  // namespace
}  // namespace tilewave
