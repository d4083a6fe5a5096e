// ablation.html as a browser lays it out, on a wide screen and on a phone: nothing overflows, nothing is clipped, no chart is empty.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <regex>

#include "app/text/ablation_files.h"
#include "app/text/html.h"
#include "kernels/core/device_profiles.h"
#include "models/planning/plan.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What a page looks like at either width. Frames of the page's own origin have the width of a phone, which a headless window has not.
constexpr const char* kMeasure = R"(<!doctype html><meta charset="utf-8"><body><pre id="measured"></pre><script>
const look = frame => {
  const page = frame.contentDocument, root = page.documentElement;
  page.querySelectorAll("details").forEach(one => { one.open = true; });
  const texts = [...page.querySelectorAll("body *")].filter(one => !one.closest("svg") && one.getClientRects().length &&
    [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim()));
  const name = one => one.tagName + ": " + one.textContent.trim().slice(0, 60);
  const clipped = texts.filter(one => getComputedStyle(one).display !== "inline" && one.scrollWidth > one.clientWidth);
  const outside = texts.filter(one => [...one.getClientRects()].some(box => box.left < -0.5 || box.right > root.clientWidth + 0.5));
  const empty = [...page.querySelectorAll(".chart")].filter(one =>
    ![...one.querySelectorAll("rect")].some(mark => mark.getBoundingClientRect().width > 1));
  const left = [...page.querySelectorAll("p,li")].filter(one => !["left", "start"].includes(getComputedStyle(one).textAlign));
  return {width: root.clientWidth, scroll: root.scrollWidth, texts: texts.length, clipped: clipped.map(name), outside: outside.map(name),
          charts: page.querySelectorAll(".chart").length, empty: empty.length, elsewhere: left.map(name)};
};
const widths = [1280, 390];
const frames = widths.map(width => {
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

class AblationPage : public testing::Test {
 protected:
  void SetUp() override {
    if (shell("chromium --version", "/").status != 0)
      GTEST_SKIP() << "there is no chromium: ablation.html was NOT looked at (apt-get install chromium)";
  }

  // As a script has it within a page.
  static std::string script_text(const std::string& text) {
    std::string result = Json(text).dump();
    for (std::size_t at = 0; (at = result.find("</", at)) != std::string::npos; at += 3) result.replace(at, 2, "<\\/");
    return result;
  }

  Json looks(const std::string& page) {
    std::string measuring = kMeasure;
    measuring.replace(measuring.find("PAGE"), 4, script_text(page));
    write_text(folder_.path() / "page.html", measuring);
    const Outcome outcome = shell(
        "HOME=$PWD chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$PWD/profile\" --virtual-time-budget=10000 --dump-dom "
        "\"$PWD/page.html\" 2>/dev/null",
        folder_.path());
    EXPECT_EQ(outcome.status, 0);
    std::smatch found;
    EXPECT_TRUE(std::regex_search(outcome.output, found, std::regex("<pre id=\"measured\">(\\[.*?\\])</pre>"))) << outcome.output.size();
    std::string text = found.empty() ? "[]" : found[1].str();
    for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at) text.replace(at, std::string(from).size(), to);
    }
    return Json::parse(text, nullptr, false);
  }

  TemporaryFolder folder_;
};

AblationVariant variant_named(const std::string& name, std::size_t baseline) {
  AblationVariant variant;
  variant.setting = {.name = name, .overrides = {}, .baseline = baseline};
  variant.resolved.recipe.optimizer.label_smoothing = variant.resolved.recipe.model.dropout = 0.1;
  variant.resolved.shapes = {.vocabulary = 33708, .vocabulary_padded = 33792, .source_rows = 5120, .target_rows = 5120};
  variant.step = {.name = name, .median_s = 14.52e-3, .lower_quartile_s = 14.3e-3, .upper_quartile_s = 14.8e-3, .rounds_s = {14.52e-3}};
  variant.target_tokens = 5120;
  variant.memory_bytes = std::int64_t{6} << 30;
  variant.matrix_flops = 6'500'000'000'000;
  variant.curve = {.losses = {10.425123456789012, 10.1}, .gradient_norms = {1.2345678901234567, 1.1}};
  return variant;
}

// As wide as ablations come: the longest names, every kind of setting, many GEMMs.
AblationReport wide_report() {
  const DeviceInfo& h200 = device_profile("h200").device;
  AblationReport report{.recipe = "transformer_big_case_study",
                        .device = h200,
                        .changes = {"model.d_model = 128, where the recipe says 1024"},
                        .steps = 2,
                        .variants = {}};
  const std::string second = " gemm.engine=in_house batch.source_tokens+batch.target_tokens=2560";
  report.variants.push_back(variant_named("wave_free_batch=off" + second, 0));
  report.variants.push_back(variant_named("wave_free_batch=nearest" + second, 0));
  report.variants.push_back(variant_named("wave_free_batch=up" + second, 0));
  report.variants.push_back(variant_named("wave_free_batch=off gemm.engine=cublaslt", 0));
  report.variants.push_back(variant_named("wave_free_batch=down" + second, 0));
  AblationVariant& faster = report.variants[1];
  faster.step.median_s = 13.0e-3;
  faster.predicted_gain = 0.08, faster.measured_gain = 0.117, faster.measured_gemm_gain = 0.05;
  faster.gain_interval = {.low = 0.110, .high = 0.121, .confidence = 0.961};
  faster.same_loss = {.verdict = SameLoss::Verdict::within_tolerance, .how = "2,031 target tokens, weights frozen"};
  faster.resolved.adjustments = {{.rule = "wave_free_batch",
                                  .what = "source and target rows",
                                  .from = 2048,
                                  .to = 2560,
                                  .why = "decoder.*.ffn.up forward: 4096 x 2048 in 256x128: 256 tiles, 1.94 waves; then 4096 x 2560 in "
                                         "128x160: 512 tiles, 3.88 waves; 9.0 % less time per real token",
                                  .cost_tokens = 1024,
                                  .cost_bytes = 12345678}};
  report.variants[2].same_as = 1;
  report.variants[2].measured_gain = 0.117, report.variants[2].measured_gemm_gain = 0.05;
  report.variants[2].gain_interval = faster.gain_interval;
  report.variants[3].measured_gain = -0.149, report.variants[3].measured_gemm_gain = -0.2;
  report.variants[3].gain_interval = {.low = -0.16, .high = -0.14, .confidence = 0.961};
  report.variants[4].refused = "transformer_big needs 160.2 GiB of GPU memory and 140.4 GiB are there; use --set batch.target_tokens=2048.";
  for (AblationVariant& variant : report.variants) {
    for (const GemmRole role : {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad}) {
      for (const char* layer : {"decoder.*.cross_attention.kv", "encoder.*.self_attention.qkv", "decoder.projection"}) {
        const GemmProblem problem =
            plain_gemm({.role = role, .out = 33708, .in = 1024, .tokens = 5120}, Precision::bf16, PitchPolicy::aligned);
        const GemmPlan plan = choose(problem, h200);
        variant.gemms.push_back({.layer = layer,
                                 .role = role,
                                 .count = 6,
                                 .problem = problem,
                                 .plan = plan,
                                 .predicted_s = 1e-3,
                                 .measured_s = 1.1e-3,
                                 .flops = problem.flops(),
                                 .library = &variant == &report.variants[3],
                                 .concerned = true});
      }
    }
  }
  return report;
}

void expect_readable(const Json& looks, std::size_t charts) {
  ASSERT_EQ(looks.size(), 2U) << looks;
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& look = looks[i];
    EXPECT_EQ(look["width"], i == 0 ? 1280 : 390);
    EXPECT_LE(look["scroll"], look["width"]) << "the page scrolls sideways";
    EXPECT_GT(look["texts"], 20) << "little was looked at";
    for (const char* fault : {"clipped", "outside", "elsewhere"}) EXPECT_TRUE(look[fault].empty()) << fault << " at " << look;
    EXPECT_EQ(look["charts"], charts);
    EXPECT_EQ(look["empty"], 0);
  }
}

TEST_F(AblationPage, ReadsOnAWideScreenAndOnAPhone) { expect_readable(looks(ablation_page(ablation_json(wide_report()))), 2); }

TEST_F(AblationPage, OfOneSettingTooAndOfManySteps) {
  AblationReport report = wide_report();
  report.variants.resize(1);
  report.steps = 40;
  report.variants[0].curve.losses.assign(40, 10.425123456789012);
  report.variants[0].curve.gradient_norms.assign(40, 1.2345678901234567e-7);
  expect_readable(looks(ablation_page(ablation_json(report))), 1);
}

// What the test would see.
TEST_F(AblationPage, FaultsAreSeen) {
  const auto faults = [&](const std::string& body) { return looks(html_text({.title = "page", .body = body})); };
  const Json wide = faults("<p style=\"width:1500px;overflow-wrap:normal\">far too wide</p>");
  EXPECT_GT(wide[0]["scroll"], 1280) << wide;
  const Json clipped = faults("<div style=\"width:60px;overflow:hidden;white-space:nowrap\">a label that nobody can read</div>");
  EXPECT_EQ(clipped[1]["clipped"].size(), 1U) << clipped;
  const Json empty = faults(html_bars({{.label = "no length", .value = "0"}}) + html_bars({{.label = "one", .value = "1", .length = 1.0}}));
  EXPECT_EQ(empty[0]["charts"], 2);
  EXPECT_EQ(empty[0]["empty"], 1);
  EXPECT_EQ(faults("<p style=\"text-align:center\">prose</p>")[0]["elsewhere"].size(), 1U);
}

// Without a browser: settings that launch the same share a line.
TEST(AblationPageText, EqualLaunchesAreOneLine) {
  const std::string page = ablation_page(ablation_json(wide_report()));
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = page.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("<tr><td data-label=\"GEMM\">decoder.<wbr>projection,<wbr> forward</td>"), 2U) << "tilewave's and the library's\n"
                                                                                                 << page;
  EXPECT_EQ(count("<details"), 1U) << "all have the same losses";
  EXPECT_EQ(count("<summary>every setting</summary>"), 1U);
  EXPECT_EQ(count("<div class=\"bar\">"), 3U + 3U + 1U) << "step times of three, and gains of three, one of them predicted";
  EXPECT_EQ(count("training loss (smoothed, with dropout)"), 2U + 2U);
  EXPECT_EQ(count("96 % interval of 1 round: +11.0 % to +12.1 %"), 2U) << page;
}

}  // namespace
}  // namespace tilewave
