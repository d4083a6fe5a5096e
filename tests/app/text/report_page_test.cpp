// report.html as a browser lays it out, on a wide screen and on a phone, by day and by night: nothing overflows, nothing is cut, every
// word can be read on what is behind it, and nothing is fetched.
#include "app/text/report_page.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "kernels/core/error.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

using ReportLook = nlohmann::ordered_json;

RunReport long_report(int steps) {
  RunReport report{
      .title = "Run a_long_name_of_a_run_that_somebody_gave_and_that_goes_on",
      .training_loss = "training loss (smoothed, with dropout)",
      .answers = {"1,000 steps in 23.6 s.", "The validation loss is <2> nats & falls."},
      .steps = {},
      .samples = {{.given = "the number one thousand two hundred and thirty-four", .expected = "tausend", .said = "hundert"},
                  {.given = std::string(300, 'w'), .expected = {}, .said = "two\nlines"}},
      .without_samples = {},
      .times = "Times are of a step.",
      .gemms = {},
      .facts = {{"device", "NVIDIA H200"}, {"wave_free_batch", std::string(200, 'y') + " and a reason"}},
      .settings = {
          {"model", "d_model", "1024", false}, {"data", "source", "\"" + std::string(150, '/') + "\"", false}, {"run", "seed", "1", true}}};
  for (int i = 1; i <= steps; ++i) {
    report.steps.push_back({.step = i, .loss = 9.0 / i, .validation_loss = {}, .learning_rate = 1e-3 * i, .gradient_norm = 1.0});
    if (i % 10 == 0) report.steps.back().validation_loss = 9.5 / i;
  }
  for (int i = 0; i < 30; ++i) {
    report.gemms.push_back({.layer = "decoder.*.cross_attention.kv",
                            .role = i % 2 == 0 ? "forward" : "wgrad",
                            .kernel = "persistent_cooperative",
                            .m = 33708,
                            .n = 5120,
                            .k = 1024,
                            .launches = 6,
                            .predicted_s = i == 3 ? 0.0 : 1e-3,
                            .measured_s = 1.1e-3,
                            .flops = 1e12});
  }
  return report;
}

TEST(ReportPage, HoldsWhatARunIsAndNothingFromElsewhere) {
  const std::string page = report_page(long_report(1000));
  for (const char* part :
       {"<h2>Curves</h2>", "<h2>Samples</h2>", "<h2>The step's GEMMs</h2>", "<h2>Settings</h2>", "&lt;2&gt; nats &amp; falls",
        "expected: tausend", "1 keys with their defaults", "30 GEMMs", "-9.1 %", "prefers-color-scheme:dark"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_FALSE(std::regex_search(page, std::regex("(src|href)=|@import|url\\("))) << "something is fetched";
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_LT(page.size(), std::size_t{1} << 19);
}

TEST(ReportPage, ManyStepsAreDrawnAsMeansOfStretches) {
  const auto vertices = [](const std::string& page) { return std::count(page.begin(), page.end(), 'L'); };
  EXPECT_LT(vertices(report_page(long_report(100'000))), 3000);
  EXPECT_GT(vertices(report_page(long_report(300))), 600) << "few are drawn one by one";
}

TEST(ReportPage, OfARunThatHasDoneNothing) {
  RunReport report = long_report(0);
  report.samples.clear();
  report.without_samples = "There is no checkpoint yet.";
  report.gemms.clear();
  const std::string page = report_page(report);
  EXPECT_NE(page.find("metrics.jsonl has no step yet"), std::string::npos);
  EXPECT_NE(page.find("There is no checkpoint yet."), std::string::npos);
  EXPECT_EQ(page.find("<svg"), std::string::npos);
  EXPECT_NE(report_page(long_report(1)).find("<svg"), std::string::npos) << "a single point is a picture";
}

constexpr const char* kReportLook = R"(<!doctype html><meta charset="utf-8"><body><pre id="measured"></pre><script>
const rgb = text => (text.match(/[\d.]+/g) || []).map(Number);
const light = color => { const [r, g, b] = color.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const behind = one => {
  for (let box = one; box; box = box.parentElement) {
    if (box.tagName === "svg") {
      const paper = getComputedStyle(box.querySelector("rect")).fill;
      if (paper !== "none") return rgb(paper).slice(0, 3);
    }
    const color = rgb(getComputedStyle(box).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
const look = frame => {
  const page = frame.contentDocument, root = page.documentElement;
  page.querySelectorAll("details").forEach(one => { one.open = true; });
  const seen = [...page.querySelectorAll("body *")].filter(one => one.getClientRects().length &&
    [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim()));
  const name = one => one.tagName + ": " + one.textContent.trim().slice(0, 40);
  const outside = seen.filter(one => !one.closest(".picture") &&
    [...one.getClientRects()].some(box => box.left < -0.5 || box.right > root.clientWidth + 0.5));
  const cut = [...page.querySelectorAll("svg text")].filter(one => {
    const box = one.getBoundingClientRect(), whole = one.closest("svg").getBoundingClientRect();
    return box.left < whole.left - 1 || box.right > whole.right + 1 || box.bottom > whole.bottom + 1;
  });
  const ink = one => rgb(one.closest("svg") ? getComputedStyle(one).fill : getComputedStyle(one).color).slice(0, 3);
  const faint = seen.filter(one => one.tagName !== "title" && contrast(ink(one), behind(one)) < 4.5);
  return {scroll: root.scrollWidth - root.clientWidth, texts: seen.length, outside: outside.map(name), cut: cut.map(name),
          faint: faint.map(name), night: light(behind(page.body)) < 0.2, pictures: page.querySelectorAll(".picture > svg").length};
};
const frames = [1280, 390].map(width => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:100000px;border:0;display:block`;
  frame.srcdoc = PAGE;
  document.body.append(frame);
  return frame;
});
Promise.all(frames.map(frame => new Promise(done => { frame.onload = done; }))).then(() => {
  document.getElementById("measured").textContent = btoa(unescape(encodeURIComponent(JSON.stringify(frames.map(look)))));
  frames.forEach(frame => frame.remove());
});
</script></body>)";

std::string from_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, held = 0;
  for (const char c : text) {
    if (letters.find(c) == std::string::npos) continue;
    bits = bits << 6 | static_cast<unsigned>(letters.find(c));
    held += 6;
    if (held >= 8) bytes += static_cast<char>(bits >> (held -= 8) & 0xFF);
  }
  return bytes;
}

ReportLook looks_of(const std::string& page, const std::filesystem::path& folder) {
  std::string text = ReportLook(page).dump();
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.replace(at, 2, "<\\/");
  std::string looking = kReportLook;
  looking.replace(looking.find("PAGE"), 4, text);
  write_text(folder / "page.html", looking);
  const Outcome outcome = shell(
      "HOME=$PWD chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$PWD/profile\" --virtual-time-budget=20000 --dump-dom "
      "\"$PWD/page.html\" 2>/dev/null",
      folder);
  const std::size_t from = outcome.output.find("<pre id=\"measured\">"), to = outcome.output.find("</pre>");
  if (from == std::string::npos || to == std::string::npos) return ReportLook::array();
  return ReportLook::parse(from_base64(outcome.output.substr(from + 19, to - from - 19)), nullptr, false);
}

// By day the page as it is; by night with the rules that a dark screen asks for in force whatever the screen.
std::string by_night(std::string page) {
  const std::string asked = "@media(prefers-color-scheme:dark)";
  page.replace(page.find(asked), asked.size(), "@media all");
  return page;
}

TEST(ReportPage, IsReadOnAWideScreenAndOnAPhoneByDayAndByNight) {
  if (shell("chromium --version", "/").status != 0)
    GTEST_SKIP() << "there is no chromium: report.html was NOT looked at (apt-get install chromium)";
  const std::string day = report_page(long_report(100));
  for (const bool night : {false, true}) {
    const TemporaryFolder folder;
    const ReportLook looks = looks_of(night ? by_night(day) : day, folder.path());
    ASSERT_EQ(looks.size(), 2U) << looks;
    for (const ReportLook& look : looks) {
      EXPECT_EQ(look["night"], night);
      EXPECT_EQ(look["scroll"], 0) << look;
      EXPECT_GT(look["texts"], 100);
      EXPECT_EQ(look["pictures"], 1);
      for (const char* fault : {"outside", "cut", "faint"}) EXPECT_TRUE(look[fault].empty()) << fault << ' ' << look[fault];
    }
  }
}

// What the test would see.
TEST(ReportPage, FaultsAreSeen) {
  if (shell("chromium --version", "/").status != 0) GTEST_SKIP() << "there is no chromium";
  const TemporaryFolder folder;
  std::string page = by_night(report_page(long_report(100)));
  page.replace(page.find("<h2>Curves"), 0,
               "<p style=\"color:#333\">faint by night</p><p style=\"width:1500px;overflow-wrap:normal\">wide</p>");
  const ReportLook looks = looks_of(page, folder.path());
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[0]["faint"].size(), 1U) << looks[0]["faint"];
  EXPECT_GT(looks[0]["scroll"], 0);
}

}  // namespace
}  // namespace tilewave
