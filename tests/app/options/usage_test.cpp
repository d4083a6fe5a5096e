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
      {{"train", "a.toml", "--run", ""}, "tilewave train: --run: its value is empty, perhaps a variable that is not set; give one, "},
      {{"train", "a.toml", "--run=", "b"}, "tilewave train: --run: its value is empty, "},
      {{"train", "a.toml", "--run", "--force"}, "tilewave train: --run: its value is missing: --force, which follows, is an option; "},
      {{"train", "a.toml", "--run", "a", "--run=b"}, "tilewave train: --run is given twice and holds one value; "},
      {{"train", "a.toml", "--dry-run=-3"}, "tilewave train: --dry-run takes no value; leave \"=-3\" out."},
      {{"train", "", "--dry-run"}, "tilewave train: a word of its command line is empty, "},
      {{"train", "--", ""}, "tilewave train: a word of its command line is empty, "},
      {{""}, "tilewave: a word of its command line is empty, "},
      {{"check", "a.toml", "--plant", ""}, "tilewave check: --plant: its value is empty, "},
      {{"plan", "a.toml", "--set", "model.heads=2", "b.toml"}, "tilewave plan does not expect \"b.toml\"; "},
      {{"plan", "--set", ""}, "tilewave plan: --set: its value is empty, "},
      {{"generate", "run", "--temperature", "warm"}, "tilewave generate: --temperature: warm is no number in decimal digits, "},
      {{"generate", "run", "--temperature", "1e400"}, "tilewave generate: --temperature: 1e400 is beyond what a number can be here, "},
      {{"generate", "run", "--temperature", "nan"}, "tilewave generate: --temperature: nan is no number in decimal digits, "},
      {{"generate", "run", "--temperature", "0x10"}, "tilewave generate: --temperature: 0x10 is no number in decimal digits, "},
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

// Over all commands and options that there are, as --help lists them.
TEST(Usage, NoOptionOfAnyCommandTakesAnEmptyValue) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  const auto refused = [&](const CommandPath& path, const std::vector<std::string>& behind, const std::string& part) {
    std::vector<std::string> words = path;
    words.insert(words.end(), behind.begin(), behind.end());
    Process process(folder.path(), words);
    const int code = process.wait();
    EXPECT_EQ(code, 2) << testing::PrintToString(words) << process.errors();
    EXPECT_NE(process.errors().find(part), std::string::npos) << testing::PrintToString(words) << process.errors();
    EXPECT_EQ(process.output(), "");
  };
  std::size_t values = 0, flags = 0;
  for (const CommandPath& path : every_command()) {
    for (const auto& [option, takes_value] : help_of(path).options) {
      if (takes_value) {
        refused(path, {option, ""}, ": " + option + ": its value is empty");
        refused(path, {option + "="}, ": " + option + ": its value is empty");
        ++values;
      } else {
        refused(path, {option + "=false"}, option + " takes no value; leave \"=false\" out.");
        ++flags;
      }
    }
    for (const std::string& ignored : help_of(path).positionals) {
      static_cast<void>(ignored);
      refused(path, {""}, "a word of its command line is empty");
    }
  }
  EXPECT_GE(values, 60u);
  EXPECT_GE(flags, 20u);
}

TEST(Usage, AnOptionBeforeWhatItIsNotOf) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  write_text(folder.path() / "tiny.toml", "[model]\nd_model = 16\nd_ff = 32\n");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"plan", "--set", "model.heads=2", "tiny.toml", "--for", "h200"},
                                             {"plan", "--set", "model.heads=2", "--set", "model.d_ff=64", "--for", "h200", "tiny.toml"},
                                             {"plan", "--for", "h200", "--switch", "model.heads=2,4", "tiny.toml"},
                                             {"train", "--dry-run", "--set=run.steps=1", "tiny.toml"}}) {
    Process process(folder.path(), words);
    EXPECT_EQ(process.wait(), 0) << process.errors();
  }
}

// What a person reads is in words: no names of C++ types, nor of the library that reads the command line.
TEST(Usage, HelpIsInWords) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  ASSERT_GE(every_command().size(), 16u);
  for (const CommandPath& path : every_command()) {
    for (const char* word : {" INT", "UINT", "FLOAT", "NONNEGATIVE", "TEXT:", " in [", "REQUIRED", "Excludes:", "Needs:"}) {
      const std::string& text = help_of(path).text;
      const std::size_t at = text.find(word);
      const bool there = at != std::string::npos && text.compare(at, 8, " INTEGER") != 0;
      EXPECT_FALSE(there) << word << "\n" << text;
    }
  }
}

// Whatever goes wrong, in every command: Process looks at each sentence.
TEST(Usage, NoCommandAdvisesAnOptionThatItLacks) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  EXPECT_EQ(advised_but_lacking({"inspect", "x"}, "choose another --run, or --json."), "--run ");
  EXPECT_EQ(advised_but_lacking({"inspect", "x"}, "tilewave train --run DIR makes one; see --help."), "");
  EXPECT_EQ(advised_but_lacking({"bench", "op", "--precision=bf16"}, "use --set a.b=c, or --precision fp32."), "--set ");
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "folder");
  write_text(folder.path() / "folder" / "notes.txt", "mine");
  std::filesystem::create_directory(folder.path() / "empty");
  write_text(folder.path() / "run" / "recipe.toml", "[model]\nactivation = \"gelu\"\n");
  write_text(folder.path() / "waves" / "recipe.toml", "[guidelines]\nwave_free_batch = \"up\"\n");
  write_text(folder.path() / "bad.toml", "[run]\nprecision = \"bf16\"\n[gemm]\nengine = \"cublas\"\n");
  write_text(folder.path() / "files.toml", "[data]\nkind = \"parallel\"\n");
  write_text(folder.path() / "words.toml", "[run]\nout_dir = \"x\"\n");
  write_text(folder.path() / "huge.toml", "[batch]\nsource_tokens = 16777216\ntarget_tokens = 16777216\n[model]\nd_ff = 1048576\n");
  for (const char* name : {"a.safetensors", "a.bin", "a.model", "a.json"}) write_text(folder.path() / name, "nonsense, and more of it");
  std::vector<std::vector<std::string>> lines;
  const std::string long_name(5000, 'n');
  for (const char* command : {"inspect", "generate", "translate", "guidelines"}) {
    for (const std::string& path :
         {std::string("folder"), std::string("empty"), std::string("run"), std::string("a.safetensors"), std::string("a.bin"),
          std::string("a.model"), std::string("a.json"), std::string("none"), std::string("bad.toml"), long_name}) {
      lines.push_back({command, path});
    }
  }
  lines.push_back({"generate", "waves"});
  for (const std::vector<std::string>& command :
       std::vector<CommandPath>{{"train"}, {"check"}, {"step"}, {"plan"}, {"ablate"}, {"bench", "step"}}) {
    for (const std::string& recipe : {std::string("words.toml"), std::string("none.toml"), std::string("folder"), long_name}) {
      lines.push_back(command);
      lines.back().insert(lines.back().end(), {recipe, "--device", "cpu"});
    }
  }
  for (const std::string& recipe : {std::string("bad.toml"), std::string("files.toml")}) {
    for (const char* command : {"train", "ablate"}) lines.push_back({command, recipe, "--device", "cpu"});
    lines.push_back({"bench", "step", recipe, "--device", "cpu"});
  }
  lines.push_back({"check", "bad.toml", "--layer", "none"});
  for (const char* precision : {"bf16", "fp16", "fp8"}) {
    lines.push_back({"bench", "op", "add", "--precision", precision, "--device", "cpu"});
    lines.push_back({"bench", "attention", "--precision", precision, "--device", "cpu"});
  }
  lines.push_back({"bench", "calibrate", "--device", "cpu"});
  lines.push_back({"bench", "gemm", "--suite", "transformer", "--device", "cpu"});
  for (const std::vector<std::string>& wrong : std::vector<CommandPath>{{"wave_quantisation"},
                                                                        {"convolution_layout"},
                                                                        {"footprint", "--for", "none"},
                                                                        {"footprint", "--for", "v100", "--precision", "bf16"},
                                                                        {"footprint", "--for", "v100", "--device", "cpu"},
                                                                        {"--gemm", "64x64x64"},
                                                                        {"--gemm", "64x9:8:1x64"},
                                                                        {"--layer", "64<-64@1:2:1", "--gemm", "1:2:1x64x64"},
                                                                        {"--phase", "wgrad"},
                                                                        {"footprint", "--for", "h200", "--out", "a.json"},
                                                                        {"--gemm", "64x8:16:8x64", "--choice", "none", "--for", "h200"},
                                                                        {"summary", "--for", "h200"},
                                                                        {"summary", "--for", "h200", "--recipe", "none.toml"}}) {
    lines.push_back({"figures"});
    lines.back().insert(lines.back().end(), wrong.begin(), wrong.end());
  }
  lines.push_back({"plan", "--layer", "64<-64@64", "--draw", "a.svg"});
  lines.push_back({"plan", "--gemm", "65536x65536x64", "--tile", "64x64", "--for", "h200", "--draw", "a.svg"});
  lines.push_back({"plan", "--gemm", "64x64x64", "--for", "h200", "--draw", "none/a.svg"});
  lines.push_back({"bench", "op", "none"});
  lines.push_back({"plan", "--gemm", "1x2"});
  lines.push_back({"plan", "--gemm", "64x64x64", "--tile", "8x8", "--device", "cpu"});
  lines.push_back({"devices", "none"});
  lines.push_back({"train", "huge.toml", "--device", "cpu"});
  for (const std::vector<std::string>& words : lines) {
    Process process(folder.path(), words);
    const int code = process.wait();
    EXPECT_TRUE(code == 1 || code == 2) << testing::PrintToString(words) << " ends with " << code << "\n" << process.errors();
    const std::string errors = process.errors();
    for (const char* name : {"std::", "filesystem error", "json.exception", "nlohmann", "toml::", "basic_string", "CLI::", "bad_alloc",
                             "Error while parsing", "what()"}) {
      EXPECT_EQ(errors.find(name), std::string::npos) << testing::PrintToString(words) << errors;
    }
  }
}

TEST(Usage, HelpShowsDefaults) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  const struct {
    std::vector<std::string> words;
    std::vector<std::string> parts;
  } cases[] = {{{"translate"}, {"--beams INTEGER [1 to 1024]=1", "--length-penalty NUMBER=0.6", "--device TEXT=auto", "=0\n"}},
               {{"generate"}, {"[0 to 1073741824]=256", "--temperature NUMBER=1", "--seed INTEGER [0 or more]=1"}},
               {{"train"}, {"--profile FIRST:COUNT ", "--for NAME "}},
               {{"check"}, {"--seed INTEGER [0 or more]=1", "recipe TEXT (required)"}},
               {{"plan"}, {"--blocks-per-sm INTEGER [1 to 1024] (goes with --tile)", "--pitch {packed,aligned}=packed (not with recipe)"}}};
  for (auto [words, parts] : cases) {
    words.push_back("--help");
    Process process(folder.path(), words);
    EXPECT_EQ(process.wait(), 0);
    for (const std::string& part : parts) EXPECT_NE(process.output().find(part), std::string::npos) << part << "\n" << process.output();
  }
}

}  // namespace
}  // namespace tilewave
