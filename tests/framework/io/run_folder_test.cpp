#include "framework/io/run_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <optional>
#include <signal.h>

#include "framework/io/checkpoint.h"
#include "kernels/core/error.h"
#include "tests/framework/io/faults.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

void make_run(const fs::path& folder, RunState state) {
  fs::create_directories(folder);
  put(folder / "recipe.toml", "[model]");
  put(folder / "metrics.jsonl", "{\"step\": 1}\n");
  save_checkpoint(folder, {.step = 1, .weights = {}, .optimizer = {}, .state = "{}"}, 1);
  if (state == RunState::ended) put(folder / "summary.json", "{}");
}

std::string refusal(const RunRequest& request) {
  return sentence_of<InputError>([&] { RunFolder{request}; });
}

TEST(RunFolder, NewRunsTakeTheNextName) {
  const MemoryFolder folder;
  const RunRequest request{.runs = folder / "runs", .recipe = "toy"};
  EXPECT_EQ(last_run_folder(request.runs, "toy"), "");
  for (const char* name : {"toy", "toy-2", "toy-3"}) {
    const RunFolder run(request);
    EXPECT_EQ(run.path(), folder / "runs" / name);
    EXPECT_EQ(run.state(), RunState::fresh);
    EXPECT_NE(last_run_folder(request.runs, "toy"), run.path()) << "a start that came to nothing is no run";
    put(run.path() / "recipe.toml", "[model]");
    EXPECT_EQ(last_run_folder(request.runs, "toy"), run.path());
  }
}

// A run that was thrown away leaves a number free; the next one comes after all of them all the same, so that it is the last one.
TEST(RunFolder, NumbersAreInTheOrderOfTime) {
  const MemoryFolder folder;
  const RunRequest request{.runs = folder / "runs", .recipe = "toy"};
  for (const char* name : {"toy-2", "toy-10", "toy-old", "toy-011", "toyland", "toy-99999999999"}) {
    fs::create_directories(folder / "runs" / name);
    put(folder / "runs" / name / "recipe.toml", "[model]");
  }
  EXPECT_EQ(last_run_folder(request.runs, "toy"), folder / "runs/toy-10");
  const RunFolder run(request);
  EXPECT_EQ(run.path(), folder / "runs/toy-11");
}

TEST(RunFolder, StatesAreToldApart) {
  const MemoryFolder folder;
  EXPECT_EQ(run_state(folder / "absent"), RunState::fresh);
  fs::create_directories(folder / "empty");
  EXPECT_EQ(run_state(folder / "empty"), RunState::fresh);
  make_run(folder / "going", RunState::unfinished);
  EXPECT_EQ(run_state(folder / "going"), RunState::unfinished);
  make_run(folder / "done", RunState::ended);
  EXPECT_EQ(run_state(folder / "done"), RunState::ended);
}

TEST(RunFolder, EndedAndUnfinishedRunsAreNotStartedOver) {
  const MemoryFolder folder;
  make_run(folder / "done", RunState::ended);
  make_run(folder / "going", RunState::unfinished);
  EXPECT_EQ(refusal({.folder = folder / "done"}),
            (folder / "done").string() +
                ": this run has ended; continue it with --resume and a larger run.steps, start over and lose it with "
                "--force, or choose another --run.");
  EXPECT_NE(refusal({.folder = folder / "going"}).find("this run is unfinished; continue it with --resume"), std::string::npos);
  for (const char* name : {"done", "going"}) {
    EXPECT_TRUE(find_latest_valid(folder / name).newest);
    EXPECT_EQ(contents_of(folder / name / "metrics.jsonl"), "{\"step\": 1}\n");
  }
}

// Its checkpoints would be taken for the new run's.
TEST(RunFolder, CheckpointsWithoutTheirRecipeAreNotTrainedOver) {
  const MemoryFolder folder;
  make_run(folder / "left", RunState::ended);
  for (const char* name : {"recipe.toml", "summary.json"}) fs::remove(folder / "left" / name);
  EXPECT_EQ(refusal({.folder = folder / "left"}),
            (folder / "left").string() +
                ": holds checkpoints of a run whose recipe.toml is gone; bring that back, start over and lose it with --force, or choose "
                "another --run.");
  EXPECT_TRUE(find_latest_valid(folder / "left").newest);
  EXPECT_EQ(RunFolder({.folder = folder / "left", .overwrite = Overwrite::force}).state(), RunState::fresh);
  EXPECT_FALSE(has_checkpoints(folder / "left"));
}

TEST(RunFolder, ForceRemovesWhatTilewaveMadeAndNothingElse) {
  const MemoryFolder folder;
  make_run(folder / "done", RunState::ended);
  put(folder / "done" / "notes.txt", "mine");
  put(folder / "done" / "checkpoints" / "copy.safetensors", "mine");
  const RunFolder run({.folder = folder / "done", .overwrite = Overwrite::force});
  EXPECT_EQ(run.state(), RunState::fresh);
  EXPECT_EQ(names_in(run.path()), (std::vector<std::string>{".lock", "checkpoints", "notes.txt"}));
  EXPECT_EQ(names_in(run.path() / "checkpoints"), std::vector<std::string>{"copy.safetensors"});
}

TEST(RunFolder, AFaultAtAnyCallOfForceLeavesARunOrNone) {
  bool struck = true;
  for (int call = 0; struck; ++call) {
    const MemoryFolder folder;
    make_run(folder / "done", RunState::ended);
    std::string complaint;
    {
      const Faults faults({.call = call, .error = EIO});
      complaint = sentence_of<Error>([&] { RunFolder({.folder = folder / "done", .overwrite = Overwrite::force}); });
      struck = faults.struck();
    }
    const RunFolder again({.folder = folder / "done", .overwrite = Overwrite::force});
    EXPECT_EQ(names_in(again.path()), std::vector<std::string>{".lock"}) << "call " << call << ": " << complaint;
  }
}

TEST(RunFolder, ResumeFindsTheRun) {
  const MemoryFolder folder;
  const RunRequest request{.runs = folder / "runs", .recipe = "toy", .start = RunStart::resume};
  EXPECT_NE(refusal(request).find("there is no run of toy in"), std::string::npos);
  make_run(folder / "runs" / "toy", RunState::ended);
  make_run(folder / "runs" / "toy-2", RunState::unfinished);
  put(folder / "runs" / "toy-2" / ".recipe.toml.partial-12345", "half");
  fs::create_directories(folder / "runs" / "toy-2" / "checkpoints" / ".staging-step-00000002");
  {
    const RunFolder run(request);
    EXPECT_EQ(run.path(), folder / "runs" / "toy-2");
    EXPECT_EQ(run.state(), RunState::unfinished);
    EXPECT_EQ(names_in(run.path()), (std::vector<std::string>{".lock", "checkpoints", "metrics.jsonl", "recipe.toml"}));
    EXPECT_EQ(names_in(run.path() / "checkpoints"), std::vector<std::string>{"step-00000001"});
  }
  EXPECT_EQ(RunFolder({.folder = folder / "runs" / "toy", .start = RunStart::resume}).state(), RunState::ended);
  EXPECT_NE(refusal({.folder = folder / "absent", .start = RunStart::resume}).find("holds no run to resume"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "absent"));
}

TEST(RunFolder, APersonsFolderIsNotARun) {
  const MemoryFolder folder;
  put(folder / "thesis.txt", "mine");
  put(folder / "summary.json", "mine");
  for (const Overwrite overwrite : {Overwrite::refuse, Overwrite::force}) {
    EXPECT_NE(refusal({.folder = folder.path(), .overwrite = overwrite}).find("holds summary.json and no recipe.toml"), std::string::npos);
  }
  EXPECT_EQ(contents_of(folder / "summary.json"), "mine");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"summary.json", "thesis.txt"})) << "not even a lock";
}

// Whatever name of a run's they bear, and whether or not --force insists.
TEST(RunFolder, APersonsFilesWithARunsNamesStay) {
  std::vector<std::string> names(kRunFiles.begin(), kRunFiles.end());
  names.insert(names.end(), {"checkpoints", "checkpoints/best.pt", "checkpoints/step-00000007/weights.safetensors"});
  for (const std::string& name : names) {
    for (const char* beside : {"", ".gitignore", "tokenizer.model"}) {
      const MemoryFolder folder;
      fs::create_directories((folder / name).parent_path());
      put(folder / name, "mine");
      if (*beside != '\0') put(folder / beside, "mine");
      const std::vector<std::string> before = names_in(folder.path());
      for (const Overwrite overwrite : {Overwrite::refuse, Overwrite::force}) {
        const RunRequest request{.folder = folder.path(), .overwrite = overwrite};
        EXPECT_NE(refusal(request).find("so it is not a run folder, and what is in it stays"), std::string::npos) << name << " " << beside;
        EXPECT_NE(sentence_of<InputError>([&] { check_start(request); }).find("is not a run folder"), std::string::npos) << name;
      }
      const RunRequest resume{.folder = folder.path(), .start = RunStart::resume, .overwrite = Overwrite::force};
      EXPECT_NE(refusal(resume).find(name == "recipe.toml" ? "is not a run folder" : "holds no run to resume"), std::string::npos) << name;
      EXPECT_EQ(contents_of(folder / name), "mine") << name;
      EXPECT_EQ(names_in(folder.path()), before) << name << ": not even a lock";
    }
  }
}

TEST(RunFolder, AFileIsNoFolder) {
  const MemoryFolder folder;
  put(folder / "run", "mine");
  EXPECT_EQ(refusal({.folder = folder / "run"}), (folder / "run").string() + ": is no folder; choose another --run.");
}

// Hidden files, an empty checkpoints/ and one that leads to an empty folder elsewhere lose nothing.
TEST(RunFolder, WhatIsInNobodysWayStaysBesideARun) {
  const MemoryFolder folder, disk;
  fs::create_directories(folder / "run");
  put(folder / "run" / ".gitignore", "mine");
  put(folder / "run" / ".lock", "");
  put(folder / "run" / ".adjustments.jsonl", "{}\n");  // of a start that was killed before its recipe.toml
  fs::create_directory_symlink(disk.path(), folder / "run" / "checkpoints");
  const RunFolder run({.folder = folder / "run"});
  EXPECT_EQ(run.state(), RunState::fresh);
  EXPECT_EQ(contents_of(folder / "run" / ".gitignore"), "mine");
}

// What RunFolder would refuse is refused before anything is made; what it would take is left as it is.
TEST(RunFolder, AStartIsCheckedWithoutATrace) {
  const MemoryFolder folder;
  for (const RunState state : {RunState::ended, RunState::unfinished}) {
    const fs::path run = folder / (state == RunState::ended ? "ended" : "unfinished");
    make_run(run, state);
    const std::vector<std::string> before = names_in(run);
    EXPECT_EQ(sentence_of<InputError>([&] { check_start({.folder = run}); }), refusal({.folder = run}));
    fs::remove(run / ".lock");  // the refused one's
    EXPECT_NO_THROW(check_start({.folder = run, .overwrite = Overwrite::force}));
    EXPECT_NO_THROW(check_start({.folder = run, .start = RunStart::resume}));
    EXPECT_EQ(names_in(run), before);
  }
  EXPECT_NO_THROW(check_start({.folder = folder / "new"}));
  EXPECT_FALSE(fs::exists(folder / "new"));
  const RunFolder held({.folder = folder / "ended", .start = RunStart::resume});
  EXPECT_NE(sentence_of<InputError>([&] { check_start({.folder = folder / "ended", .overwrite = Overwrite::force}); }).find("is at work"),
            std::string::npos);
}

TEST(RunFolder, KnowsWhetherItIsStillThere) {
  const MemoryFolder folder;
  const RunFolder run({.folder = folder / "run"});
  EXPECT_TRUE(run.in_place());
  fs::rename(folder / "run", folder / "elsewhere");
  EXPECT_FALSE(run.in_place());
  {
    const RunFolder another({.folder = folder / "run"});
    EXPECT_FALSE(run.in_place());
    EXPECT_TRUE(another.in_place());
  }
  fs::remove_all(folder / "run");
  fs::rename(folder / "elsewhere", folder / "run");
  EXPECT_TRUE(run.in_place());
  fs::remove(folder / "run" / ".lock");
  EXPECT_FALSE(run.in_place());
}

TEST(RunFolder, ASecondProcessIsRefusedUntilTheFirstOneDies) {
  const MemoryFolder folder;
  make_run(folder / "run", RunState::unfinished);
  const RunRequest resume{.folder = folder / "run", .start = RunStart::resume};
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const RunFolder run(resume);
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  for (const RunRequest& request : {resume, RunRequest{.folder = folder / "run", .overwrite = Overwrite::force}}) {
    EXPECT_NE(refusal(request).find("another tilewave is at work in this run folder"), std::string::npos);
  }
  EXPECT_TRUE(find_latest_valid(folder / "run").newest) << "a refused --force touches nothing";
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_EQ(refusal(resume), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(RunFolder, TheLockIsNotInheritedByPrograms) {
  const MemoryFolder folder;
  std::optional<RunFolder> run(RunRequest{.folder = folder / "run"});
  int started[2];  // the program's end is closed by the very exec that must close the lock
  ASSERT_EQ(::pipe2(started, O_CLOEXEC), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    ::execlp("sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  ::close(started[1]);
  char byte = 0;
  ASSERT_EQ(::read(started[0], &byte, 1), 0);
  ASSERT_EQ(::waitpid(program, nullptr, WNOHANG), 0) << "sleep did not start";
  run.reset();
  EXPECT_EQ(refusal({.folder = folder / "run"}), "");
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  ::close(started[0]);
}

TEST(RunFolder, AReadOnlyFolderIsSaid) {
  const MemoryFolder folder;
  fs::create_directories(folder / "runs");
  fs::permissions(folder.path(), fs::perms(0755));
  fs::permissions(folder / "runs", fs::perms(0555));
  EXPECT_EQ(in_unprivileged_child([&] {
              const std::string complaint = sentence_of<Error>([&] { RunFolder({.runs = folder / "runs", .recipe = "toy"}); });
              return complaint.find("toy: cannot make the folder: Permission denied") != std::string::npos ? 0 : 1;
            }),
            0);
  fs::permissions(folder / "runs", fs::perms(0755));
}

}  // namespace
}  // namespace tilewave
