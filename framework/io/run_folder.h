// The folder of a run: recipe.toml (written first), plans.jsonl, metrics.jsonl, checkpoints/, summary.json (written last: the run has
// ended). Who trains in it holds its lock for as long as the RunFolder lives; the lock dies with its process. New runs are called
// runs/<recipe>, then -2, -3; nothing that has ended is overwritten, and nothing that is unfinished started over, unless forced. A person's
// file stays what it is, forced or not, whatever its name: a folder that holds one and was never a run's is refused.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "framework/io/file.h"

namespace tilewave {

// What tilewave makes in a run folder beside checkpoints/; --force removes these and nothing else. recipe.toml goes last.
inline constexpr std::array<std::string_view, 15> kRunFiles{
    "summary.json", "metrics.jsonl",         "profile.jsonl",  "trace.json",      "events.out.tfevents.tilewave",
    "weights.json", "adjustments.jsonl",     "plans.jsonl",    "loss.csv",        "loss.png",
    "report.html",  "tokenizer_config.json", "tokenizer.json", "tokenizer.model", "recipe.toml"};
// Checkpoints of the least validation loss, as a run folder has its own.
inline constexpr std::string_view kBestFolder = "best";
// What TensorBoard looks for has "tfevents" in its name.
inline constexpr std::string_view kEventFile = "events.out.tfevents.tilewave";
// A person's recipe may have these beside it, and no run.
inline constexpr std::array<std::string_view, 3> kTokenizerFiles{"tokenizer_config.json", "tokenizer.json", "tokenizer.model"};

enum class RunState : std::uint8_t { fresh, unfinished, ended };

// What stands in adjustments.jsonl's place until recipe.toml is there: before that nothing of a run is to be seen in its folder.
inline constexpr std::string_view kHiddenAdjustments = ".adjustments.jsonl";
// What stands in weights.json's place until the weights that the run begins with are saved as its checkpoint of step 0.
inline constexpr std::string_view kHiddenWeights = ".weights.json";

// InputError for a folder that was never a run's and holds anything but hidden files. It was one where recipe.toml has beside it anything
// else that tilewave leaves, or where a checkpoint says so.
RunState run_state(const std::filesystem::path& folder);

enum class RunStart : std::uint8_t { fresh, resume };
enum class Overwrite : std::uint8_t { refuse, force };

struct RunRequest {
  std::filesystem::path runs = "runs";
  std::string recipe;            // its name without ".toml"
  std::filesystem::path folder;  // --run DIR; empty: fresh takes the next name, resume the last that holds a run
  RunStart start = RunStart::fresh;
  Overwrite overwrite = Overwrite::refuse;
};

// A fresh start in request.folder that RunFolder would refuse is refused here, before anything is made or removed.
void check_start(const RunRequest& request);

class RunFolder {
 public:
  // Makes or finds the folder, locks it, clears what --force gives up and what killed processes left half written.
  // InputError: the sentence says what is there and which option would mend it.
  explicit RunFolder(const RunRequest& request);

  const std::filesystem::path& path() const { return path_; }
  RunState state() const { return state_; }  // as it is handed over: fresh, or what is resumed
  // False once the folder, or its lock, was removed, renamed or replaced: what is written now would be no part of this run.
  bool in_place() const { return lock_name_.in_place(); }

 private:
  std::filesystem::path path_;
  RunState state_ = RunState::fresh;
  Descriptor lock_;
  OpenedName lock_name_;
};

// What --resume means without --run: the last of runs/<recipe>, -2, -3 that holds a run; empty: there is none.
std::filesystem::path last_run_folder(const std::filesystem::path& runs, std::string_view recipe);

}  // namespace tilewave
