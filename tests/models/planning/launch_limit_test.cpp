// What bounds a launch: each limit by a GEMM that has it, and what holds of all of them on every profile.
#include "models/planning/launch_limit.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

#include "kernels/gemm/guide_tiles.h"
#include "tests/models/planning/problems.h"

namespace tilewave {
namespace {

std::string_view limit_on(std::string_view key, const GemmProblem& problem, const GemmChoice& choice = {}) {
  return name_of(limit_of(problem, choose(problem, device(key), choice), device(key)));
}

TEST(LaunchLimit, NamesWhatMakesTheTime) {
  for (const std::string_view key : {"v100", "a100", "h200", "b200"}) {
    EXPECT_EQ(limit_on(key, gemm(8192, 8192, 8192)), "math") << key;
    EXPECT_EQ(limit_on(key, gemm(8192, 128, 8192)), "memory") << key << ": the guide's, memory-limited by a little on a V100";
    EXPECT_EQ(limit_on(key, gemm(8192, 1, 8192)), "memory") << key << ": a product with a vector";
    EXPECT_EQ(limit_on(key, gemm(128, 128, 8192)), "latency") << key << ": few blocks, and long ones";
    const GemmChoice strict = {.alignment_policy = AlignmentPolicy::strict};
    EXPECT_EQ(limit_on(key, gemm(4100, 4096, 4096), strict), "CUDA cores") << key;
  }
  EXPECT_EQ(limit_on("h200", gemm(64, 64, 64)), "launch");
  EXPECT_EQ(limit_on("v100", gemm(64, 64, 64)), "launch");
  EXPECT_EQ(limit_on("v100", gemm(4096, 4096, 1021)), "alignment");
  EXPECT_EQ(limit_on("v100",
                     plain_gemm({.role = GemmRole::wgrad, .out = 4096, .in = 1024, .tokens = 4095}, Precision::fp16, PitchPolicy::packed)),
            "alignment")
      << "K alone";
  EXPECT_EQ(limit_on("a100", gemm(4096, 4095, 1021)), "alignment");
  EXPECT_EQ(limit_on("h200", gemm(4096, 4096, 1021)), "math") << "aligned rows are made first, at little cost";
  EXPECT_EQ(limit_on("h200", gemm(512, 512, 512), {.forced = "naive"}), "latency");
  EXPECT_EQ(limit_on("h200", gemm(8192, 8192, 8192, Precision::fp32)), "math") << "fp32 has no faster units";

  // In tiles of one's own.
  const DeviceInfo& v100 = device("v100");
  const auto in_tile = [&](const GemmProblem& problem, Tile tile) {
    return name_of(limit_of(problem, plan_guide_tile(problem, tile, v100, 1), v100));
  };
  EXPECT_EQ(in_tile(gemm(20736, 128, 8192), {.m = 256, .n = 128}), "waves") << "81 blocks on 80 SMs";
  EXPECT_EQ(in_tile(gemm(40960, 129, 8192), {.m = 256, .n = 256}), "tiles");
  EXPECT_EQ(in_tile(gemm(5120, 128, 8192), {.m = 256, .n = 128}), "latency") << "60 of 80 SMs have no block";

  const DeviceInfo cpu = probe_cpu(1);
  const GemmProblem problem = gemm(512, 512, 512, Precision::fp32);
  EXPECT_EQ(name_of(limit_of(problem, choose(problem, cpu), cpu)), "") << "a CPU's peak and bandwidth are not known";
  const GemmPlan library = choose(gemm(512, 512, 512), device("h200"), {.forced = "cublas"});
  EXPECT_EQ(limit_of(gemm(512, 512, 512), library, device("h200")), Limit::unknown) << "nothing is predicted of a library";
}

// No word beside a time that it does not make: math and memory take about a third of it or more, and the rest has its reason.
TEST(LaunchLimit, HoldsOfRandomGemmsOnEveryProfile) {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t least, std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(least, most)(random); };
  std::map<Limit, int> seen;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t largest = std::int64_t{1} << draw(4, 14);
    for (const DeviceProfile& profile : device_profiles()) {
      const LayerGemm layer = {
          .role = static_cast<GemmRole>(draw(0, 2)), .out = draw(1, largest), .in = draw(1, largest), .tokens = draw(1, largest)};
      const GemmProblem problem = plain_gemm(layer, Precision::fp16, draw(0, 1) == 0 ? PitchPolicy::packed : PitchPolicy::aligned);
      const GemmPlan plan =
          choose(problem, profile.device, {.alignment_policy = draw(0, 3) == 0 ? AlignmentPolicy::strict : AlignmentPolicy::any});
      const LaunchTerms terms = launch_terms(problem, plan, profile.device);
      const Limit limit = limit_of(terms);
      ++seen[limit];
      SCOPED_TRACE(
          concat(profile.key, " ", problem.m, " ", problem.n, " ", problem.k, " ", name_of(plan.composition), " ", name_of(limit)));
      for (const double factor : {terms.cuda_cores, terms.alignment, terms.tiles, terms.waves, terms.idle_sms}) EXPECT_GE(factor, 1.0);
      EXPECT_NE(limit, Limit::unknown);
      EXPECT_LE(std::max(terms.memory_s, terms.math_s), terms.predicted_s);
      if (limit == Limit::memory) {
        EXPECT_LE(terms.predicted_s, 3.0 * terms.memory_s);
      }
      if (limit == Limit::math) {
        EXPECT_LE(terms.predicted_s, 4.0 * terms.math_s);
      }
      if (limit == Limit::launch) {
        EXPECT_LE(terms.predicted_s, 3.0 * terms.launch_s);
      }
      if (limit == Limit::cuda_cores) {
        EXPECT_NE(name_of(plan.composition).find("guide_cuda_cores") == std::string_view::npos,
                  name_of(plan.composition).starts_with("guide_"));
      }
    }
  }
  for (const Limit limit : {Limit::math, Limit::memory, Limit::latency, Limit::launch, Limit::cuda_cores, Limit::alignment, Limit::tiles}) {
    EXPECT_GT(seen[limit], 0) << name_of(limit);
  }
}

}  // namespace
}  // namespace tilewave
