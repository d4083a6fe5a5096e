#include "framework/io/checkpoint.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <signal.h>

#include "framework/io/safetensors_reader.h"
#include "kernels/core/error.h"
#include "tests/framework/io/faults.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRows = 30;
constexpr std::int64_t kCols = 100;
constexpr std::int64_t kPitch = 128;

float value_at(std::int64_t step, std::int64_t row, std::int64_t col) { return static_cast<float>(step * 10'000 + row * kCols + col); }

void save(const fs::path& run, std::int64_t step, int keep = 2) {
  std::vector<float> values(kRows * kPitch, -1.0f);
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t col = 0; col < kCols; ++col) values[static_cast<std::size_t>(row * kPitch + col)] = value_at(step, row, col);
  }
  const ConstMatrixView view(values.data(), kRows, kCols, kPitch, DType::f32);
  save_checkpoint(run,
                  {.step = step,
                   .weights = {.tensors = {host_tensor("w", view)}, .metadata = {{"vocabulary", "100"}}},
                   .optimizer = {.tensors = {host_tensor("m/w", view), host_tensor("v/w", view)}, .metadata = {}},
                   .state = concat("{\"step\": ", step, "}\n")},
                  keep);
}

// The step of the newest valid checkpoint, whose contents must be those of that step; -1: there is none.
std::int64_t loadable_step(const fs::path& run) {
  const CheckpointSearch search = find_latest_valid(run);
  if (!search.newest) return -1;
  const std::int64_t step = search.newest->step;
  for (const auto& [file, name] : {std::pair{search.newest->weights(), "w"}, std::pair{search.newest->optimizer(), "v/w"}}) {
    std::vector<float> values(kRows * kCols);
    SafetensorsReader(file).read(name, MatrixView{.data = values.data(), .rows = kRows, .cols = kCols, .ld = kCols, .dtype = DType::f32});
    for (std::int64_t i = 0; i < kRows * kCols; ++i) {
      if (values[static_cast<std::size_t>(i)] != value_at(step, i / kCols, i % kCols)) return -2;
    }
  }
  return contents_of(search.newest->state()) == concat("{\"step\": ", step, "}\n") ? step : -3;
}

TEST(Checkpoint, ComesBack) {
  const MemoryFolder run;
  EXPECT_EQ(loadable_step(run.path()), -1);
  save(run.path(), 20);
  EXPECT_EQ(loadable_step(run.path()), 20);
  EXPECT_EQ(names_in(run / "checkpoints"), std::vector<std::string>{"step-00000020"});
  EXPECT_EQ(names_in(run / "checkpoints" / "step-00000020"),
            (std::vector<std::string>{"COMPLETE", "optimizer.safetensors", "state.json", "weights.safetensors"}));
  save(run.path(), 20);
  EXPECT_EQ(loadable_step(run.path()), 20);
  EXPECT_NO_THROW(verified_checkpoint(run / "checkpoints/step-00000020/"));  // as a shell completes the name
  EXPECT_NO_THROW(verified_checkpoint(run / "checkpoints/step-00000020/."));
}

// What a power cut asks for and no fault can show: data before names, names before the marker, the marker gone before its files.
TEST(Checkpoint, ReachesTheDiskInOrder) {
  const MemoryFolder run;
  save(run.path(), 10, 1);
  const Faults faults({});
  save(run.path(), 20, 1);
  std::vector<std::string> log;
  for (const std::string& call : faults.log()) {
    if (!call.starts_with("open") && !call.starts_with("close")) log.push_back(call);
  }
  EXPECT_EQ(log, (std::vector<std::string>{
                     "mkdir .staging-step-00000020",
                     "fsync checkpoints",
                     "write weights.safetensors",
                     "fsync weights.safetensors",
                     "write optimizer.safetensors",
                     "fsync optimizer.safetensors",
                     "write state.json",
                     "fsync state.json",
                     "fsync .staging-step-00000020",
                     "rename .staging-step-00000020 step-00000020",
                     "fsync checkpoints",
                     "flock .COMPLETE.partial",
                     "write .COMPLETE.partial",
                     "fsync .COMPLETE.partial",
                     "rename .COMPLETE.partial COMPLETE",
                     "fsync step-00000020",
                     "unlink COMPLETE",
                     "fsync step-00000010",
                     "unlink weights.safetensors",
                     "unlink optimizer.safetensors",
                     "unlink state.json",
                     "rmdir step-00000010",
                 }));
}

TEST(Checkpoint, TheNewestStay) {
  const MemoryFolder run;
  for (const std::int64_t step : {1, 2, 10, 99'999'999, 100'000'000}) {
    save(run.path(), step, 3);
    EXPECT_EQ(loadable_step(run.path()), step);
  }
  EXPECT_EQ(names_in(run / "checkpoints"), (std::vector<std::string>{"step-00000010", "step-100000000", "step-99999999"}));
  save(run.path(), 100'000'001, 1);
  EXPECT_EQ(names_in(run / "checkpoints"), std::vector<std::string>{"step-100000001"});
  EXPECT_THROW(save(run.path(), 100'000'002, 0), Error);
}

TEST(Checkpoint, RotationSparesWhatIsNotItsOwn) {
  const MemoryFolder run;
  save(run.path(), 10);
  put(run / "checkpoints" / "step-00000010" / "notes.txt", "mine");
  fs::create_directories(run / "checkpoints" / "best");
  fs::create_directories(run / "checkpoints" / "step-5");  // not a name that tilewave gives
  for (const std::int64_t step : {20, 30, 40}) save(run.path(), step);
  EXPECT_EQ(names_in(run / "checkpoints"), (std::vector<std::string>{"best", "step-00000010", "step-00000030", "step-00000040", "step-5"}));
  EXPECT_EQ(names_in(run / "checkpoints" / "step-00000010"), std::vector<std::string>{"notes.txt"});
}

TEST(Checkpoint, DamageIsFoundAndSaid) {
  const std::vector<std::pair<std::function<void(const fs::path&)>, std::string>> damages{
      {[](const fs::path& folder) { fs::remove(folder / "COMPLETE"); }, "has no COMPLETE"},
      {[](const fs::path& folder) { put(folder / "COMPLETE", ""); }, "its COMPLETE is not one of a tilewave checkpoint"},
      {[](const fs::path& folder) { put(folder / "COMPLETE", "[[[["); }, "its COMPLETE is not one of a tilewave checkpoint"},
      {[](const fs::path& folder) { put(folder / "COMPLETE", std::string(5000, ' ')); }, "is longer than the 4096 bytes"},
      {[](const fs::path& folder) { put(folder / "COMPLETE", R"({"format": "tilewave checkpoint", "version": 1, "step": 20})"); },
       "bytes, not those that COMPLETE promises"},
      {[](const fs::path& folder) {
         put(folder / "COMPLETE", R"({"format": "tilewave checkpoint", "version": 1, "step": 20, "files": 3})");
       },
       "bytes, not those that COMPLETE promises"},
      {[](const fs::path& folder) {
         fs::copy_file(folder / "../step-00000010/COMPLETE", folder / "COMPLETE", fs::copy_options::overwrite_existing);
       },
       "its COMPLETE is of another step"},
      {[](const fs::path& folder) { fs::remove(folder / "optimizer.safetensors"); }, "optimizer.safetensors: cannot open: No such file"},
      {[](const fs::path& folder) { fs::resize_file(folder / "weights.safetensors", 100); },
       "weights.safetensors has 100 bytes, not those"},
      {[](const fs::path& folder) { put(folder / "state.json", "{\"step\": 21}\n"); }, "state.json does not have the checksum"},
      {[](const fs::path& folder) {
         std::string bytes = contents_of(folder / "weights.safetensors");
         bytes.back() ^= 1;
         put(folder / "weights.safetensors", bytes);
       },
       "weights.safetensors does not have the checksum"},
  };
  for (const auto& [damage, reason] : damages) {
    const MemoryFolder run;
    save(run.path(), 10);
    save(run.path(), 20);
    damage(run / "checkpoints" / "step-00000020");
    const CheckpointSearch search = find_latest_valid(run.path());
    ASSERT_TRUE(search.newest) << reason;
    EXPECT_EQ(search.newest->step, 10);
    ASSERT_EQ(search.skipped.size(), 1u);
    EXPECT_NE(search.skipped.front().find(reason), std::string::npos) << search.skipped.front();
    EXPECT_NE(search.skipped.front().find("step-00000020"), std::string::npos);
    save(run.path(), 20);
    EXPECT_EQ(loadable_step(run.path()), 20) << "a damaged one gives way to a new one of its step";
  }
}

TEST(Checkpoint, RotationCountsNoHalfFolderAndNothingNewer) {
  const MemoryFolder run;
  for (const std::int64_t step : {10, 20, 30}) save(run.path(), step, 9);
  fs::remove(run / "checkpoints" / "step-00000020" / "COMPLETE");
  put(run / "checkpoints" / "step-00000030" / "state.json", "damaged");
  save(run.path(), 25);
  EXPECT_EQ(names_in(run / "checkpoints"), (std::vector<std::string>{"step-00000010", "step-00000025", "step-00000030"}));
  EXPECT_EQ(loadable_step(run.path()), 25);
}

// Whatever fails at whichever call: the former checkpoint or the new one is valid and loads, nothing else is taken for one, and
// the next save succeeds.
TEST(Checkpoint, SurvivesAFaultAtEveryCall) {
  for (const Fault fault : {Fault::once, Fault::from_then_on}) {
    for (const int error : {ENOSPC, EIO}) {
      int call = 0;
      int complaints = 0;
      for (bool struck = true; struck; ++call) {
        const MemoryFolder run;
        save(run.path(), 10);
        save(run.path(), 20);
        std::string complaint;
        {
          const Faults faults({.fault = fault, .call = call, .error = error});
          complaint = sentence_of<Error>([&] { save(run.path(), 30); });
          struck = faults.struck();
        }
        complaints += complaint.empty() ? 0 : 1;
        const std::int64_t step = loadable_step(run.path());
        const bool said_saved = complaint.empty() || complaint.find("is saved, but") != std::string::npos;
        const bool marked_but_not_synced = fault == Fault::from_then_on && step == 30;  // and could not be taken back either
        EXPECT_TRUE(step == (said_saved ? 30 : 20) || marked_but_not_synced) << "call " << call << ": " << complaint;
        if (!struck) {
          EXPECT_EQ(complaint, "");
        }
        if (fault == Fault::once && !said_saved) {
          EXPECT_EQ(names_in(run / "checkpoints"), (std::vector<std::string>{"step-00000010", "step-00000020"}))
              << "call " << call << ": what a failed save has made is taken back";
        }
        save(run.path(), 30);
        EXPECT_EQ(loadable_step(run.path()), 30);
        EXPECT_EQ(names_in(run / "checkpoints"), (std::vector<std::string>{"step-00000020", "step-00000030"})) << "call " << call;
      }
      EXPECT_GT(call, 40);
      EXPECT_GT(complaints, 30) << "only the failure of closing a folder is without consequence";
    }
  }
}

TEST(Checkpoint, SignalsAndShortWritesDoNoHarm) {
  for (const Faults::Plan& plan : {Faults::Plan{.fault = Fault::once, .error = EINTR}, Faults::Plan{.fault = Fault::short_write}}) {
    bool struck = true;
    for (int call = 0; struck; ++call) {
      const MemoryFolder run;
      const Faults faults({.fault = plan.fault, .call = call, .error = plan.error});
      save(run.path(), 10, 1);
      save(run.path(), 20, 1);
      EXPECT_EQ(loadable_step(run.path()), 20) << "call " << call;
      EXPECT_EQ(names_in(run / "checkpoints"), std::vector<std::string>{"step-00000020"});
      struck = faults.struck();
    }
  }
}

TEST(Checkpoint, SurvivesDeathBeforeEveryCall) {
  bool died = true;
  int deaths = 0;
  for (int call = 0; died; ++call) {
    const MemoryFolder run;
    save(run.path(), 10, 1);
    died = in_child([&] {
             const Faults faults({.fault = Fault::death, .call = call});
             save(run.path(), 20, 1);
             return 0;
           }) == 77;
    deaths += died ? 1 : 0;
    const std::int64_t step = loadable_step(run.path());
    EXPECT_TRUE(step == 20 || (step == 10 && died)) << "call " << call << ": " << step;
    remove_staged_checkpoints(run.path());
    save(run.path(), 30, 1);
    EXPECT_EQ(loadable_step(run.path()), 30);
    EXPECT_EQ(names_in(run / "checkpoints"), std::vector<std::string>{"step-00000030"}) << "call " << call;
  }
  EXPECT_GT(deaths, 35);
}

TEST(Checkpoint, SurvivesKillsAtRandomMoments) {
  const MemoryFolder run;
  std::mt19937 random(9);
  std::int64_t last = 0;
  save(run.path(), last);
  double longest_us = 1000.0;  // follows the machine: a life that ends without a save makes the next ones longer, one of many shorter
  for (int kill = 0; kill < 60; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        for (std::int64_t step = last + 1;; ++step) save(run.path(), step);
      } catch (const Error&) {
      }
      ::_exit(1);
    }
    ::usleep(std::uniform_int_distribution<useconds_t>(0, static_cast<useconds_t>(longest_us))(random));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a save failed";
    const std::int64_t step = loadable_step(run.path());
    ASSERT_GE(step, last);
    if (step == last) longest_us = std::min(1.5 * longest_us, 1e6);
    if (step > last + 3) longest_us /= 1.5;
    last = step;
    remove_staged_checkpoints(run.path());
  }
  EXPECT_GT(last, 5) << "some saves were done between the kills";
}

TEST(Checkpoint, AFolderThatCannotBeReadIsAnErrorNotAnAbsence) {
  const MemoryFolder run;
  fs::permissions(run.path(), fs::perms(0755));
  save(run.path(), 10);
  fs::permissions(run / "checkpoints", fs::perms(0000));
  EXPECT_EQ(in_unprivileged_child([&] {
              return sentence_of<Error>([&] { find_latest_valid(run.path()); }).find("Permission denied") != std::string::npos ? 0 : 1;
            }),
            0);
  fs::permissions(run / "checkpoints", fs::perms(0555));
  EXPECT_EQ(in_unprivileged_child([&] {
              const std::string complaint = sentence_of<Error>([&] { save(run.path(), 20); });
              return complaint.find("the checkpoint of step 20 was not saved, the one before it stays: ") == 0 &&
                             complaint.find("Permission denied") != std::string::npos && loadable_step(run.path()) == 10
                         ? 0
                         : 1;
            }),
            0);
  fs::permissions(run / "checkpoints", fs::perms(0755));
}

TEST(Checkpoint, AllCanBeRemoved) {
  const MemoryFolder run;
  save(run.path(), 10);
  save(run.path(), 20);
  fs::create_directories(run / "checkpoints" / ".staging-step-00000030");
  put(run / "checkpoints" / ".staging-step-00000030" / "weights.safetensors", "half");
  remove_all_checkpoints(run.path());
  EXPECT_TRUE(names_in(run.path()).empty());
}

// A run that goes on takes away what was just found: the next one is used.
TEST(Checkpoint, OneThatIsTakenAwayWhileItIsReadIsLookedForAgain) {
  const MemoryFolder run;
  save(run.path(), 1, 1);
  std::vector<std::int64_t> used;
  const CheckpointSearch search = use_latest_valid(run.path(), [&](const Checkpoint& checkpoint) {
    used.push_back(checkpoint.step);
    if (checkpoint.step < 3) save(run.path(), checkpoint.step + 1, 1);
    SafetensorsReader{checkpoint.weights()};
  });
  EXPECT_EQ(used, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(search.newest.value().step, 3);
}

// What its user finds wrong with a checkpoint that is there is no reason to look for another one.
TEST(Checkpoint, ARefusalOfOneThatIsThereIsPassedOn) {
  const MemoryFolder run;
  save(run.path(), 1, 2);
  save(run.path(), 2, 2);
  int uses = 0;
  const auto refuse = [&](const Checkpoint&) {
    ++uses;
    throw InputError("of another model");
  };
  EXPECT_EQ(sentence_of<InputError>([&] { use_latest_valid(run.path(), refuse); }), "of another model");
  EXPECT_EQ(uses, 1);
  const MemoryFolder empty;
  EXPECT_FALSE(use_latest_valid(empty.path(), refuse).newest);
  EXPECT_EQ(uses, 1);
}

// There is a checkpoint at every moment, though never for long.
TEST(Checkpoint, IsFoundBesideARunThatSavesAndRemovesAllTheTime) {
  const MemoryFolder run;
  save(run.path(), 1, 1);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  struct Saver {
    pid_t id = 0;
    ~Saver() {
      ::kill(id, SIGKILL);
      ::waitpid(id, nullptr, 0);
    }
  } saver{::fork()};
  if (saver.id == 0) {
    try {
      for (std::int64_t step = 2; step < 1'000'000; ++step) {
        save(run.path(), step, 1);
        if (step == 2 && ::write(ready[1], "x", 1) != 1) break;
      }
    } catch (...) {
    }
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::int64_t last = 0;
  for (int search = 0; search < 300; ++search) {
    const CheckpointSearch found = find_latest_valid(run.path());
    ASSERT_TRUE(found.newest) << "search " << search << ": " << (found.skipped.empty() ? "" : found.skipped.front());
    ASSERT_GE(found.newest->step, last);
    last = found.newest->step;
  }
  EXPECT_GT(last, 2) << "nothing was saved meanwhile";
  ::close(ready[0]);
  ::close(ready[1]);
}

// A run folder that is gone is not made again for the sake of a checkpoint.
TEST(Checkpoint, IsNotSavedWhereThereIsNoRunFolder) {
  const MemoryFolder folder;
  EXPECT_NE(sentence_of<Error>([&] { save(folder / "gone", 1); }).find("was not saved"), std::string::npos);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{});
}

TEST(Checkpoint, AFolderOfAnotherProgramsIsNoRuns) {
  const MemoryFolder run;
  fs::create_directories(run / "checkpoints" / "step-00000007");
  for (const char* name : {"weights.safetensors", "state.json", "COMPLETE"}) put(run / "checkpoints" / "step-00000007" / name, "mine");
  EXPECT_FALSE(was_a_run(run.path()));
  save(run.path(), 8);
  EXPECT_TRUE(was_a_run(run.path()));
}

}  // namespace
}  // namespace tilewave
