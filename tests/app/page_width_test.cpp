// Whatever a command prints keeps to its page: 100 columns in a file or a pipe and on a wide terminal, 80 on one of 80, and with --wide all
// there is. Commands are asked of the program itself: a new one needs words here.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <regex>
#include <sstream>

#include "app/text/page.h"
#include "tests/app/process.h"
#include "tests/app/terminal.h"
#include "tests/repository_root.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// A command line, and how much of it is a table.
struct Case {
  Arguments words;
  bool narrows = false;  // at 80 columns something is left out, which --wide adds
};

std::string recipe(const std::string& name) { return (root() / "recipes" / name).string(); }
std::string fixture(const std::string& name) { return (root() / "tests/fixtures/step/decoder_only" / name).string(); }

Arguments with(Arguments words, const Arguments& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string name_of(const CommandPath& path) {
  std::string name;
  for (const std::string& word : path) name += (name.empty() ? "" : " ") + word;
  return name;
}

// Each command in toy sizes, as many ways as it has tables.
std::map<std::string, std::vector<Case>> cases() {
  const Arguments on_a_cpu = {"--device", "cpu", "--threads", "1"};
  const Arguments quick = {"--device", "cpu", "--threads", "1", "--rounds", "1"};
  const Arguments switches = {"--switch", "wave_free_batch=off,up",    "--switch", "batch.source_tokens+batch.target_tokens=50,60",
                              "--set",    "guidelines.wave_tile=64x8", "--set",    "guidelines.wave_limit=0.5"};
  const Arguments too_large = {
      "--switch", "batch.source_tokens+batch.target_tokens=50,16777216", "--set", "model.d_ff=8192", "--set", "run.precision=fp64"};
  const Arguments ablate = with({"ablate", "recipe.toml", "--steps", "2", "--out", "results"}, quick);
  const Arguments gemm = with({"bench", "gemm", "--layer", "64<-96@40", "--block-ms", "1"}, quick);
  return {
      {"train",
       {{with({"train", "recipe.toml", "--set", "run.steps=2"}, on_a_cpu)},
        {with({"train", recipe("tiny.toml"), "--dry-run"}, on_a_cpu), true},
        {{"train", recipe("transformer_big.toml"), "--dry-run", "--for", "h200"}, true}}},
      {"check", {{with({"check", recipe("tiny.toml"), "--layer", "cross_attention"}, on_a_cpu), true}}},
      {"step",
       {{with({"step", fixture("recipe.toml"), "--batch", fixture("batch.safetensors"), "--out", "s.safetensors", "--update"}, on_a_cpu)}}},
      {"inspect", {{{"inspect", fixture("weights.safetensors")}, true}, {{"inspect", fixture("batch.safetensors")}, false}}},
      {"plan",
       {{{"plan", recipe("transformer_big.toml"), "--for", "h200"}, true},
        {{"plan", recipe("transformer_big.toml"), "--for", "v100", "--set", "run.precision=fp16", "--set",
          "guidelines.wave_free_batch=nearest"},
         true},
        {{"plan", recipe("ablate_waves.toml"), "--for", "h200"}, true},
        {with({"plan", recipe("tiny.toml")}, on_a_cpu), true},
        {{"plan", "--layer", "4096<-1024@2560", "--for", "h200", "--sm", "66"}, true},
        {{"plan", "--gemm", "8192x128x8192", "--for", "v100", "--tile", "256x128"}, true},
        {{"plan", "--op", "layer_norm", "65536x1024", "--for", "h200"}, false},
        {{"plan", "--convolution", "256x56x56x64->128,3x3,pad=same", "--for", "h200"}, true},
        {{"plan", recipe("tiny.toml"), "--for", "h200", "--steps", "1000", "--price", "2.5"}, true}}},
      {"ablate", {{with(ablate, switches), true}, {with(ablate, too_large), true}}},
      {"bench gemm",
       {{gemm, true}, {with(gemm, {"--ladder", "--form", "forward"}), false}, {with(gemm, {"--form", "dgrad_gelu_bias"}), true}}},
      {"bench step", {{with({"bench", "step", recipe("tiny.toml")}, quick), false}}},
      {"bench op", {{with({"bench", "op", "softmax", "adamw", "--rows", "64", "--cols", "48"}, quick), false}}},
      {"bench attention",
       {{with({"bench", "attention", "--sequences", "3", "--heads", "2", "--sequence", "50", "--head-size", "8"}, quick), true}}},
      {"figures",
       {{with({"figures"}, on_a_cpu), true},
        {{"figures", "wave_quantization", "intensity", "summary", "--for", "h200", "--recipe", recipe("transformer_big.toml")}, false},
        {with({"figures", "--layer", "64<-32@8:24:8", "--phase", "all"}, quick), false}}},
      {"devices", {{{"devices"}, false}, {{"devices", "--for", "a100"}, false}}},
      // Not theirs to break: a model's own text, Markdown, a recipe, paths, what other programs read, and what only a GPU prints.
      {"completion", {}},
      {"man", {}},
      {"schema", {}},
      {"translate", {}},
      {"generate", {}},
      {"tokenize", {}},
      {"guidelines", {}},
      {"import", {}},
      {"export", {}},
      {"report", {}},    // a path, and
      {"classify", {}},  // paths, for other programs
      {"caption", {}},   // likewise
      {"evaluate", {}},  // lines that are wrapped, of a run that has ended
      {"bench calibrate", {}},
      {"bench collectives", {}},  // of several processes: tests/app/commands/ranks_test.cpp
  };
}

// The lines of a command alone: what --dry-run ends with is a file.
std::vector<std::string> lines_of(std::string text) {
  std::erase(text, '\r');
  if (const std::size_t toml = text.find("the recipe as it would run\n"); toml != std::string::npos) text.resize(toml);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class PageWidth : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  }
  void write_recipe(const fs::path& folder) const {
    write_text(folder / "recipe.toml",
               "[model]\nd_model = 32\nd_ff = 48\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nvocabulary = 61\nmax_positions = 16\n"
               "dropout = 0.1\n[data]\nkind = \"synthetic\"\n[batch]\nsource_tokens = 45\ntarget_tokens = 50\nsequence = 12\n"
               "[optimizer]\nlabel_smoothing = 0.1\n[ablation]\nswitches = \"pad_vocabulary_to=1,8\"\n");
  }

  // One process; what it printed where.
  struct Run {
    std::string what;
    fs::path folder;
    std::unique_ptr<Terminal> terminal;  // null: a file
    std::unique_ptr<Process> process;
    std::size_t columns = 0;  // that lines may have
    bool narrows = false;
    std::string output;
  };
  Run start(const Arguments& words, unsigned short terminal, std::size_t columns) {
    Run run{.what = concat(name_of(words), terminal > 0 ? concat(" on ", terminal, " columns") : " in a pipe"),
            .folder = folder_.path() / std::to_string(runs_++),
            .terminal = terminal > 0 ? std::make_unique<Terminal>(terminal) : nullptr,
            .process = nullptr,
            .columns = columns,
            .narrows = false,
            .output = {}};
    write_recipe(run.folder);
    const int screen = run.terminal ? run.terminal->descriptor() : -1;
    run.process = std::make_unique<Process>(run.folder, words, [screen] {
      if (screen >= 0) ::dup2(screen, STDOUT_FILENO);
    });
    return run;
  }
  static void finish(Run& run) {
    const int code = run.process->wait();
    EXPECT_TRUE(code == 0 || code == 1) << run.what << ": " << code << run.process->errors();  // 1: an ablation's setting that does not fit
    run.output = run.terminal ? run.terminal->close() : run.process->output();
    EXPECT_GT(run.output.size(), 20U) << run.what << run.process->errors();
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

TEST_F(PageWidth, EveryCommandHasCases) {
  const std::map<std::string, std::vector<Case>> all = cases();
  std::size_t leaves = 0;
  for (const CommandPath& path : every_command()) {
    if (!help_of(path).commands.empty()) continue;
    ++leaves;
    EXPECT_TRUE(all.contains(name_of(path))) << name_of(path) << " has no toy sizes here, so that nobody sees its tables";
  }
  EXPECT_EQ(leaves, all.size());
}

// As many processes at a time as keep the waiting short: what they measure is nobody's.
TEST_F(PageWidth, LinesKeepToThePage) {
  constexpr std::size_t kAtATime = 8;
  struct Kind {
    unsigned short terminal;
    std::size_t columns;
    bool wide;
  };
  constexpr Kind kKinds[] = {{80, 80, false}, {100, 100, false}, {200, 100, false}, {0, 100, false}, {80, Page::kUnbounded, true}};
  std::vector<std::pair<Arguments, Kind>> asked;
  std::vector<bool> narrows;
  for (const auto& [name, all] : cases()) {
    for (const Case& one : all) {
      for (const Kind& kind : kKinds) {
        const std::map<std::string, bool>& options = help_of(command_in(one.words)).options;
        if (kind.wide && !options.contains("--wide")) {
          EXPECT_FALSE(one.narrows) << name << " leaves columns out and has no --wide";
          continue;
        }
        asked.emplace_back(kind.wide ? with(one.words, {"--wide"}) : one.words, kind);
        narrows.push_back(one.narrows);
      }
    }
  }
  std::size_t looked_at = 0;
  for (std::size_t begin = 0; begin < asked.size(); begin += kAtATime) {
    std::vector<Run> runs;
    for (std::size_t i = begin; i < std::min(asked.size(), begin + kAtATime); ++i) {
      runs.push_back(start(asked[i].first, asked[i].second.terminal, asked[i].second.columns));
      runs.back().narrows = narrows[i];
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Run& run = runs[i];
      finish(run);
      for (const std::string& line : lines_of(run.output)) {
        EXPECT_LE(width_of(line), run.columns) << run.what << ":\n" << line;
        ++looked_at;
      }
      const bool left_out = run.output.find("(--wide adds ") != std::string::npos;
      const Kind& kind = asked[begin + i].second;
      if (kind.wide) {
        EXPECT_FALSE(left_out) << run.what << "\n" << run.output;
      } else if (kind.columns == 80) {
        EXPECT_EQ(left_out, run.narrows) << run.what << "\n" << run.output;
      }
    }
  }
  EXPECT_GT(looked_at, 1000U);
}

// --wide shows what 80 columns left out.
TEST_F(PageWidth, WideAddsWhatWasLeftOut) {
  const Arguments plan = {"plan", "--layer", "4096<-1024@2560", "--for", "h200"};
  Run narrow = start(plan, 80, 80), wide = start(with(plan, {"--wide"}), 80, Page::kUnbounded);
  finish(narrow), finish(wide);
  const auto headings_of = [](const Run& run) {  // lines of stacked words, the last of which "role" stands on
    std::string words;
    for (const std::string& line : lines_of(run.output)) {
      words = line.empty() ? "" : words + line + "\n";
      if (line.starts_with("  role ")) break;
    }
    return words;
  };
  for (const char* column : {"FLOP/B", "useful", "roofline"}) {
    EXPECT_LT(narrow.output.find("(--wide adds "), narrow.output.rfind(column)) << narrow.output;
    EXPECT_NE(headings_of(wide).find(column), std::string::npos) << wide.output;
    EXPECT_EQ(headings_of(narrow).find(column), std::string::npos) << narrow.output;
  }
  EXPECT_NE(narrow.output.find("predicted"), std::string::npos);
  EXPECT_EQ(start(with(plan, {"--wide", "--json"}), 0, 100).process->wait(), 2) << "JSON has no width";
}

// A profile goes to the standard error.
TEST_F(PageWidth, AProfileKeepsToItsPageToo) {
  Run run = start({"train", recipe("tiny.toml"), "--set", "run.steps=2", "--profile", "1:1", "--device", "cpu", "--threads", "1"}, 0, 100);
  finish(run);
  const std::string errors = run.process->errors();
  const std::size_t table = errors.find("a step takes ");
  ASSERT_NE(table, std::string::npos) << errors;
  std::size_t rows = 0;
  for (const std::string& line : lines_of(errors.substr(table))) {
    EXPECT_LE(width_of(line), 100U) << line;
    rows += line.find("adamw") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(rows, 1U) << errors;
}

// Nobody pads columns by hand: what does is no table that fits a page.
TEST_F(PageWidth, TablesComeFromTheOneWriter) {
  const std::regex padded(R"(%[-+ ]?([1-9][0-9]*|\*)(\.[0-9*]+)?(l|ll|z)?[a-z]|std::set(w|fill)\b|\bprintf\()");
  for (const char* wrong : {"%-34s", "%8ld", "%*s", "%-14.9g", "std::setw(16)", "std::printf(\"x\")"})
    EXPECT_TRUE(std::regex_search(wrong, padded)) << wrong;
  for (const char* right : {"%.4f", "%02ld", "%+.2f", "snprintf(text", "100 %"}) EXPECT_FALSE(std::regex_search(right, padded)) << right;
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root() / "app")) {
    const std::string extension = entry.path().extension().string();
    if ((extension != ".cpp" && extension != ".h") || entry.path().filename() == "guidelines.cpp") continue;
    ++files;
    std::istringstream lines(file_text(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(std::regex_search(line, padded)) << entry.path().filename() << ": " << line;
    }
  }
  EXPECT_GT(files, 40U);
}

}  // namespace
}  // namespace tilewave
