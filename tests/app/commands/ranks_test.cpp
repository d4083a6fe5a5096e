// tilewave train on several ranks of this machine's CPUs: any number of them takes the steps that one would, goes on with what another
// number has saved, and ends as one where one of them ends.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/io/safetensors_reader.h"
#include "framework/tensor/random.h"
#include "tests/app/process.h"
#include "tests/sanitized.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// Pairs of any length, dropout of both kinds, two passes a step: what a step on one rank must be equal to.
constexpr const char* kPairs = R"([model]
d_model = 16
d_ff = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
vocabulary = 300
max_positions = 64
dropout = 0.1
attention_dropout = 0.1
[data]
kind = "parallel"
source = "source.txt"
target = "target.txt"
tokenizer = "bytes"
[batch]
source_tokens = 333
target_tokens = 301
sequence = 64
accumulate = 2
[run]
steps = 6
precision = "fp64"
validate_every = 3
checkpoint_every = 3
)";

// Windows of a text, a decoder alone, of so many layers that they take turns in memory, over several passes.
constexpr const char* kText = R"([model]
architecture = "decoder_only"
d_model = 16
d_ff = 32
heads = 2
encoder_layers = 0
decoder_layers = 5
vocabulary = 300
max_positions = 32
dropout = 0.1
[data]
kind = "text"
tokenizer = "bytes"
source = "text.txt"
[batch]
source_tokens = 0
target_tokens = 320
sequence = 32
accumulate = 3
[run]
steps = 6
precision = "fp64"
validate_every = 3
checkpoint_every = 3
)";

bool has_mpirun() { return std::system("mpirun --version >/dev/null 2>&1") == 0; }

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(test_environment().program)) << "name the command line under test: --program FILE";
    if (!has_mpirun()) GTEST_SKIP() << "there is no mpirun; Debian: openmpi-bin";
    // Open MPI keeps memory until a process ends, which no sanitizer is to count.
    if (kSanitized) ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    write_text(folder_.path() / "pairs.toml", kPairs);
    write_text(folder_.path() / "text.toml", kText);
    std::string text;
    for (int line = 0; line < 400; ++line) text += "line " + std::to_string(line * line) + " of a text that is cut into windows\n";
    write_text(folder_.path() / "text.txt", text);
    std::string sources, targets;  // of lengths that share out unevenly
    for (std::size_t pair = 0; pair < 150; ++pair) {
      sources += std::string(3 + pair * 7 % 41, static_cast<char>('a' + pair % 26)) + '\n';
      targets += std::string(2 + pair * 11 % 53, static_cast<char>('a' + pair % 25)) + '\n';
    }
    write_text(folder_.path() / "source.txt", sources);
    write_text(folder_.path() / "target.txt", targets);
  }

  static Arguments train(const std::string& recipe, const std::string& run, int ranks, const Arguments& more = {}) {
    Arguments words = {"train", recipe, "--device", "cpu", "--run", run, "--ranks", std::to_string(ranks)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  int finish(const Arguments& words) {
    Process process(folder_.path(), words);
    const int code = process.wait();
    output_ = process.output();
    errors_ = process.errors();
    return code;
  }
  std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::istringstream in(file_text(folder_.path() / run / "metrics.jsonl"));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line) && !in.eof();) lines.push_back(nlohmann::json::parse(line));  // but one that a kill cut
    return lines;
  }
  // Step by step within the order of sums, or a wider bound. A run that is stopped in the middle of a validation has no loss of it.
  enum class Validations : std::uint8_t { all, may_be_cut };
  static constexpr double kOrderOfSums = 1e-12;
  void expect_same_steps(const std::string& run, const std::string& other, Validations validations = Validations::all,
                         double bound = kOrderOfSums) const {
    const std::vector<nlohmann::json> own = metrics(run), others = metrics(other);
    ASSERT_EQ(own.size(), others.size());
    ASSERT_FALSE(own.empty());
    for (std::size_t step = 0; step < own.size(); ++step) {
      EXPECT_EQ(own[step].at("target_tokens"), others[step].at("target_tokens"));
      for (const char* number : {"loss", "gradient_norm", "validation_loss"}) {
        const bool cut = validations == Validations::may_be_cut && std::string(number) == "validation_loss" && !own[step].contains(number);
        ASSERT_TRUE(cut || own[step].contains(number) == others[step].contains(number)) << number << " of step " << step + 1;
        if (!own[step].contains(number)) continue;
        const double value = others[step].at(number);
        ASSERT_GT(std::abs(value), 0.0);
        EXPECT_NEAR(own[step].at(number).get<double>() / value, 1.0, bound) << number << " of step " << step + 1;
      }
    }
  }
  // The last weights and moments of two runs.
  void expect_near(const std::string& run, const std::string& other) const {
    for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
      const SafetensorsReader own(checkpoint(run, 6) / file), others(checkpoint(other, 6) / file);
      ASSERT_EQ(own.tensors().size(), others.tensors().size());
      for (const StoredTensor& tensor : own.tensors()) {
        const auto values_of = [&](const SafetensorsReader& reader) {
          std::vector<double> values(static_cast<std::size_t>(tensor.bytes) / sizeof(double));
          reader.read(reader.at(tensor.name), std::as_writable_bytes(std::span(values)));
          return values;
        };
        const std::vector<double> values = values_of(own), expected = values_of(others);
        for (std::size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(values[i], expected[i], 1e-9 * (std::abs(expected[i]) + 1e-3)) << tensor.name << " at " << i;
        }
      }
    }
  }
  // The processes that mpirun has started for a run.
  std::vector<int> ranks_of(const std::string& run) const {
    std::istringstream found(shell("pgrep -f '[t]rain pairs.toml .*--run " + run + "'", folder_.path()).output);
    std::vector<int> ranks;
    for (int id = 0; found >> id;) {
      std::ifstream environment("/proc/" + std::to_string(id) + "/environ");
      const std::string words{std::istreambuf_iterator<char>(environment), {}};
      if (words.find("OMPI_COMM_WORLD_RANK=") != std::string::npos) ranks.push_back(id);
    }
    return ranks;
  }
  // 0: nothing is saved.
  int newest_step(const std::string& run) const {
    const fs::path checkpoints = folder_.path() / run / "checkpoints";
    int saved = 0;
    if (!fs::exists(checkpoints)) return saved;
    for (const fs::directory_entry& checkpoint : fs::directory_iterator(checkpoints)) {
      const std::string name = checkpoint.path().filename().string();
      if (name.starts_with("step-") && fs::exists(checkpoint.path() / "COMPLETE")) saved = std::max(saved, std::stoi(name.substr(5)));
    }
    return saved;
  }
  // Goes on for some steps, on so many ranks, and is what one rank would have become.
  void expect_goes_on(const std::string& run, int ranks) {
    const int saved = newest_step(run);
    ASSERT_GT(saved, 0);
    const Arguments more = {"--set", "run.steps=" + std::to_string(saved + 4)};
    Arguments resumed = more;
    resumed.emplace_back("--resume");
    ASSERT_EQ(finish(train("pairs.toml", run, ranks, resumed)), 0) << errors_;
    ASSERT_EQ(finish(train("pairs.toml", run + "_by_one", 1, more)), 0) << errors_;
    expect_same_steps(run, run + "_by_one", Validations::may_be_cut);
  }
  fs::path checkpoint(const std::string& run, int step) const {
    return folder_.path() / run / "checkpoints" / ("step-0000000" + std::to_string(step));
  }
  std::string weights(const std::string& run, int step) const { return file_text(checkpoint(run, step) / "weights.safetensors"); }

  TemporaryFolder folder_;
  std::string output_, errors_;
};

// What sanitizers look at too.
class RanksTogether : public Ranks {};

TEST_F(RanksTogether, TakeTheStepsOfOne) {
  for (const std::string recipe : {"pairs", "text"}) {
    SCOPED_TRACE(recipe);
    ASSERT_EQ(finish(train(recipe + ".toml", recipe + "1", 1)), 0) << errors_;
    for (const int ranks : {2, 3}) {
      const std::string run = recipe + std::to_string(ranks);
      ASSERT_EQ(finish(train(recipe + ".toml", run, ranks)), 0) << errors_;
      expect_same_steps(run, recipe + "1");
    }
  }
}

TEST_F(Ranks, GiveTheSameBitsTwice) {
  for (const char* run : {"first", "second"}) ASSERT_EQ(finish(train("pairs.toml", run, 3)), 0) << errors_;
  EXPECT_FALSE(weights("first", 6).empty());
  EXPECT_EQ(weights("first", 6), weights("second", 6));
}

// What is saved has no trace of how many there were.
TEST_F(Ranks, GoOnWithWhatAnotherNumberHasSaved) {
  ASSERT_EQ(finish(train("pairs.toml", "whole", 1, {"--set", "run.validate_every=0"})), 0) << errors_;
  ASSERT_EQ(finish(train("pairs.toml", "begun", 3, {"--set", "run.steps=3", "--set", "run.validate_every=0"})), 0) << errors_;
  for (const int ranks : {1, 2}) {
    const std::string run = "goes_on_" + std::to_string(ranks);
    fs::copy(folder_.path() / "begun", folder_.path() / run, fs::copy_options::recursive);
    ASSERT_EQ(finish(train("pairs.toml", run, ranks, {"--resume", "--set", "run.steps=6", "--set", "run.validate_every=0"})), 0) << errors_;
    expect_same_steps(run, "whole");
  }
}

TEST_F(Ranks, SayOnceWhatIsWrongWithAllOfThem) {
  EXPECT_EQ(finish(train("pairs.toml", "run", 2, {"--set", "model.d_model=15"})), 2);
  EXPECT_EQ(std::count(errors_.begin(), errors_.end(), '\n'), 1) << errors_;
  write_text(folder_.path() / "run" / "mine.txt", "a person's own");
  EXPECT_EQ(finish(train("pairs.toml", "run", 2)), 2);
  const std::size_t said = errors_.find("tilewave: run");
  ASSERT_NE(said, std::string::npos) << errors_;
  EXPECT_EQ(errors_.find("tilewave: run", said + 1), std::string::npos) << errors_;
  EXPECT_EQ(finish({"train", "pairs.toml", "--ranks", "2", "--gpus", "2"}), 2);
}

// Each would find its own way, so no first step is taken and no folder made.
TEST_F(Ranks, ThatDifferAreNamedBeforeTheFirstStep) {
  const std::string program = quoted(fs::absolute(test_environment().program).string()) + " train pairs.toml --device cpu --run differing";
  fs::copy_file(folder_.path() / "target.txt", folder_.path() / "moved.txt");
  const auto differ = [&](const std::string& difference) {
    return shell("mpirun --oversubscribe --allow-run-as-root -n 1 " + program + " : -n 1 " + program + " --set " + difference,
                 folder_.path());
  };
  for (const auto& [difference, what] : {std::pair{"run.seed=9", "recipe"}, {"data.target=source.txt", "corpus"}}) {
    const Outcome outcome = differ(difference);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find("tilewave: rank 1 on "), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find(std::string(" has another ") + what + " than rank 0 on "), std::string::npos) << outcome.output;
    EXPECT_FALSE(fs::exists(folder_.path() / "differing"));
  }
  const Outcome moved = differ("data.target=moved.txt");
  EXPECT_EQ(moved.status, 0) << moved.output;
}

// Every operation at every size, the slowest rank's time; and links that are finite numbers.
TEST_F(Ranks, TellWhatTheirLinksAre) {
  ASSERT_EQ(finish({"bench", "collectives", "--ranks", "3", "--device", "cpu", "--most", "1", "--rounds", "2", "--json"}), 0) << errors_;
  std::istringstream in(output_);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 5u * 4u + 1u) << "4 KiB to 1 MiB by fours, four operations each; the links";
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("ranks"), 3);
    EXPECT_GE(lines[i].at("bytes").get<double>(), 4096.0);
    EXPECT_GT(lines[i].at("time_us").get<double>(), 0.0);
    EXPECT_LE(lines[i].at("lower_quartile_us").get<double>(), lines[i].at("upper_quartile_us").get<double>());
  }
  EXPECT_EQ(lines[0].at("operation"), "all_reduce");
  EXPECT_EQ(lines[3].at("operation"), "broadcast");
  EXPECT_GT(lines.back().at("fitted_link_bytes_per_s").get<double>(), 1e6);  // without a largest: small tensors may show hops alone
  EXPECT_LT(lines.back().at("fitted_hop_us").get<double>(), 1e6);
  EXPECT_LT(lines.back().at("error_fraction").get<double>(), 3.0);
  ASSERT_EQ(finish({"bench", "collectives", "--ranks", "2", "--device", "cpu", "--most", "1", "--rounds", "1"}), 0) << errors_;
  EXPECT_EQ(output_.find("2 ranks on "), 0u) << output_;
  EXPECT_EQ(finish({"bench", "collectives"}), 2);
  EXPECT_NE(errors_.find("--ranks or --gpus"), std::string::npos) << errors_;
}

// Plans that each rank measures for itself would differ.
TEST_F(Ranks, DoNotChooseEachForItself) {
  EXPECT_EQ(finish(train("pairs.toml", "run", 2, {"--set", "gemm.choice=measure"})), 2);
  EXPECT_NE(errors_.find("gemm.choice"), std::string::npos) << errors_;
  const std::string program = quoted(fs::absolute(test_environment().program).string());
  const Outcome started = shell(
      "mpirun --oversubscribe --allow-run-as-root -n 2 " + program + " train pairs.toml --device cpu --run run --set gemm.choice=measure",
      folder_.path());
  EXPECT_EQ(started.status, 2) << started.output;
  EXPECT_NE(started.output.find("each of run.ranks = 2"), std::string::npos) << started.output;
}

// Whatever ranks have shares of, steps are one's; and who goes on, with shares or without, goes on with the same.
TEST_F(RanksTogether, KeepSharesOfTheState) {
  const Arguments best = {"--set", "run.keep_best=true"};
  for (const std::string recipe : {"pairs", "text"}) {
    SCOPED_TRACE(recipe);
    ASSERT_EQ(finish(train(recipe + ".toml", recipe + "1", 1, best)), 0) << errors_;
    for (const std::string shard : {"optimizer", "gradients"}) {
      for (const int ranks : {2, 3}) {
        const std::string run = recipe + "_" + shard + std::to_string(ranks);
        Arguments more = best;
        more.insert(more.end(), {"--set", "run.shard=" + shard});
        ASSERT_EQ(finish(train(recipe + ".toml", run, ranks, more)), 0) << errors_;
        expect_same_steps(run, recipe + "1");
        expect_near(run, recipe + "1");
        EXPECT_TRUE(fs::exists(folder_.path() / run / "best" / "checkpoints"));
      }
    }
  }
}

// Rounded to 8 bits each way: within half a unit of the last one of what one rank does, and further off than sums in fp32 are. What a step
// sums is the same each time.
TEST_F(RanksTogether, SumGradientsInBf16) {
  constexpr double kRounding = 0x1p-9, kOrderOfFloats = 1e-5;
  const auto run = [&](const std::string& recipe, const std::string& name, int ranks, const std::string& shard, const std::string& type) {
    return finish(train(recipe + ".toml", name, ranks,
                        {"--set", "run.precision=fp32", "--set", "run.shard=" + shard, "--set", "run.gradient_reduction=" + type}));
  };
  for (const std::string recipe : {"pairs", "text"}) {
    ASSERT_EQ(run(recipe, recipe + "1", 1, "none", "fp32"), 0) << errors_;
    ASSERT_EQ(run(recipe, recipe + "1_bf16", 1, "none", "bf16"), 0) << errors_;
    EXPECT_EQ(weights(recipe + "1_bf16", 6), weights(recipe + "1", 6)) << "one rank sends nothing";
    for (const std::string shard : {"none", "optimizer", "gradients"}) {
      SCOPED_TRACE(recipe + ", " + shard);
      const std::string wide = recipe + shard, narrow = wide + "_bf16", again = narrow + "_again";
      ASSERT_EQ(run(recipe, wide, 2, shard, "fp32"), 0) << errors_;
      ASSERT_EQ(run(recipe, narrow, 2, shard, "bf16"), 0) << errors_;
      ASSERT_EQ(run(recipe, again, 2, shard, "bf16"), 0) << errors_;
      expect_same_steps(wide, recipe + "1", Validations::all, kOrderOfFloats);
      expect_same_steps(narrow, recipe + "1", Validations::all, kRounding);
      EXPECT_EQ(weights(narrow, 6), weights(again, 6));
      const double norm = metrics(wide).front().at("gradient_norm"), rounded = metrics(narrow).front().at("gradient_norm");
      EXPECT_GT(std::abs(rounded / norm - 1.0), 1e-6) << "nothing was rounded";
    }
  }
  EXPECT_EQ(finish(train("pairs.toml", "refused", 2, {"--set", "run.gradient_reduction=bf16"})), 2);
  EXPECT_NE(errors_.find("run.gradient_reduction"), std::string::npos) << errors_;
}

TEST_F(Ranks, GoOnWithSharesAndWithout) {
  const Arguments half = {"--set", "run.steps=3", "--set", "run.validate_every=0"};
  Arguments begun = half;
  begun.insert(begun.end(), {"--set", "run.shard=gradients"});
  ASSERT_EQ(finish(train("pairs.toml", "whole", 1, {"--set", "run.validate_every=0"})), 0) << errors_;
  ASSERT_EQ(finish(train("pairs.toml", "shares", 3, begun)), 0) << errors_;
  ASSERT_EQ(finish(train("pairs.toml", "all", 3, half)), 0) << errors_;
  const auto goes_on = [&](const std::string& from, int ranks, const std::string& shard) {
    const std::string run = from + "_to_" + shard + std::to_string(ranks);
    fs::copy(folder_.path() / from, folder_.path() / run, fs::copy_options::recursive);
    const Arguments more = {"--resume", "--set", "run.steps=6", "--set", "run.validate_every=0", "--set", "run.shard=" + shard};
    ASSERT_EQ(finish(train("pairs.toml", run, ranks, more)), 0) << errors_;
    expect_same_steps(run, "whole");
  };
  goes_on("shares", 1, "none");
  goes_on("shares", 2, "optimizer");
  goes_on("all", 2, "gradients");
  // What another number of ranks has loaded is what was saved, to the last bit.
  const std::string saved = weights("shares", 3);
  ASSERT_FALSE(saved.empty());
  for (const int ranks : {1, 2}) {
    const std::string run = "again" + std::to_string(ranks);
    const Arguments more = {
        "--weights", (checkpoint("shares", 3) / "weights.safetensors").string(), "--set", "run.steps=1", "--set", "run.shard=optimizer"};
    ASSERT_EQ(finish(train("pairs.toml", run, ranks, more)), 0) << errors_;
    EXPECT_TRUE(weights(run, 0) == saved);
  }
}

// The first one speaks, of what all do together.
TEST_F(Ranks, AreTimedTogether) {
  ASSERT_EQ(finish({"bench", "step", "pairs.toml", "--device", "cpu", "--ranks", "2", "--rounds", "2", "--json"}), 0) << errors_;
  const nlohmann::json figures = nlohmann::json::parse(output_);
  EXPECT_EQ(figures.at("ranks"), 2);
  EXPECT_GT(figures.at("target_tokens_per_s").get<double>(), 0.0);
  ASSERT_EQ(finish({"bench", "step", "text.toml", "--device", "cpu", "--set", "run.ranks=2", "--rounds", "1"}), 0) << errors_;
  EXPECT_EQ(output_.find("text on 2 ranks, each "), 0u) << output_;
}

// Each setting in processes of its own: the same batches give the same loss, whatever ranks have shares of, and each has a time.
TEST_F(Ranks, AreAblated) {
  const auto ablate = [&](const std::string& folder, const Arguments& more) {
    Arguments words = {"ablate", "pairs.toml", "--device", "cpu", "--threads", "2", "--rounds", "3", "--steps", "3", "--out", folder};
    words.insert(words.end(), more.begin(), more.end());
    return finish(words);
  };
  const auto variants_of = [&](const std::string& folder) {
    return nlohmann::json::parse(file_text(folder_.path() / folder / "ablation.json")).at("variants");
  };
  ASSERT_EQ(ablate("counts", {"--switch", "run.ranks=1,2,3"}), 0) << errors_ << output_;
  const nlohmann::json counts = variants_of("counts");
  ASSERT_EQ(counts.size(), 3u);
  for (const nlohmann::json& variant : counts) {
    EXPECT_GT(variant.at("step_us").get<double>(), 0.0);
    EXPECT_EQ(variant.at("rounds"), 3);
    EXPECT_EQ(variant.at("target_tokens"), counts[0].at("target_tokens"));
    EXPECT_TRUE(variant.at("measured_gain_fraction").is_number());
    EXPECT_TRUE(variant.at("measured_gemm_gain_fraction").is_null());
    ASSERT_EQ(variant.at("losses").size(), 3u);
    for (std::size_t step = 0; step < 3; ++step) {
      EXPECT_NEAR(variant.at("losses")[step].get<double>() / counts[0].at("losses")[step].get<double>(), 1.0, 1e-12);
    }
  }
  for (const std::size_t several : {1u, 2u}) {
    const std::string verdict = counts[several].at("same_loss").at("verdict");
    EXPECT_TRUE(verdict == "within tolerance" || verdict == "equal bit for bit") << verdict;
  }
  EXPECT_NE(output_.find("processes of its own"), std::string::npos) << output_;
  EXPECT_FALSE(fs::exists(folder_.path() / "counts" / "ranks.toml"));

  ASSERT_EQ(ablate("shares", {"--switch", "run.shard=none,optimizer,gradients", "--switch", "run.ranks=2"}), 0) << errors_ << output_;
  for (const nlohmann::json& variant : variants_of("shares")) EXPECT_TRUE(variant.at("ran")) << variant;
  // Another precision of the sums is another mathematics; another batch is none to compare.
  const Arguments fp32 = {"--set", "run.precision=fp32"};
  ASSERT_EQ(ablate("sums", {fp32[0], fp32[1], "--switch", "run.gradient_reduction=fp32,bf16", "--switch", "run.ranks=2"}), 0) << errors_;
  EXPECT_EQ(variants_of("sums")[1].at("same_loss").at("verdict"), "another model");
  EXPECT_EQ(ablate("batches", {"--switch", "batch.target_tokens=301,201", "--switch", "run.ranks=2"}), 1);
  EXPECT_EQ(variants_of("batches")[1].at("same_loss").at("verdict"), "not compared");
  // Who cannot take part says why, and the others run.
  EXPECT_EQ(ablate("refused", {"--switch", "gemm.choice=model,measure", "--switch", "run.ranks=2"}), 2);
  EXPECT_NE(errors_.find("gemm.choice = \"measure\" would have each of run.ranks = 2"), std::string::npos) << errors_;
  EXPECT_TRUE(variants_of("refused")[0].at("ran"));
  EXPECT_EQ(finish({"bench", "step", "pairs.toml", "--device", "cpu", "--steps", "2"}), 2);
}

// One that is killed ends all; what was saved is whole, and another number of ranks goes on with it.
TEST_F(Ranks, EndTogetherWhereOneIsKilled) {
  constexpr const char* kManySteps = "run.steps=100000";
  Process process(folder_.path(), train("pairs.toml", "killed", 3, {"--set", kManySteps}));
  ASSERT_TRUE(process.wait_until_said("step 12: validation loss")) << process.errors();
  const int victim = std::stoi(shell("pgrep -f '[t]rain pairs.toml .*--run killed' | tail -n 1", folder_.path()).output);
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  EXPECT_EQ(process.wait(), 1);
  EXPECT_NE(process.errors().find("signal 9"), std::string::npos) << process.errors();
  expect_goes_on("killed", 2);
}

// Any rank, at any moment, again and again: a step that was saved is never taken twice, and the run becomes what one rank makes of it.
TEST_F(Ranks, LoseNothingHoweverOftenOneIsKilled) {
  constexpr int kKills = kSanitized ? 5 : 20;
  Random random(20);
  int saved = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE(testing::Message() << "kill " << kill);
    Arguments more = {"--set", "run.steps=100000",
                      "--set", "run.rank_timeout=3",
                      "--set", "run.checkpoint_every=2",
                      "--set", "run.validate_every=1000",
                      "--set", "run.shard=" + std::string(kill % 2 == 0 ? "gradients" : "none")};
    if (fs::exists(folder_.path() / "often")) more.emplace_back("--resume");
    Process process(folder_.path(), train("pairs.toml", "often", 2 + kill % 2, more));
    std::this_thread::sleep_for(std::chrono::milliseconds(random.next() % 1500));
    std::vector<int> victims;
    for (int attempt = 0; attempt < 3000 && victims.empty(); ++attempt) {
      victims = ranks_of("often");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_FALSE(victims.empty()) << "no rank has come";
    ::kill(victims[random.next() % victims.size()], SIGKILL);
    EXPECT_NE(process.wait(), 0);
    const int before = std::exchange(saved, newest_step("often"));
    EXPECT_GE(saved, before);
    const std::string resumed = "resumed after step ";
    if (const std::size_t said = process.errors().find(resumed); said != std::string::npos) {
      EXPECT_EQ(std::stoi(process.errors().substr(said + resumed.size())), before);
    }
    const std::vector<nlohmann::json> steps = saved > 0 ? metrics("often") : std::vector<nlohmann::json>{};
    for (std::size_t step = 0; step < steps.size(); ++step) ASSERT_EQ(steps[step].at("step"), step + 1);
  }
  EXPECT_GT(saved, kKills) << "the runs hardly got under way";
  expect_goes_on("often", 3);
}

// One that stands still, and is not dead, is named and ends all.
TEST_F(Ranks, EndTogetherWhereOneStandsStill) {
  Process process(folder_.path(), train("pairs.toml", "halted", 3, {"--set", "run.steps=100000", "--set", "run.rank_timeout=2"}));
  ASSERT_TRUE(process.wait_until_said("step 12: validation loss")) << process.errors();
  const int victim = std::stoi(shell("pgrep -f '[t]rain pairs.toml .*--run halted' | tail -n 1", folder_.path()).output);
  ASSERT_EQ(::kill(victim, SIGSTOP), 0);
  EXPECT_EQ(process.wait(), 1);
  EXPECT_NE(process.errors().find("process " + std::to_string(victim) + ", has shown no sign of life"), std::string::npos)
      << process.errors();
  expect_goes_on("halted", 1);
}

// An mpirun that does not end although all that it has started has ended: the starter ends it.
TEST_F(Ranks, EndWhereMpirunStandsStill) {
  const fs::path bin = folder_.path() / "bin";
  fs::create_directory(bin);
  write_text(bin / "mpirun", "#!/bin/bash\nsleep 0.5 &\nwait\nmkfifo fifo\nread < fifo\n");
  fs::permissions(bin / "mpirun", fs::perms::owner_all);
  const Outcome outcome = shell("PATH=" + quoted(bin.string()) + ":$PATH " + quoted(fs::absolute(test_environment().program).string()) +
                                    " train pairs.toml --device cpu --ranks 2 --run still",
                                folder_.path());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("all ranks have ended and mpirun stands still"), std::string::npos) << outcome.output;
}

// A signal to the starter stops all of them behind the step under way, which is saved.
TEST_F(Ranks, StopTogetherAtASignal) {
  Process process(folder_.path(), train("pairs.toml", "stopped", 2, {"--set", "run.steps=100000"}));
  ASSERT_TRUE(process.wait_until_said("step 12: validation loss")) << process.errors();
  process.send(SIGTERM);
  EXPECT_EQ(process.wait(), 128 + SIGTERM) << process.errors();
  EXPECT_NE(process.errors().find("the checkpoint is saved"), std::string::npos) << process.errors();
  expect_goes_on("stopped", 3);
}

}  // namespace
}  // namespace tilewave
