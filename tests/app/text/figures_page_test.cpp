// figures.html as a browser lays it out: nothing but pictures and tables of points, which scroll by themselves, is wider than the page; a
// picture has a size; the page asks for nothing beside it.
#include "app/text/figures_page.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/text/chart.h"
#include "app/text/figure_text.h"
#include "kernels/core/device_profiles.h"
#include "models/figures/figures.h"
#include "models/figures/run_figure.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLook = R"(<!doctype html><meta charset="utf-8"><body><pre id="measured"></pre><script>
const look = frame => {
  const page = frame.contentDocument, root = page.documentElement;
  const open = page.querySelectorAll("details[open]").length;
  page.querySelectorAll("details").forEach(one => { one.open = true; });
  const outside = [...page.querySelectorAll("body *")].filter(one => !one.closest(".picture") && one.getClientRects().length &&
    [...one.getClientRects()].some(box => box.right > root.clientWidth + 0.5));
  const pictures = [...page.querySelectorAll(".picture > svg")].map(one => one.getBoundingClientRect());
  const words = [...page.querySelectorAll("svg text")].filter(one => {
    const box = one.getBoundingClientRect(), whole = one.closest("svg").getBoundingClientRect();
    return box.left < whole.left - 1 || box.right > whole.right + 1 || box.bottom > whole.bottom + 1;
  });
  return {scroll: root.scrollWidth - root.clientWidth, outside: outside.map(one => one.tagName + one.textContent.slice(0, 40)),
          pictures: pictures.length, small: pictures.filter(box => box.width < 300 || box.height < 100).length,
          cut: words.map(one => one.textContent), open: open, rows: page.querySelectorAll("tr").length};
};
const frames = [1280, 390].map(width => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:100000px;border:0;display:block`;
  frame.srcdoc = PAGE;
  document.body.append(frame);
  return frame;
});
Promise.all(frames.map(frame => new Promise(done => { frame.onload = done; }))).then(() => {
  document.getElementById("measured").textContent = JSON.stringify(frames.map(look));
  frames.forEach(frame => frame.remove());
});
</script></body>)";

FiguresPage page_of_all(const char* profile) {
  const FigureSetting setting = {.device = device_profile(profile).device, .precision = Precision::fp16};
  FiguresPage page = {.title = "The guides' figures", .notes = {"Predicted."}, .figures = {}};
  for (const Figure* figure : figures()) {
    if (!figure->absent.empty()) continue;
    PagedFigure paged = {.figure = figure, .how = {}, .command = "tilewave figures"};
    FigureRun run = run_figure({.figure = *figure, .setting = setting});
    if (figure->points)
      paged.pictures = {svg_of(chart_of({.figure = *figure, .asked = run.asked, .records = run.records, .device = profile}))};
    if (figure->diagrams) {
      for (const TileDiagram& diagram : figure->diagrams(setting)) paged.pictures.push_back(svg_of(diagram));
    }
    if (figure == &kSummaryFigure) {
      paged.checklist = {{.chapter = "enable Tensor Cores",
                          .guideline = "do they?",
                          .share = 0.5,
                          .detail = "not decoder.projection wgrad (1024x33708x5120)"}};
    }
    paged.how = run.asked.how;
    if (figure->effects) paged.effects = figure->effects(run.records);
    paged.records = std::move(run.records);
    page.figures.push_back(std::move(paged));
  }
  page.figures.front().records.front().refused = "its operands do not fit in memory.";
  page.figures.front().records.front().predicted_s = NAN;
  return page;
}

TEST(FiguresPage, HoldsClaimsEffectsGapsAndNothingFromElsewhere) {
  const std::string html = figures_page(page_of_all("h200"));
  EXPECT_LT(html.size(), std::size_t{1} << 20);
  for (const char* part : {"id=\"wave_quantization\"", "The guide:", "tiles at N = 1408: 132",
                           "1 point is a gap: its operands do not fit in memory.", "<code>tilewave figures</code>"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  EXPECT_FALSE(std::regex_search(html, std::regex("(src|href)=\"[^#]"))) << "something is fetched";
  EXPECT_EQ(html.find("<script"), std::string::npos);
}

TEST(FiguresPage, IsReadOnAWideScreenAndOnAPhone) {
  if (shell("chromium --version", "/").status != 0)
    GTEST_SKIP() << "there is no chromium: figures.html was NOT looked at (apt-get install chromium)";
  const TemporaryFolder folder;
  std::string page = Json(figures_page(page_of_all("h200"))).dump();
  for (std::size_t at = 0; (at = page.find("</", at)) != std::string::npos; at += 3) page.replace(at, 2, "<\\/");
  std::string looking = kLook;
  looking.replace(looking.find("PAGE"), 4, page);
  write_text(folder.path() / "page.html", looking);
  const Outcome outcome = shell(
      "HOME=$PWD chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$PWD/profile\" --virtual-time-budget=20000 --dump-dom "
      "\"$PWD/page.html\" 2>/dev/null",
      folder.path());
  const std::size_t from = outcome.output.find("<pre id=\"measured\">"), to = outcome.output.find("</pre>");
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << outcome.output.size();
  const Json looks = Json::parse(outcome.output.substr(from + 19, to - from - 19), nullptr, false);
  ASSERT_EQ(looks.size(), 2U);
  for (const Json& look : looks) {
    EXPECT_EQ(look["scroll"], 0) << look;
    EXPECT_TRUE(look["outside"].empty()) << look["outside"];
    EXPECT_GE(look["pictures"], 20);
    EXPECT_EQ(look["small"], 0);
    EXPECT_TRUE(look["cut"].empty()) << look["cut"];
    EXPECT_EQ(look["open"], 0) << "points are folded";
    EXPECT_GT(look["rows"], 500);
  }
}

TEST(FigureText, AnEffectIsPredictedMeasuredOrCounted) {
  EXPECT_EQ(effect_text({.what = "a", .predicted = 1.5}), "a: predicted 1.5 times");
  EXPECT_EQ(effect_text({.what = "a", .predicted = 1.5, .measured = 1.25, .low = 1.2, .high = 1.3}),
            "a: predicted 1.5 times, measured 1.25 times (1.2 times to 1.3 times)");
  EXPECT_EQ(effect_text({.what = "a", .measured = 2}), "a: measured 2 times");
  EXPECT_EQ(effect_text({.what = "tiles", .predicted = 117, .unit = ""}), "tiles: 117");
  EXPECT_EQ(effect_text({.what = "tail", .predicted = 9.0 / 108, .unit = "%"}), "tail: 8.33 %");
}

}  // namespace
}  // namespace tilewave
