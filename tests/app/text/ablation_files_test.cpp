// What an ablation's files say of a GEMM is what `plan` says of it: blocks that share a tile's K count in its waves.
#include "app/text/ablation_files.h"

#include <gtest/gtest.h>

#include "kernels/core/device_profiles.h"
#include "models/planning/plan.h"

namespace tilewave {
namespace {

AblationReport report_of(const GemmPlan& plan, const GemmProblem& problem, const DeviceInfo& device) {
  AblationReport report{.recipe = "case_study", .device = device, .changes = {}, .steps = 0, .variants = std::vector<AblationVariant>(1)};
  AblationVariant& variant = report.variants.front();
  variant.setting.name = "none";
  variant.step = {.name = "none", .median_s = 1e-3, .rounds_s = {1e-3}};
  variant.gemms = {
      {.layer = "decoder.*.ffn.down", .count = 6, .problem = problem, .plan = plan, .predicted_s = plan.predicted_s, .measured_s = 1e-6}};
  return report;
}

TEST(AblationFiles, SplitGemmsFillTheWavesThatPlanSays) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const GemmProblem problem = plain_gemm({.out = 1024, .in = 4096, .tokens = 2048}, Precision::bf16, PitchPolicy::aligned);
  const GemmPlan plan = choose(problem, h200, {.forced = "split_k/cluster/256x128"});
  ASSERT_EQ(plan.split, 2);
  const auto json = ablation_json(report_of(plan, problem, h200));
  const auto& gemm = json["variants"][0]["gemms"][0];
  EXPECT_EQ(gemm["split"], 2);
  EXPECT_DOUBLE_EQ(gemm["waves"], 128.0 / 132.0) << "64 tiles, two blocks each";
  EXPECT_DOUBLE_EQ(gemm["tail_fraction"], 128.0 / 132.0);
  EXPECT_DOUBLE_EQ(gemm["waves"], waves_of(plan).waves);
  const std::string page = ablation_page(json);
  for (const char* cell :
       {">tail</th>", ">split_<wbr>k/<wbr>256x128/<wbr>cluster/<wbr>k2</td>", ">0.97</td>", ">97.0 %</td>", ">1.000 us</td>"}) {
    EXPECT_NE(page.find(cell), std::string::npos) << cell << "\n" << page;
  }
}

TEST(AblationFiles, ARecipesNameNeedNotBeUtf8) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const GemmProblem problem = plain_gemm({.out = 1024, .in = 4096, .tokens = 2048}, Precision::bf16, PitchPolicy::aligned);
  AblationReport report = report_of(choose(problem, h200), problem, h200);
  report.recipe = "r\xe9sum\xe9";
  EXPECT_NE(text_of(ablation_json(report)).find("r\xef\xbf\xbdsum"), std::string::npos);
}

TEST(AblationFiles, ALibrarysTilesAreNotKnown) {
  const DeviceInfo& h200 = device_profile("h200").device;
  const GemmProblem problem = plain_gemm({.out = 1024, .in = 4096, .tokens = 2048}, Precision::bf16, PitchPolicy::aligned);
  AblationReport report = report_of(choose(problem, h200), problem, h200);
  report.variants[0].gemms[0].library = true;
  const auto json = ablation_json(report);
  for (const char* field : {"tile", "split", "useful_fraction", "waves", "tail_fraction", "predicted_us"}) {
    EXPECT_TRUE(json["variants"][0]["gemms"][0][field].is_null()) << field;
  }
  const std::string page = ablation_page(json);
  for (const char* empty : {"useful", "waves", "tail", "predicted time"}) {
    EXPECT_NE(page.find(std::string("data-label=\"") + empty + "\"></td>"), std::string::npos) << empty << page;
  }
}

}  // namespace
}  // namespace tilewave
