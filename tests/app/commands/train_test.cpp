// The train command as people and machines treat it: signals, kills, full and read-only disks, two at once, terminals, locales,
// hostile recipes. Whatever happened before, a run that ends has the losses and the bytes of one that nothing happened to.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <grp.h>
#include <gtest/gtest.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "framework/io/checkpoint.h"
#include "framework/io/safetensors_reader.h"
#include "tests/app/process.h"
#include "tests/app/terminal.h"
#include "tests/memory_folder.h"
#include "tests/sanitized.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr const char* kRecipe = R"([model]
d_model = 8
d_ff = 16
heads = 2
encoder_layers = 1
decoder_layers = 1
vocabulary = 40
max_positions = 8
dropout = 0.1
[data]
kind = "synthetic"
[batch]
source_tokens = 24
target_tokens = 24
sequence = 8
[run]
steps = 24
checkpoint_every = 2
)";

class Train : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(test_environment().program)) << "name the command line under test: --program FILE";
    write_text(folder_ / "small.toml", kRecipe);
    ::setenv("PATH", "/nowhere", 1);  // no python3: pictures are another test's
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  static Arguments train(const std::string& run, const Arguments& more = {}) {
    Arguments words = {"train", "small.toml", "--device", "cpu", "--threads", "1", "--run", run};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static Arguments set(const Arguments& assignments) {
    Arguments words;
    for (const std::string& assignment : assignments) words.insert(words.end(), {"--set", assignment});
    return words;
  }
  static Arguments joined(Arguments first, const Arguments& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  int finish(
      const Arguments& words, const std::function<void()>& prepare = [] {}) {
    Process process(folder_.path(), words, prepare);
    const int code = process.wait();
    output_ = process.output();
    errors_ = process.errors();
    return code;
  }

  // The losses of metrics.jsonl, whose lines must be whole objects of steps 1, 2, 3...; torn: but for the last one.
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> losses;
    std::istringstream lines(fs::exists(folder_ / run / "metrics.jsonl") ? file_text(folder_ / run / "metrics.jsonl") : "");
    for (std::string line; std::getline(lines, line);) {
      const auto object = nlohmann::json::parse(line, nullptr, false);
      EXPECT_TRUE(object.is_object() && object.value("step", 0) == std::ssize(losses) + 1) << line;
      if (object.is_object()) losses.push_back(object.value("loss", std::nan("")));
    }
    return losses;
  }
  // The step of the newest valid checkpoint, every tensor of which is read; 0: there is none.
  std::int64_t loadable_step(const std::string& run) const {
    const CheckpointSearch search = find_latest_valid(folder_ / run);
    if (!search.newest) return 0;
    for (const fs::path& file : {search.newest->weights(), search.newest->optimizer()}) {
      const SafetensorsReader reader(file);
      EXPECT_FALSE(reader.tensors().empty());
      for (const StoredTensor& tensor : reader.tensors()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
        reader.read(tensor, bytes);
      }
    }
    return search.newest->step;
  }
  std::string model_bytes(const std::string& run) const {
    const Checkpoint checkpoint = find_latest_valid(folder_ / run).newest.value();
    return file_text(checkpoint.weights()) + file_text(checkpoint.optimizer());
  }
  // The run has ended as the one that nothing happened to.
  void expect_same(const std::string& run, const std::string& whole) const {
    ASSERT_TRUE(fs::exists(folder_ / run / "summary.json")) << errors_;
    EXPECT_FALSE(losses(whole).empty());
    EXPECT_EQ(losses(run), losses(whole));
    EXPECT_EQ(loadable_step(run), loadable_step(whole));
    EXPECT_TRUE(model_bytes(run) == model_bytes(whole)) << "weights or moments differ";
  }
  // One line "tilewave: ..." that ends as a sentence does.
  void expect_sentence(const std::string& part) const {
    const std::string last = errors_.substr(errors_.find("tilewave: ") == std::string::npos ? 0 : errors_.find("tilewave: "));
    const bool ended = last.ends_with(".\n") || last.ends_with("?\n");
    EXPECT_TRUE(last.starts_with("tilewave: ") && ended && std::count(last.begin(), last.end(), '\n') == 1) << errors_;
    EXPECT_NE(last.find(part), std::string::npos) << errors_;
    EXPECT_EQ(output_, "");
  }

  MemoryFolder folder_;
  std::string output_, errors_;
  std::string path_ = ::getenv("PATH") == nullptr ? "" : ::getenv("PATH");
};

// Steps of some ten milliseconds, so that a signal finds the run under way.
const Arguments kSlow = {"--set", "run.checkpoint_every=0", "--set", "batch.accumulate=100"};

TEST_F(Train, ASignalSavesAndTheRunGoesOn) {
  ASSERT_EQ(finish(joined(train("whole"), kSlow)), 0) << errors_;
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}, std::pair{SIGHUP, 129}}) {
    const std::string run = concat("stopped by ", signal);
    Process process(folder_.path(), joined(train(run), kSlow));
    ASSERT_TRUE(process.wait_until_said("step 2/24")) << process.errors();
    process.send(signal);
    EXPECT_EQ(process.wait(), code) << process.errors();
    EXPECT_NE(process.errors().find("--resume --run " + run), std::string::npos) << process.errors();
    EXPECT_EQ(process.output(), "");
    EXPECT_LT(loadable_step(run), 24) << "the signal came too late to stop anything";
    EXPECT_EQ(loadable_step(run), std::ssize(losses(run)));
    EXPECT_FALSE(fs::exists(folder_ / run / "summary.json"));
    ASSERT_EQ(finish(joined(train(run, {"--resume"}), kSlow)), 0) << errors_;
    expect_same(run, "whole");
  }
}

// Steps of seconds, from the fifth one on, leave all the time there is for what may happen within a step.
TEST_F(Train, ASecondSignalExitsAtOnceAndASecondRunIsRefused) {
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  ASSERT_EQ(finish(train("run", set({"run.steps=4"}))), 0) << errors_;
  const Arguments forced = {"--resume", "--force"};
  Process process(folder_.path(), train("run", joined(forced, set({"batch.accumulate=64", "batch.source_tokens=8192",
                                                                   "batch.target_tokens=8192", "run.checkpoint_every=0"}))));
  ASSERT_TRUE(process.wait_until_said("resumed after step 4")) << process.errors();

  const MemoryFolder elsewhere;  // Process keeps its streams in its folder
  write_text(elsewhere / "small.toml", kRecipe);
  for (const Arguments& how : {Arguments{}, Arguments{"--resume"}, Arguments{"--force"}, forced}) {
    Process second(elsewhere.path(), train((folder_ / "run").string(), how));
    EXPECT_EQ(second.wait(), 2);
    EXPECT_NE(second.errors().find("another tilewave is at work in this run folder"), std::string::npos) << second.errors();
    EXPECT_EQ(second.output(), "");
  }

  process.deliver(SIGTERM);
  process.deliver(SIGINT);
  EXPECT_EQ(process.wait(), 130) << process.errors();
  EXPECT_EQ(process.errors().find("the checkpoint is saved"), std::string::npos) << "it did not exit at once: " << process.errors();
  EXPECT_EQ(loadable_step("run"), 4);
  ASSERT_EQ(finish(train("run", forced)), 0) << errors_;
  expect_same("run", "whole");
}

TEST_F(Train, KillsAtRandomMomentsLoseNothing) {
  constexpr int kKills = 200;
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  std::mt19937_64 random(7);
  double most_us = 20000;  // moves to where about half of the kills find a new checkpoint, however fast the machine
  int killed = 0, ended = 0;
  std::int64_t last = 0;
  while (killed < kKills) {
    const bool fresh = !fs::exists(folder_ / "run" / "recipe.toml");
    Process process(folder_.path(), train("run", fresh ? Arguments{} : Arguments{"--resume"}));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<std::uint64_t>(most_us)));
    process.send(SIGKILL);
    const int code = process.wait();
    ASSERT_TRUE(code == 0 || code == -SIGKILL) << code << process.errors();
    const std::int64_t step = loadable_step("run");
    ASSERT_GE(step, last) << "kill " << killed;
    ASSERT_GE(std::ssize(losses("run")), step) << "kill " << killed;
    most_us *= step > last ? 0.8 : 1.25;
    last = step;
    if (code == -SIGKILL) ++killed;
    if (!fs::exists(folder_ / "run" / "summary.json")) continue;
    expect_same("run", "whole");
    fs::remove_all(folder_ / "run");
    last = 0;
    ++ended;
  }
  EXPECT_GE(ended, 5) << "runs that got through between the kills";
}

// All but room for one checkpoint and a half is taken while the run rests.
TEST_F(Train, AFullDiskLeavesTheFormerCheckpoint) {
  const fs::path disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "no small disk can be mounted (" << std::strerror(errno) << ")";
  struct Unmount {
    fs::path disk;
    ~Unmount() { ::umount2(disk.c_str(), MNT_DETACH); }
  } unmount{disk};
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  ASSERT_EQ(finish(train("disk/run", set({"run.steps=2"}))), 0) << errors_;
  std::uintmax_t checkpoint_bytes = 0;
  for (const auto& file : fs::directory_iterator(disk / "run/checkpoints/step-00000002")) checkpoint_bytes += fs::file_size(file);
  struct statvfs space {};
  ASSERT_EQ(::statvfs(disk.c_str(), &space), 0);
  write_text(disk / "filler", std::string(space.f_bavail * space.f_frsize - checkpoint_bytes * 3 / 2 - 3 * 4096, 'x'));
  EXPECT_EQ(finish(train("disk/run", {"--resume", "--set", "run.keep=9"})), 1);
  expect_sentence("No space left on device; free some space there");
  EXPECT_GE(loadable_step("disk/run"), 2);
  EXPECT_LT(loadable_step("disk/run"), 24);
  EXPECT_GE(std::ssize(losses("disk/run")), loadable_step("disk/run"));
  fs::remove(disk / "filler");
  ASSERT_EQ(finish(train("disk/run", {"--resume"})), 0) << errors_;
  expect_same("disk/run", "whole");
}

TEST_F(Train, AFileThatMayNotGrowIsSaid) {
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  ASSERT_EQ(finish(train("run", set({"run.steps=2"}))), 0) << errors_;
  const std::uintmax_t bytes = fs::file_size(folder_ / "run/checkpoints/step-00000002/weights.safetensors");
  EXPECT_EQ(finish(train("run", {"--resume"}),
                   [&] {
                     const rlimit limit{.rlim_cur = bytes - 1, .rlim_max = bytes - 1};
                     ::setrlimit(RLIMIT_FSIZE, &limit);
                   }),
            1);
  expect_sentence("weights.safetensors: cannot write: File too large; raise the limit");
  EXPECT_EQ(loadable_step("run"), 2);
  ASSERT_EQ(finish(train("run", {"--resume"})), 0) << errors_;
  expect_same("run", "whole");
}

TEST_F(Train, AReadOnlyFolderIsSaidAndLeftAsItWas) {
  const auto as_nobody = [] {
    constexpr unsigned kNobody = 65534;
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(126);
  };
  if (finish({"--version"}, as_nobody) != 0) GTEST_SKIP() << "an unprivileged user cannot start " << test_environment().program;
  ASSERT_EQ(finish(train("run", set({"run.steps=2"}))), 0) << errors_;
  const std::string bytes = model_bytes("run");
  fs::create_directory(folder_ / "runs");
  for (const fs::path& path : {folder_ / "run/checkpoints", folder_ / "run", folder_ / "runs"}) fs::permissions(path, fs::perms(0555));
  EXPECT_EQ(finish(train("run", {"--resume"}), as_nobody), 1);
  expect_sentence("Permission denied; change the permissions");
  EXPECT_EQ(finish(train("runs/new"), as_nobody), 1);
  expect_sentence("Permission denied; change the permissions");
  EXPECT_EQ(loadable_step("run"), 2);
  EXPECT_EQ(model_bytes("run"), bytes);
  EXPECT_TRUE(fs::is_empty(folder_ / "runs"));
  for (const fs::path& path : {folder_ / "run/checkpoints", folder_ / "run"}) fs::permissions(path, fs::perms(0755));
}

TEST_F(Train, ResultsGoToStdoutAndTheRestToStderr) {
  ASSERT_EQ(finish(train("table")), 0) << errors_;
  std::istringstream lines(output_);
  std::string steps, validation, loss, folder, more;
  std::getline(lines, validation), std::getline(lines, loss), std::getline(lines, steps), std::getline(lines, folder);
  EXPECT_TRUE(validation.starts_with("validation loss ")) << output_;
  EXPECT_TRUE(loss.starts_with("training loss ")) << output_;
  EXPECT_TRUE(steps.starts_with("24 steps in ")) << output_;
  EXPECT_EQ(folder, "run folder table");
  EXPECT_FALSE(std::getline(lines, more)) << output_;
  EXPECT_NE(errors_.find("step 24/24"), std::string::npos) << errors_;

  ASSERT_EQ(finish(train("json", {"--json"})), 0) << errors_;
  EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 1);
  const auto object = nlohmann::json::parse(output_);
  EXPECT_EQ(object.at("run"), "json");
  EXPECT_EQ(object.at("steps"), 24);
  EXPECT_EQ(object.at("loss"), losses("json").back());

  const auto to_a_full_disk = [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  EXPECT_EQ(finish(train("full"), to_a_full_disk), 1) << "what nobody could read was not a success";
  EXPECT_NE(errors_.find("could not be written to standard output"), std::string::npos) << errors_;

  for (const char* passes : {"batch.accumulate=1", "batch.accumulate=3"}) {
    const std::string name = concat("diverged ", passes);
    EXPECT_EQ(finish(train(name, set({"optimizer.learning_rate=1e30", "optimizer.clip_norm=0", "run.checkpoint_every=1", passes}))), 1);
    expect_sentence("not finite, first in ");
    EXPECT_EQ(loadable_step(name), 1);
  }
}

// Sentences of a corpus may hold what a terminal takes for orders; standard output in a file gets them as they are.
TEST_F(Train, SamplesGiveATerminalNoOrders) {
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += "\x1B[2J" + std::to_string(i) + "\n";
  write_text(folder_ / "lines.txt", lines + "\xFF\xC3(\n");
  const Arguments samples =
      set({"data.kind=parallel", "data.tokenizer=bytes", "data.source=lines.txt", "data.target=lines.txt",
           "data.validation_source=lines.txt", "data.validation_target=lines.txt", "model.vocabulary=260", "run.steps=1"});
  Terminal terminal(80);
  ASSERT_EQ(finish(train("shown", samples), [&] { ::dup2(terminal.descriptor(), STDOUT_FILENO); }), 0) << errors_;
  const std::string shown = terminal.close();
  EXPECT_EQ(shown.find('\x1B'), std::string::npos) << shown;
  EXPECT_NE(shown.find("  \\x1b[2J0\r\n    -> "), std::string::npos) << shown;
  ASSERT_EQ(finish(train("kept", samples)), 0) << errors_;
  EXPECT_NE(output_.find("  \x1B[2J0\n    -> "), std::string::npos) << output_;
}

// The training loss is smoothed and has dropout, the validation loss neither: nobody has to know that to read either.
TEST_F(Train, TheTwoLossesAreToldApart) {
  const Arguments smoothed = set({"optimizer.label_smoothing=0.1", "model.dropout=0.1", "run.validate_every=12"});
  ASSERT_EQ(finish(train("run", smoothed)), 0) << errors_;
  for (const char* part : {"losses shown: training loss (smoothed, with dropout); validation loss, which has neither\n",
                           "step 12: validation loss ", "step 24/24  training loss "}) {
    EXPECT_NE(errors_.find(part), std::string::npos) << part << "\n" << errors_;
  }
  EXPECT_NE(output_.find("\ntraining loss (smoothed, with dropout) "), std::string::npos) << output_;
  EXPECT_TRUE(output_.starts_with("validation loss ") || output_.find("\nvalidation loss ") != std::string::npos) << output_;
  ASSERT_EQ(finish(train("plain", set({"optimizer.label_smoothing=0", "model.dropout=0", "model.attention_dropout=0"}))), 0) << errors_;
  EXPECT_EQ(errors_.find("losses shown"), std::string::npos) << errors_;
  EXPECT_NE(output_.find("\ntraining loss "), std::string::npos) << output_;
  EXPECT_EQ(output_.find("(smoothed"), std::string::npos) << output_;
  for (const std::string& text : {output_, errors_}) {
    for (std::size_t at = text.find("loss "); at != std::string::npos; at = text.find("loss ", at + 1)) {
      const std::string before = text.substr(0, at);
      EXPECT_TRUE(before.ends_with("training ") || before.ends_with("validation ")) << text;
    }
  }
}

TEST_F(Train, AnOptionThatWouldBeIgnoredIsRefused) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--dry-run", "--json"}, "tilewave: --json prints what a training run came to"},
      {{"--dry-run", "--profile", "1:1"}, "tilewave: --profile, --weights, --resume and --force go with a run"},
      {{"--dry-run", "--weights", "small.toml"}, "tilewave: --profile, --weights, --resume and --force go with a run"},
      {{"--dry-run", "--resume"}, "tilewave: --profile, --weights, --resume and --force go with a run"},
      {{"--dry-run", "--for", "h200"}, "tilewave: --for h200 and --device cpu name a device each"},
      {{"--profile", "25:1"}, "tilewave: --profile 25:1: the run ends with step 24"},
      {{"--profile", "23:3"}, "tilewave: --profile 23:3: the run ends with step 24"}};
  for (const auto& [options, sentence] : cases) {
    Process process(folder_.path(), train("run", options));
    EXPECT_EQ(process.wait(), 2);
    EXPECT_TRUE(process.errors().starts_with(sentence)) << process.errors();
    EXPECT_EQ(process.output(), "");
    EXPECT_FALSE(fs::exists(folder_.path() / "run"));
  }
  EXPECT_EQ(finish(train("run", {"--profile", "24:1"})), 0);
}

TEST_F(Train, ADryRunPrintsWhatWouldRunAndLeavesNothing) {
  for (const char* device : {"--device=cpu", "--for=h200"}) {
    Arguments words = train("run", {"--dry-run"});
    std::erase(words, "--run");
    std::erase(words, "run");
    std::erase(words, "--device");
    std::erase(words, "cpu");
    words.push_back(device);
    Process process(folder_.path(), words);
    EXPECT_EQ(process.wait(), 0) << process.errors();
    for (const char* part : {"[model]\n", "d_model = ", "memory", "decoder.projection", "wgrad", "waves"}) {
      EXPECT_NE(process.output().find(part), std::string::npos) << part << "\n" << process.output();
    }
    EXPECT_EQ(process.output().find("packed_tiles") == std::string::npos, std::string(device) == "--for=h200") << process.output();
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) EXPECT_FALSE(entry.is_directory()) << entry.path();
}

TEST_F(Train, SurroundingsChangeLooksAlone) {
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  for (const char* setting : {"LC_ALL=C.UTF-8", "LC_ALL=tr_TR.UTF-8", "NO_COLOR=1", "TERM=dumb", "COLUMNS=1", "HOME="}) {
    ASSERT_EQ(finish(train(setting), [&] { ::putenv(const_cast<char*>(setting)); }), 0) << setting << errors_;
    expect_same(setting, "whole");
    EXPECT_EQ(errors_.find('\x1b'), std::string::npos) << setting;
    EXPECT_EQ(errors_.find('\r'), std::string::npos) << "no terminal, nothing is redrawn";
  }
  for (const unsigned short columns : {1, 20, 200}) {
    const std::string run = concat(columns, " columns");
    Terminal terminal(columns);
    ASSERT_EQ(finish(train(run), [&] { ::dup2(terminal.descriptor(), STDERR_FILENO); }), 0);
    const std::string& shown = terminal.close();
    expect_same(run, "whole");
    EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
    std::size_t drawn = 0;
    for (std::size_t begin = shown.find('\r'); begin != std::string::npos;) {
      const std::size_t end = shown.find_first_of("\r\n", begin + 1);
      if (end == std::string::npos) break;
      if (shown[begin] == '\r' && shown[end] == '\r' && end + 1 < shown.size() && shown[end + 1] != '\n') {
        EXPECT_LT(end - begin - 1, columns) << shown.substr(begin, end - begin);
        drawn += end - begin > 1 ? 1 : 0;
      }
      begin = end;
    }
    EXPECT_GT(drawn + (columns == 1 ? 1 : 0), 0u) << shown;
  }
}

TEST_F(Train, ADecimalCommaChangesNoNumber) {
  std::string locale = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
  for (const std::string category : {"CTYPE", "COLLATE", "MONETARY", "TIME", "MESSAGES"}) {
    locale += "LC_" + category + "\ncopy \"POSIX\"\nEND LC_" + category + "\n";
  }
  write_text(folder_ / "comma.locale", locale);
  ::setenv("PATH", path_.c_str(), 1);
  const Outcome made =
      shell("localedef -c -i ./comma.locale -f ANSI_X3.4-1968 ./comma >/dev/null 2>&1; LOCPATH=$PWD LC_ALL=comma env printf %.1f 0,5",
            folder_.path());
  ::setenv("PATH", "/nowhere", 1);
  if (made.output != "0,5") GTEST_SKIP() << "no locale with a decimal comma can be made: " << made.output;
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  const std::string folder = "LOCPATH=" + folder_.path().string();
  const auto losses_and_folder = [&] { return output_.substr(0, output_.find("24 steps")) + output_.substr(output_.find("run folder")); };
  const std::string table = losses_and_folder();
  ASSERT_EQ(finish(train("decimal"),
                   [&] {
                     ::putenv(const_cast<char*>(folder.c_str()));
                     ::putenv(const_cast<char*>("LC_ALL=comma"));
                   }),
            0)
      << errors_;
  expect_same("decimal", "whole");
  EXPECT_EQ(losses_and_folder(), table.substr(0, table.find("whole")) + "decimal\n");
}

TEST_F(Train, AHostileRecipeIsOneSentenceAndLeavesNothing) {
  fs::create_directory(folder_ / "folder.toml");
  write_text(folder_ / "empty.toml", "");
  write_text(folder_ / "binary.toml", file_text(test_environment().program).substr(0, 4096));
  write_text(folder_ / "noise.toml", "\xff\xfe\x80[model]\n");
  write_text(folder_ / "twice.toml", "[run]\nsteps = 1\nsteps = 2\n");
  write_text(folder_ / "section_twice.toml", "[run]\nsteps = 1\n[run]\nkeep = 2\n");
  write_text(folder_ / "long.toml", std::string(10 << 20, '#'));
  write_text(folder_ / "unknown.toml", "[run]\nstep = 1\n");
  write_text(folder_ / "negative.toml", "[run]\nsteps = -1\n");
  write_text(folder_ / "overflow.toml", "[run]\nsteps = 99999999999999999999\n");
  write_text(folder_ / "deep.toml", "[run]\nsteps = " + std::string(9000, '[') + "\n");
  write_text(folder_ / "huge.toml", std::string(kRecipe) + "[optimizer]\nlearning_rate = nan\n");
  write_text(folder_ / "text.toml",
             "[data]\nkind = \"text\"\nsource = \"absent.txt\"\n[model]\narchitecture = \"decoder_only\"\nencoder_layers = 0\n"
             "[batch]\nsource_tokens = 0\n");
  std::vector<Arguments> hostile = {{"absent.toml"},
                                    {"small.toml", "--set", "run.steps"},
                                    {"small.toml", "--set", "run.steps=many"},
                                    {"small.toml", "--device", "abacus"}};
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".toml") && name != "small.toml") hostile.push_back({name});
  }
  ASSERT_GE(hostile.size(), 17u);
  const auto listing = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  finish({"--version"});  // makes the files of the two streams
  const auto before = listing();
  for (const Arguments& words : hostile) {
    EXPECT_EQ(finish(joined({"train"}, words)), 2) << words.front();
    EXPECT_TRUE(errors_.starts_with("tilewave: ") && errors_.size() < 1000) << errors_;
    expect_sentence("");
    EXPECT_EQ(listing(), before) << words.front();
  }
  for (const Arguments& usage : {Arguments{}, Arguments{"train"}, Arguments{"trian", "small.toml"},
                                 Arguments{"train", "small.toml", "--stpes", "2"}, Arguments{"train", "small.toml", "--threads", "-1"}}) {
    EXPECT_EQ(finish(usage), 2) << errors_;
    EXPECT_EQ(output_, "");
    EXPECT_NE(errors_, "");
    EXPECT_EQ(listing(), before);
  }
}

TEST_F(Train, CarriageReturnsAreRead) {
  std::string text = kRecipe;
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\r\n");
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  write_text(folder_ / "small.toml", text);
  ASSERT_EQ(finish(train("crlf")), 0) << errors_;
  expect_same("crlf", "whole");
}

// A file that is opened gets the lowest number that is free: never that of a stream.
TEST_F(Train, ClosedStandardStreamsAreNoFiles) {
  ASSERT_EQ(finish(train("whole")), 0) << errors_;
  for (int closed = 1; closed < 8; ++closed) {
    const std::string run = concat("closed ", closed);
    const int code = finish(train(run), [&] {
      for (int stream = 0; stream < 3; ++stream) {
        if ((closed >> stream & 1) != 0) ::close(stream);
      }
    });
    const bool prints = (closed & 2) == 0;
    EXPECT_EQ(code, prints ? 0 : 1) << run << ": what nobody could read was not a success. " << errors_;
    EXPECT_EQ(output_.empty(), !prints) << output_;
    EXPECT_EQ(errors_.empty(), (closed & 4) != 0) << errors_;
    if ((closed & 6) == 2) {
      EXPECT_NE(errors_.find("could not be written to standard output"), std::string::npos) << errors_;
    }
    expect_same(run, "whole");
    for (const auto& entry : fs::directory_iterator(folder_ / run)) {
      const std::string name = entry.path().filename().string();
      if (name == "metrics.jsonl" || name == "summary.json" || !entry.is_regular_file()) continue;  // which hold times
      EXPECT_EQ(file_text(entry.path()), file_text(folder_ / "whole" / name)) << run << ": " << name;
    }
    EXPECT_TRUE(nlohmann::json::accept(file_text(folder_ / run / "summary.json"))) << run;
  }
}

// The same of a command that writes one file, and of one that reads its standard input.
TEST_F(Train, ClosedStandardStreamsOfOtherCommands) {
  const auto close_all = [] {
    for (int stream = 0; stream < 3; ++stream) ::close(stream);
  };
  ASSERT_EQ(finish({"step", "small.toml", "--device", "cpu", "--dump-weights", "open.safetensors"}), 0) << errors_;
  EXPECT_EQ(finish({"step", "small.toml", "--device", "cpu", "--dump-weights", "closed.safetensors"}, close_all), 0);
  EXPECT_EQ(file_text(folder_ / "closed.safetensors"), file_text(folder_ / "open.safetensors"));
  EXPECT_EQ(finish({"devices"}, close_all), 1);
  EXPECT_EQ(finish({"--version"}, [] { ::close(STDOUT_FILENO); }), 1);
}

TEST_F(Train, APersonsFolderIsLeftAsItIs) {
  write_text(folder_ / "mine" / "tokenizer.model", "mine");
  write_text(folder_ / "recipes" / "recipe.toml", kRecipe);
  for (const Arguments& how : {Arguments{}, Arguments{"--force"}}) {
    EXPECT_EQ(finish(train("mine", how)), 2);
    expect_sentence("mine: holds tokenizer.model and no recipe.toml, so it is not a run folder, and what is in it stays");
    EXPECT_EQ(finish(train("recipes", how)), 2);
    expect_sentence("recipes: holds recipe.toml and nothing else that a run leaves, so it is not a run folder");
  }
  EXPECT_EQ(finish(train("recipes", {"--resume"})), 2);
  EXPECT_EQ(file_text(folder_ / "mine" / "tokenizer.model"), "mine");
  EXPECT_EQ(file_text(folder_ / "recipes" / "recipe.toml"), kRecipe);
  for (const char* name : {"mine", "recipes"}) {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / name), fs::directory_iterator()), 1) << name;
  }
}

TEST_F(Train, ARunFolderThatIsRenamedUnderItEndsTheRun) {
  Process process(folder_.path(), joined(train("run"), kSlow));
  ASSERT_TRUE(process.wait_until_said("step 2/24")) << process.errors();
  fs::rename(folder_ / "run", folder_ / "elsewhere");
  EXPECT_EQ(process.wait(), 1) << process.errors();
  EXPECT_NE(process.errors().find("was removed, renamed or replaced while its run was under way"), std::string::npos) << process.errors();
  EXPECT_EQ(process.output(), "");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

constexpr const char* kTextRecipe = R"([model]
architecture = "decoder_only"
d_model = 32
d_ff = 64
heads = 2
encoder_layers = 0
decoder_layers = 1
vocabulary = 300
max_positions = 32
[data]
kind = "text"
source = "text.txt"
tokenizer = "bpe"
[batch]
source_tokens = 0
target_tokens = 64
sequence = 32
[run]
steps = 2
)";

std::string some_text(int words) {
  std::mt19937_64 random(3);
  std::string text;
  for (int word = 0; word < words; ++word) {
    for (std::uint64_t letters = 2 + random() % 7; letters > 0; --letters) text += static_cast<char>('a' + random() % 20);
    text += word % 10 == 9 ? '\n' : ' ';
  }
  return text;
}

// Where nothing is to be saved yet: a tokenizer takes seconds to train on a long text.
TEST_F(Train, ASignalBeforeTheFirstStepEndsItAtOnce) {
  write_text(folder_ / "text.toml", kTextRecipe);
  write_text(folder_ / "text.txt", some_text(4000));
  const Arguments words = {"train", "text.toml", "--device", "cpu", "--threads", "1", "--run", "begun"};
  ASSERT_EQ(finish(words), 0) << errors_;
  for (const char* name : {"summary.json", "tokenizer.model"}) fs::remove(folder_ / "begun" / name);
  write_text(folder_ / "text.txt", some_text(400'000));
  const auto listing = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto before = listing();
  for (const Arguments& how :
       {Arguments{"--run", "new"}, Arguments{"--run", "begun", "--force"}, Arguments{"--run", "begun", "--resume"}}) {
    for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}, std::pair{SIGHUP, 129}}) {
      Arguments these(words.begin(), words.end() - 2);
      Process process(folder_.path(), joined(these, how));
      ASSERT_TRUE(process.wait_until_said("reading ")) << process.errors();
      process.send(signal);
      EXPECT_EQ(process.wait(), code) << process.errors();
      EXPECT_TRUE(process.errors().ends_with("stopped by a signal before the first step; nothing was written\n")) << process.errors();
      EXPECT_EQ(listing(), before);
    }
  }
  write_text(folder_ / "text.txt", some_text(4000));
  EXPECT_EQ(finish(joined(words, {"--resume"})), 0) << errors_;
}

// Many pairs to translate behind two steps: seconds in which all is saved.
TEST_F(Train, ASignalBehindTheLastStepEndsItAtOnce) {
  std::string recipe = kRecipe;
  recipe.replace(recipe.find("vocabulary = 40"), 15, "vocabulary = 260");
  recipe.replace(recipe.find("max_positions = 8"), 17, "max_positions = 256");
  recipe.replace(recipe.find("kind = \"synthetic\""), 18,
                 "kind = \"parallel\"\nsource = \"text.txt\"\ntarget = \"text.txt\"\nvalidation_source = \"text.txt\"\nvalidation_target = "
                 "\"text.txt\"\ntokenizer = \"bytes\"");
  recipe.replace(recipe.find("source_tokens = 24\ntarget_tokens = 24\nsequence = 8"), 50,
                 "source_tokens = 256\ntarget_tokens = 256\nsequence = 256");
  recipe.replace(recipe.find("steps = 24"), 10, "steps = 2");
  write_text(folder_ / "small.toml", recipe);
  write_text(folder_ / "text.txt", some_text(20000));
  Process process(folder_.path(), train("run"));
  ASSERT_TRUE(process.wait_until_said("step 2/2")) << process.errors();
  while (loadable_step("run") < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // into the validation
  process.send(SIGTERM);
  EXPECT_EQ(process.wait(), 143) << process.errors();
  EXPECT_TRUE(process.errors().ends_with("stopped by a signal behind the last step, which is saved; --resume --run run does the rest\n"))
      << process.errors();
  EXPECT_FALSE(fs::exists(folder_ / "run" / "summary.json"));
  EXPECT_EQ(loadable_step("run"), 2);
}

// Steps of seconds: the answer comes before their end, and only once.
TEST_F(Train, ASignalIsAnsweredAtOnce) {
  Process process(folder_.path(), train("run", set({"batch.accumulate=64", "batch.source_tokens=8192", "batch.target_tokens=8192",
                                                    "run.checkpoint_every=0", "run.steps=2"})));
  ASSERT_TRUE(process.wait_until_said("run folder run")) << process.errors();
  process.deliver(SIGINT);
  EXPECT_TRUE(process.wait_until_said("caught a signal: the run stops as soon as the step under way is done and saved"))
      << process.errors();
  EXPECT_EQ(process.errors().find("step 1/2"), std::string::npos) << "the answer took a step: " << process.errors();
  process.deliver(SIGTERM);
  EXPECT_EQ(process.wait(), 143);
  EXPECT_EQ(process.errors().find("caught a signal"), process.errors().rfind("caught a signal")) << process.errors();
}

// As nohup has it for SIGHUP, and a shell script for SIGINT of what it puts into the background.
TEST_F(Train, ASignalThatIsIgnoredStaysIgnored) {
  ASSERT_EQ(finish(joined(train("whole"), kSlow)), 0) << errors_;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string run = concat("ignores ", signal);
    Process process(folder_.path(), joined(train(run), kSlow), [&, ignored = signal] { ::signal(ignored, SIG_IGN); });
    ASSERT_TRUE(process.wait_until_said("step 2/24")) << process.errors();
    process.send(signal);
    EXPECT_EQ(process.wait(), 0) << process.errors();
    EXPECT_EQ(process.errors().find("signal"), std::string::npos) << process.errors();
    expect_same(run, "whole");
  }
}

// From the least in which the program starts to what the run takes: reading, a library's threads, our own, planning, training.
TEST_F(Train, MemoryThatRunsOutAnywhereIsASentence) {
  if (kSanitized) GTEST_SKIP() << "under the address sanitizer";
  write_text(folder_ / "text.toml", kTextRecipe);
  write_text(folder_ / "text.txt", some_text(60000));
  const auto within = [](rlim_t bytes) {
    return [bytes] {
      const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
      ::setrlimit(RLIMIT_AS, &limit);
    };
  };
  constexpr rlim_t kMiB = 1 << 20;
  rlim_t bytes = 8 * kMiB;
  while (finish({"--version"}, within(bytes)) != 0) ASSERT_LT(bytes += kMiB, 1024 * kMiB);
  int failed = 0, of_memory = 0, of_threads = 0;
  for (int code = 1; code != 0; bytes += kMiB) {
    ASSERT_LT(bytes, 1024 * kMiB);
    fs::remove_all(folder_ / "run");
    code = finish({"train", "text.toml", "--device", "cpu", "--threads", "3", "--run", "run"}, within(bytes));
    ASSERT_TRUE(code == 0 || code == 1) << bytes << ": " << code << errors_;
    if (code == 0) break;
    ++failed;
    const std::size_t said = errors_.find("tilewave: ");
    ASSERT_NE(said, std::string::npos) << bytes << errors_;
    EXPECT_TRUE(errors_.ends_with(".\n") && std::count(errors_.begin() + static_cast<std::ptrdiff_t>(said), errors_.end(), '\n') == 1)
        << errors_;
    of_memory += errors_.find("there is not enough memory for tilewave train: ") != std::string::npos ? 1 : 0;
    of_threads += errors_.find("use --threads ") != std::string::npos ? 1 : 0;
    EXPECT_EQ(output_, "");
  }
  EXPECT_GT(failed, 10);
  EXPECT_GT(of_memory, 5);
  EXPECT_GT(of_threads, 2);
  EXPECT_EQ(loadable_step("run"), 2);
}

// A user who may have no more processes: our own threads, and those of a library that trains the tokenizer.
TEST_F(Train, ThreadsThatTheSystemRefusesAreASentence) {
  const auto as_nobody = [](rlim_t processes) {
    return [processes] {
      constexpr unsigned kNobody = 65534;
      if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(126);
      const rlimit limit{.rlim_cur = processes, .rlim_max = processes};
      ::setrlimit(RLIMIT_NPROC, &limit);
    };
  };
  if (::geteuid() != 0) GTEST_SKIP() << "a user with other processes than this one's cannot count them";
  if (finish({"--version"}, as_nobody(1)) != 0) GTEST_SKIP() << "an unprivileged user cannot start " << test_environment().program;
  fs::permissions(folder_.path(), fs::perms(0777));
  write_text(folder_ / "text.toml", kTextRecipe);
  write_text(folder_ / "text.txt", some_text(4000));
  const auto train_text = [](const char* threads) {
    return Arguments{"train", "text.toml", "--device", "cpu", "--threads", threads, "--run", "run"};
  };
  EXPECT_EQ(finish(train_text("4"), as_nobody(1)), 1);
  EXPECT_TRUE(errors_.starts_with("tilewave: only 1 of 4 threads could be started: ")) << errors_;
  EXPECT_EQ(finish(train_text("1"), as_nobody(1)), 1);
  EXPECT_NE(
      errors_.find("tilewave: another thread could not be started for tilewave train: the limit of this user's processes or of memory "
                   "is reached; use fewer --threads"),
      std::string::npos)
      << errors_;
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  EXPECT_EQ(finish(joined(train("small"), set({"model.vocabulary=40000", "model.d_model=64"})), as_nobody(1)), 0) << errors_;
}

}  // namespace
}  // namespace tilewave
