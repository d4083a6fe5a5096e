// Runs under a limit on addresses (ulimit -v): what may start gets to its end, translations and resume included, and large tables take
// their size and little more.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "tests/app/process.h"
#include "tests/memory_folder.h"
#include "tests/sanitized.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

constexpr int kPairs = 100;

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "under the address sanitizer";
    std::string source, target;
    for (int i = 0; i < kPairs; ++i) {
      source += "the number " + std::to_string(1000 + 17 * i) + " and another\n";
      target += "die Zahl " + std::to_string(1000 + 17 * i) + " und noch eine\n";
    }
    write_text(folder_.path() / "source.txt", source);
    write_text(folder_.path() / "target.txt", target);
    for (const char* side : {"short_source.txt", "short_target.txt"}) write_text(folder_.path() / side, "short\n");
    write_text(folder_.path() / "recipe.toml", R"(
[model]
d_model = 96
d_ff = 96
heads = 2
encoder_layers = 1
decoder_layers = 6
vocabulary = 260
max_positions = 40
[data]
kind = "parallel"
tokenizer = "bytes"
source = "source.txt"
target = "target.txt"
validation_source = "short_source.txt"
validation_target = "short_target.txt"
[batch]
source_tokens = 64
target_tokens = 64
sequence = 40
[schedule]
warmup_steps = 1
[run]
steps = 2
validate_every = 0
checkpoint_every = 0
)");
  }

  // The exit code under a limit of so many MiB.
  int train(std::int64_t limit_mib, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"train", "recipe.toml", "--run", "run", "--device", "cpu", "--threads", "2"};
    words.insert(words.end(), more.begin(), more.end());
    Process process(folder_.path(), words, [&] {
      const rlim_t bytes = static_cast<rlim_t>(limit_mib) << 20;
      const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
      ::setrlimit(RLIMIT_AS, &limit);
    });
    const int code = process.wait();
    errors_ = process.errors();
    return code;
  }
  int train_anew(std::int64_t limit_mib, const std::vector<std::string>& more = {}) {
    fs::remove_all(folder_.path() / "run");
    return train(limit_mib, more);
  }

  // The least limit that something is done under, in MiB, of those above one that is too small and up to one that is enough.
  template <class Done>
  static std::int64_t least_limit(Done&& done, std::int64_t too_small = 32, std::int64_t enough = 288) {
    while (enough - too_small > 1) {
      const std::int64_t middle = (too_small + enough) / 2;
      (done(middle) ? enough : too_small) = middle;
    }
    return enough;
  }

  nlohmann::json summary() const { return nlohmann::json::parse(file_text(folder_.path() / "run/summary.json")); }

  MemoryFolder folder_;
  std::string errors_;
};

TEST_F(MemoryLimit, ARunThatStartsTranslatesItsTestPairsToo) {
  const std::int64_t least = least_limit([&](std::int64_t limit) {
    train_anew(limit);
    return fs::exists(folder_.path() / "run");  // made when all that may be refused is known
  });
  ASSERT_EQ(train_anew(least - 1), 1);
  EXPECT_NE(errors_.find(" to give; "), std::string::npos) << errors_;
  // A hundred sentences, 180 KiB of keys and values each.
  const std::vector<std::string> all = {"--set", "data.validation_source=source.txt", "--set", "data.validation_target=target.txt"};
  for (const std::int64_t more : {0, 4}) {
    ASSERT_EQ(train_anew(least + more, all), 0) << least << " MiB and " << more << "\n" << errors_;
    EXPECT_EQ(summary().at("test_pairs_translated"), kPairs);
    EXPECT_TRUE(summary().contains("exact_match"));
  }
  std::vector<std::string> longer = all;
  longer.insert(longer.end(), {"--resume", "--set", "run.steps=3"});
  ASSERT_EQ(train(least, longer), 0) << least << " MiB\n" << errors_;
  EXPECT_EQ(summary().at("test_pairs_translated"), kPairs);
  EXPECT_EQ(summary().at("steps"), 3);
}

// 2^16 positions of 96 columns are 24 MiB.
TEST_F(MemoryLimit, ATableIsBuiltInItsOwnMemory) {
  const auto starts_with = [&](const std::string& positions) {
    return [&, positions](std::int64_t limit) { return train_anew(limit, {"--set", "model.max_positions=" + positions}) == 0; };
  };
  const std::int64_t small = least_limit(starts_with("40")), large = least_limit(starts_with("65536"), small + 16, small + 48);
  EXPECT_GE(large - small, 23);
  EXPECT_LE(large - small, 24 + 8);
}

// Weights, gradients and two moments of 12 MiB each: no tensor is held twice while it is drawn, or read when the run is resumed.
TEST_F(MemoryLimit, WeightsAreDrawnAndReadInTheirOwnMemory) {
  const auto learned = [](const std::string& positions) {
    return std::vector<std::string>{"--set", "model.positions=learned", "--set", "model.max_positions=" + positions};
  };
  const auto starts_with = [&](const std::string& positions) {
    return [&, positions](std::int64_t limit) { return train_anew(limit, learned(positions)) == 0; };
  };
  const std::int64_t small = least_limit(starts_with("40")), large = least_limit(starts_with("32768"), small + 32, small + 64);
  EXPECT_LE(large - small, 4 * 12 + 8);
  ASSERT_EQ(train_anew(large, learned("32768")), 0) << errors_;
  std::vector<std::string> longer = learned("32768");
  longer.insert(longer.end(), {"--resume", "--set", "run.steps=3"});
  EXPECT_EQ(train(large, longer), 0) << large << " MiB\n" << errors_;
}

}  // namespace
}  // namespace tilewave
