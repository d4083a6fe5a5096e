// The folder of a run: its name, its state, its lock.
#include "framework/io/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sys/file.h>

#include "framework/io/checkpoint.h"
#include "framework/io/system_calls.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kLock = ".lock";
constexpr int kMaxRuns = 1'000'000'000;  // of one recipe

fs::path numbered(const fs::path& runs, std::string_view recipe, int number) {
  return runs / (number == 1 ? std::string(recipe) : concat(recipe, "-", number));
}

// 1 for <recipe>, 2 for <recipe>-2; 0 for other names.
int number_in(std::string_view name, std::string_view recipe) {
  if (name == recipe) return 1;
  if (!name.starts_with(recipe) || !name.substr(recipe.size()).starts_with('-')) return 0;
  const std::string_view digits = name.substr(recipe.size() + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() && number > 1 && number < kMaxRuns && digits.front() != '0' ? number
                                                                                                                                  : 0;
}

// Above all that there are, so that the order of numbers is that of time; mkdir decides between two processes that want the same name.
fs::path make_next_run_folder(const fs::path& runs, std::string_view recipe) {
  make_folders(runs);
  int last = 0;
  for (const std::string& name : names_in(runs)) last = std::max(last, number_in(name, recipe));
  for (int number = last + 1;; ++number) {
    fs::path folder = numbered(runs, recipe, number);
    if (system_calls().mkdir(folder.c_str(), 0777) == 0) {
      sync_folder(runs);
      return folder;
    }
    TW_CHECK(errno == EEXIST, system_sentence(folder, "make the folder", errno));
  }
}

fs::path folder_of(const RunRequest& request) {
  if (request.start == RunStart::fresh) {
    if (request.folder.empty()) return make_next_run_folder(request.runs, request.recipe);
    run_state(request.folder);  // a person's folder is refused before so much as a lock is put into it
    make_folders(request.folder);
    return request.folder;
  }
  fs::path folder = request.folder.empty() ? last_run_folder(request.runs, request.recipe) : request.folder;
  TW_CHECK_INPUT(!folder.empty(), "there is no run of ", request.recipe, " in ", request.runs.string(),
                 " to resume; start one without --resume, or name its folder with --run.");
  TW_CHECK_INPUT(is_there(folder / "recipe.toml"), folder.string(),
                 ": holds no run to resume; start one without --resume, or check the path.");
  run_state(folder);
  return folder;
}

Descriptor lock(const fs::path& folder) {
  const fs::path path = folder / kLock;
  Descriptor descriptor = open_path(path, "open", O_RDWR | O_CREAT);
  while (system_calls().flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    TW_CHECK_INPUT(errno != EWOULDBLOCK, folder.string(),
                   ": another tilewave is at work in this run folder; wait for it, stop it, or choose another --run.");
    TW_CHECK(errno == EINTR, system_sentence(path, "lock", errno));
  }
  return descriptor;
}

// The hidden file first and last: recipe.toml is a run's for as long as it is there, though all else be gone.
void remove_run(const fs::path& folder) {
  write_file_atomically(folder / kHiddenAdjustments, "");
  remove_all_checkpoints(folder);
  remove_all_checkpoints(folder / kBestFolder);
  if (is_there(folder / kBestFolder)) remove_folder_if_empty(folder / kBestFolder);
  remove_file(folder / kHiddenWeights);
  for (const std::string_view name : kRunFiles) remove_file(folder / name);
  sync_folder(folder);
  remove_file(folder / kHiddenAdjustments);
  sync_folder(folder);
}

bool is_hidden(std::string_view name) { return name.front() == '.'; }

// A link to an empty folder elsewhere, for checkpoints to go there, is as good as an empty folder.
bool is_empty_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && std::ranges::all_of(names_in(path), is_hidden);
}

// recipe.toml alone may be a person's, who keeps a recipe where its run is to be.
bool holds_a_run(const fs::path& folder) {
  if (was_a_run(folder)) return true;
  const auto left_beside_it = [&](std::string_view name) {
    return name != "recipe.toml" && std::ranges::find(kTokenizerFiles, name) == kTokenizerFiles.end() && is_there(folder / name);
  };
  return is_there(folder / "recipe.toml") && (is_there(folder / kHiddenAdjustments) || std::ranges::any_of(kRunFiles, left_beside_it));
}

void refuse_to_start_over(const fs::path& folder, RunState state) {
  const char* const why = state == RunState::ended        ? ": this run has ended; continue it with --resume and a larger run.steps"
                          : state == RunState::unfinished ? ": this run is unfinished; continue it with --resume"
                                                          : ": holds checkpoints of a run whose recipe.toml is gone; bring that back";
  throw InputError(concat(folder.string(), why, ", start over and lose it with --force, or choose another --run."));
}

bool holds_what_force_removes(const fs::path& folder, RunState state) { return state != RunState::fresh || was_a_run(folder); }

}  // namespace

RunState run_state(const fs::path& folder) {
  std::error_code ignored;
  TW_CHECK_INPUT(!is_there(folder) || fs::is_directory(folder, ignored), folder.string(), ": is no folder; choose another --run.");
  if (holds_a_run(folder)) {
    if (!is_there(folder / "recipe.toml")) return RunState::fresh;
    return is_there(folder / "summary.json") ? RunState::ended : RunState::unfinished;
  }
  for (const std::string& name : names_in(folder)) {
    if (is_hidden(name) || (name == "checkpoints" && is_empty_folder(folder / name))) continue;
    const char* const lacks = is_there(folder / "recipe.toml") ? " and nothing else that a run leaves" : " and no recipe.toml";
    throw InputError(concat(folder.string(), ": holds ", printable(name), lacks,
                            ", so it is not a run folder, and what is in it stays; move that elsewhere, or choose another --run."));
  }
  return RunState::fresh;
}

void check_start(const RunRequest& request) {
  if (request.start == RunStart::resume || request.folder.empty()) return;
  const Descriptor held = is_there(request.folder / kLock) ? lock(request.folder) : Descriptor();
  const RunState state = run_state(request.folder);
  if (request.overwrite == Overwrite::refuse && holds_what_force_removes(request.folder, state))
    refuse_to_start_over(request.folder, state);
}

RunFolder::RunFolder(const RunRequest& request) : path_(folder_of(request)), lock_(lock(path_)), lock_name_(path_ / kLock, lock_) {
  state_ = run_state(path_);
  if (request.start == RunStart::fresh && holds_what_force_removes(path_, state_)) {
    if (request.overwrite == Overwrite::refuse) refuse_to_start_over(path_, state_);
    remove_run(path_);
    state_ = RunState::fresh;
  }
  if (state_ == RunState::fresh) {  // of a start or a removal that was cut off
    remove_file(path_ / kHiddenAdjustments);
    remove_file(path_ / kHiddenWeights);
  }
  remove_stale_temporaries(path_);
  remove_staged_checkpoints(path_);
  remove_staged_checkpoints(path_ / kBestFolder);
}

fs::path last_run_folder(const fs::path& runs, std::string_view recipe) {
  int last = 0;
  for (const std::string& name : names_in(runs)) {
    if (is_there(runs / name / "recipe.toml")) last = std::max(last, number_in(name, recipe));
  }
  return last > 0 ? numbered(runs, recipe, last) : fs::path();
}

}  // namespace tilewave
