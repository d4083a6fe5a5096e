// A run that does not fit is told so before anything is allocated, with a value that does.
#include "models/step/memory_check.h"

#include <regex>

#include "kernels/core/error.h"
#include "tests/kernels/support.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

constexpr const char* kLarge = "batch.target_tokens=120000";

TEST(MemoryCheck, AValueThatFitsIsNamed) {
  const ResolvedRecipe resolved = resolve(small_recipe({kLarge, "batch.source_tokens=60000"}));
  const DeviceInfo device = probe_cpu(1);
  const StepTrace trace = trace_step(resolved, device);
  EXPECT_NO_THROW(check_memory(resolved, trace, device, trace.bytes() + reserved_bytes(device.backend)));
  const std::int64_t room = trace.bytes() / 3;
  try {
    check_memory(resolved, trace, device, room + reserved_bytes(device.backend));
    FAIL() << "a step of three times the memory passed";
  } catch (const Error& error) {
    const std::string text = error.what();
    std::smatch match;
    ASSERT_TRUE(std::regex_search(text, match, std::regex("--set batch.target_tokens=([0-9]+) --set batch.source_tokens=([0-9]+) fits")))
        << text;
    const auto fits = [&](const std::string& target, const std::string& source) {
      const ResolvedRecipe smaller = resolve(small_recipe({"batch.target_tokens=" + target, "batch.source_tokens=" + source}));
      return trace_step(smaller, device).bytes() <= room;
    };
    EXPECT_TRUE(fits(match[1], match[2])) << text;
    EXPECT_FALSE(fits(std::to_string(std::stoll(match[1]) + 24), std::to_string(std::stoll(match[2]) + 12))) << text;
  }
}

// The short side keeps room for a whole sequence, however small the batch becomes.
TEST(MemoryCheck, AnUnevenBatchFitsToo) {
  const ResolvedRecipe resolved = resolve(small_recipe({kLarge, "batch.source_tokens=60"}));
  const DeviceInfo device = probe_cpu(1);
  const StepTrace trace = trace_step(resolved, device);
  testing_support::expect_error([&] { check_memory(resolved, trace, device, trace.bytes() / 40 + reserved_bytes(device.backend)); },
                                "--set batch.source_tokens=12 fits");
}

TEST(MemoryCheck, OneSequenceIsTried) {
  const ResolvedRecipe resolved = resolve(
      small_recipe({"model.max_positions=20000", "batch.sequence=12000", "batch.target_tokens=23000", "batch.source_tokens=12000"}));
  const DeviceInfo device = probe_cpu(1);
  const StepTrace trace = trace_step(resolved, device);
  testing_support::expect_error([&] { check_memory(resolved, trace, device, trace.bytes() * 9 / 10 + reserved_bytes(device.backend)); },
                                "--set batch.target_tokens=12000 --set batch.source_tokens=12000 fits");
  testing_support::expect_error([&] { check_memory(resolved, trace, device, trace.bytes() / 4 + reserved_bytes(device.backend)); },
                                "use a smaller batch.sequence, or a smaller model");
}

TEST(MemoryCheck, WhereNoBatchFitsTheModelIsNamed) {
  const ResolvedRecipe resolved = resolve(small_recipe({kLarge}));
  const DeviceInfo device = probe_cpu(1);
  const StepTrace trace = trace_step(resolved, device);
  testing_support::expect_error([&] { check_memory(resolved, trace, device, reserved_bytes(device.backend) + 1000); },
                                "use a smaller model");
}

}  // namespace
}  // namespace tilewave
