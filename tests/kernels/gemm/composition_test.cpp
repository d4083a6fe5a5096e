// Names of compositions, what forces them, and what they were called before.
#include "kernels/gemm/composition.h"

#include <gtest/gtest.h>
#include <set>

#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/forced_gemm.h"

namespace tilewave {
namespace {

TEST(GemmComposition, NamesSayWhatIsNotUsual) {
  EXPECT_EQ(name_of(GemmComposition{.kernel = "persistent"}), "persistent");
  EXPECT_EQ(name_of(GemmComposition{.kernel = "persistent", .epilogue = EpilogueTiming::deferred}), "persistent/deferred");
  EXPECT_EQ(name_of(GemmComposition{.kernel = "persistent", .schedule = GemmSchedule::ping_pong, .swap_ab = true}),
            "persistent/ping_pong/swap_ab");
  EXPECT_EQ(name_of(GemmComposition{.kernel = "stream_k", .schedule = GemmSchedule::stream_k}), "stream_k");
}

TEST(GemmComposition, EachBackEndHasOneKernelOfAName) {
  std::set<std::pair<Backend, std::string>> names;
  for (const GemmKernel* kernel : gemm_catalog()) {
    EXPECT_TRUE(names.emplace(kernel->backend, name_of(*kernel)).second) << name_of(*kernel);
    EXPECT_EQ(find_gemm_kernel(kernel->backend, kernel->composition), kernel) << name_of(*kernel);
  }
}

TEST(GemmComposition, FormerNamesFindTheirKernels) {
  for (const char* former :
       {"persistent_cooperative", "persistent_late_store", "persistent_late_derivative", "persistent_ping_pong", "transposed_ping_pong",
        "transposed_tiles", "sliced_k", "paired_k", "workspace_split_k", "cluster_split_k", "persistent_residues", "realigned_fragments"}) {
    const GemmKernel* const kernel = find_gemm_kernel(Backend::cuda, former);
    ASSERT_NE(kernel, nullptr) << former;
    EXPECT_EQ(name_of(*kernel), present_name(former));
    EXPECT_NE(name_of(*kernel), former);
  }
  EXPECT_EQ(present_name("repacked"), "repacked");
}

TEST(ForcedGemm, WordsStandInAnyOrder) {
  for (const char* text :
       {"persistent/128x192/ping_pong/swap_ab", "persistent/ping_pong/swap_ab/128x192", "persistent/swap_ab/128x192/ping_pong",
        "128x192/persistent/ping_pong/swap_ab", "transposed_ping_pong/128x192"}) {
    const ForcedGemm forced = parse_forced_gemm(text);
    EXPECT_EQ(forced.kernel, "persistent/ping_pong/swap_ab") << text;
    EXPECT_EQ(forced.tile, (Tile{.m = 128, .n = 192})) << text;
    EXPECT_EQ(forced.split, 0) << text;
  }
  EXPECT_EQ(parse_forced_gemm("split_k/256x128/k4").split, 4);
  EXPECT_EQ(parse_forced_gemm("split_k").tile, std::nullopt);
}

// What neither a tile nor parts nor a kernel's word is stays in the name, which nobody has.
TEST(ForcedGemm, OtherWordsBelongToNoKernel) {
  for (const char* text : {"persistent/ping_pong/ping_pong", "persistent/", "/persistent", "persistent/256x128/256x128", "persistent/k4/k4",
                           "persistent/k0", "persistent/k", "persistent/k-1", "persistent/k99999999999", "persistent/256x", ""}) {
    EXPECT_EQ(find_gemm_kernel(parse_forced_gemm(text).kernel), nullptr) << text;
  }
}

// A plan's name, as tables print it, forces that plan.
TEST(ForcedGemm, APlansNameForcesIt) {
  const DeviceInfo& h200 = device_profile("h200").device;
  std::set<std::string> forced;
  for (const std::int64_t k : {1024, 65536}) {
    const GemmProblem problem = {.role = GemmRole::wgrad,
                                 .m = 768,
                                 .n = 768,
                                 .k = k,
                                 .a_major = Major::m,
                                 .b_major = Major::n,
                                 .operand_dtype = DType::bf16,
                                 .output_dtype = DType::bf16,
                                 .epilogue = {},
                                 .a_pitch = 768,
                                 .b_pitch = 768,
                                 .d_pitch = 768,
                                 .a_alignment = 128,
                                 .b_alignment = 128,
                                 .d_alignment = 128};
    for (const GemmPlan& plan : gemm_candidates(problem, h200)) {
      const GemmPlan again = choose(problem, h200, {.forced = name_of(plan)});
      EXPECT_EQ(again, plan) << name_of(plan);
      EXPECT_EQ(name_of(again), name_of(plan));
      forced.insert(name_of(plan.composition));
    }
  }
  for (const char* name : {"persistent", "persistent/deferred", "one_wave/sliced_k", "split_k", "stream_k"}) {
    EXPECT_TRUE(forced.contains(name)) << name;
  }
}

}  // namespace
}  // namespace tilewave
