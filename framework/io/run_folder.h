// The folder of a run: recipe.toml (written first), plans.jsonl, metrics.jsonl, checkpoints/, summary.json (written last: the run has
// ended). Who trains in it holds its lock for as long as the RunFolder lives; the lock dies with its process. New runs are called
// runs/<recipe>, then -2, -3; nothing that has ended is overwritten, and nothing that is unfinished started over, unless forced.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "framework/io/file.h"

namespace tilewave {

// What tilewave makes in a run folder beside checkpoints/; --force removes these and nothing else. recipe.toml goes last.
inline constexpr std::array<std::string_view, 9> kRunFiles{"summary.json",      "metrics.jsonl",   "profile.jsonl",
                                                           "adjustments.jsonl", "plans.jsonl",     "loss.csv",
                                                           "loss.png",          "tokenizer.model", "recipe.toml"};

enum class RunState : std::uint8_t { fresh, unfinished, ended };

// InputError for a folder with a person's files and no recipe.toml: it is not a run.
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

class RunFolder {
 public:
  // Makes or finds the folder, locks it, clears what --force gives up and what killed processes left half written.
  // InputError: the sentence says what is there and which option would mend it.
  explicit RunFolder(const RunRequest& request);

  const std::filesystem::path& path() const { return path_; }
  RunState state() const { return state_; }  // as it is handed over: fresh, or what is resumed

 private:
  std::filesystem::path path_;
  RunState state_ = RunState::fresh;
  Descriptor lock_;
};

// What --resume means without --run: the last of runs/<recipe>, -2, -3 that holds a run; empty: there is none.
std::filesystem::path last_run_folder(const std::filesystem::path& runs, std::string_view recipe);

}  // namespace tilewave
