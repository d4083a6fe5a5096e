// What the command line says to a word that it does not know, or lacks: one sentence, exit code 2, nothing on standard output.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/app/process.h"

namespace tilewave {
namespace {

TEST(Usage, NamesTheWordAndTheNearestOne) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  const struct {
    std::vector<std::string> words;
    std::string sentence;
  } cases[] = {
      {{}, "tilewave needs a command; tilewave --help lists those it has."},
      {{"trainn"}, "tilewave has no command \"trainn\" (did you mean train?); tilewave --help lists those it has."},
      {{"trainn", "a.toml", "--device", "cpu"}, "tilewave has no command \"trainn\" (did you mean train?); "},
      {{"--versoin"}, "tilewave has no option --versoin (did you mean --version?); tilewave --help lists those it has."},
      {{"bench"}, "tilewave bench needs a command; tilewave bench --help lists those it has."},
      {{"bench", "gem"}, "tilewave bench has no command \"gem\" (did you mean gemm?); "},
      {{"bench", "gemm", "--round", "3"}, "tilewave bench gemm has no option --round (did you mean --rounds?); "},
      {{"train"}, "tilewave train: recipe is required; tilewave train --help says what it takes."},
      {{"train", "--devise=cpu"}, "tilewave train has no option --devise (did you mean --device?); "},
      {{"train", "a.toml", "b.toml", "c.toml"}, "tilewave train does not expect \"b.toml\"; "},
      {{"generate", "run", "--tokens", "-1"}, "tilewave generate: --tokens: Value -1 not in range 0 to 1073741824; "},
      {{"translate", "run", "--beams"}, "tilewave translate: --beams: "},
      {{"translate", "run", "--beams", "010"}, "tilewave translate: --beams: 010 is no whole number in decimal digits, "},
      {{"plan", "a.toml", "--sm", "0x10", "--tile", "8x8"}, "tilewave plan: --sm: 0x10 is no whole number in decimal digits, "},
      {{"check", "a.toml", "--seed", "18446744073709551616"}, "tilewave check: --seed: 18446744073709551616 is no whole number "},
      {{"generate", "run", "--seed", "-1"}, "tilewave generate: --seed: -1 is no whole number in decimal digits, from 0 to 2^64 - 1; "},
      {{"train", "a.toml", "--run", ""}, "tilewave train: --run: its value is empty; "},
      {{"bench", "attention", "--heads", "3"}, "tilewave bench attention: --heads requires --sequences; "},
  };
  for (const auto& [words, expected] : cases) {
    Process process(folder.path(), words);
    EXPECT_EQ(process.wait(), 2);
    const std::string errors = process.errors();
    EXPECT_TRUE(errors.starts_with("tilewave: " + expected)) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_EQ(process.output(), "");
  }
}

TEST(Usage, HelpShowsDefaults) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  const struct {
    std::vector<std::string> words;
    std::vector<std::string> parts;
  } cases[] = {{{"translate"}, {"--beams INT:INT in [1 - 1024]=1", "--length-penalty FLOAT=0.6", "--device TEXT=auto", "=0\n"}},
               {{"generate"}, {"[0 - 1073741824]=256", "--temperature FLOAT=1", "--seed UINT:NONNEGATIVE=1"}},
               {{"check"}, {"--seed UINT:NONNEGATIVE=1"}}};
  for (auto [words, parts] : cases) {
    words.push_back("--help");
    Process process(folder.path(), words);
    EXPECT_EQ(process.wait(), 0);
    for (const std::string& part : parts) EXPECT_NE(process.output().find(part), std::string::npos) << part << "\n" << process.output();
  }
}

}  // namespace
}  // namespace tilewave
