// The table of units and multiples, beside what plans compute with and what makers print.
#include "kernels/core/unit_rates.h"

#include <gtest/gtest.h>
#include <map>

#include "kernels/core/device_profiles.h"

namespace tilewave {
namespace {

TEST(UnitRates, AreWhatPlansComputeWith) {
  for (const DeviceProfile& profile : device_profiles()) {
    const UnitRates units = unit_rates(profile.device);
    const MathRates rates = math_rates(profile.device);
    EXPECT_EQ(units.fp64, rates.fp64) << profile.key;
    EXPECT_EQ(units.fp32, rates.fp32) << profile.key;
    EXPECT_EQ(units.tensor_tf32, rates.tensor_tf32) << profile.key;
    EXPECT_EQ(units.tensor_fp16, rates.tensor_f16) << profile.key;
    EXPECT_EQ(units.tensor_bf16, rates.tensor_bf16) << profile.key;
    EXPECT_FALSE(units.source.empty()) << profile.key;
    // Narrower operands are never slower, but FP64's, which are no narrower ones' multiple.
    EXPECT_GE(units.tensor_fp8 == 0 ? units.tensor_fp16 : units.tensor_fp8, units.tensor_fp16) << profile.key;
  }
}

// The printed peaks of data centre GPUs: FP16's, over rates, SMs and a clock that is no more than the highest.
TEST(UnitRates, MultiplyToThePrintedPeaks) {
  for (const char* key : {"v100", "t4", "a100", "h100-sxm", "b200"}) {
    const DeviceProfile& profile = device_profile(key);
    const double hz =
        profile.f16_flops_per_s / (2.0 * unit_rates(profile.device).tensor_fp16 * static_cast<double>(profile.device.sm_count));
    EXPECT_LE(hz, 1.005 * profile.device.clock_hz) << key;
    EXPECT_GE(hz, 0.9 * profile.device.clock_hz) << key;
  }
}

TEST(UnitRates, MultiplesAreTheGuidesTable) {
  const auto of = [](const char* key) {
    std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> multiples;
    for (const AlignedMultiple& one : aligned_multiples(device_profile(key).device)) multiples[one.type] = {one.least, one.best};
    return multiples;
  };
  using Multiples = std::map<std::string_view, std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(of("a100"), (Multiples{{"INT8", {16, 128}}, {"FP16", {8, 64}}, {"BF16", {8, 64}}, {"TF32", {4, 32}}, {"FP64", {2, 16}}}));
  EXPECT_EQ(of("v100"), (Multiples{{"FP16", {8, 8}}}));
  EXPECT_EQ(of("t4"), (Multiples{{"INT8", {16, 16}}, {"FP16", {8, 8}}}));
  EXPECT_EQ(of("h200").at("FP8"), (std::pair<std::int64_t, std::int64_t>{16, 128}));
  EXPECT_TRUE(aligned_multiples(DeviceInfo{}).empty());
}

}  // namespace
}  // namespace tilewave
