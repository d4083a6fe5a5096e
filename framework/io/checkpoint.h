// Checkpoints of a run: RUN/checkpoints/step-00000020/{weights.safetensors, optimizer.safetensors, state.json, COMPLETE}.
// A save is staged in a hidden folder, every file fsynced, the folder renamed and its parent fsynced; the marker COMPLETE comes
// last and holds length and CRC-32C of the other three. A folder is a checkpoint if and only if its marker tells the truth about
// it, so a stop or a failure at any moment leaves the former checkpoint as it was and no half one in its place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/io/safetensors_writer.h"

namespace tilewave {

struct CheckpointContents {
  std::int64_t step = 0;
  SafetensorsContents weights;
  SafetensorsContents optimizer;
  std::string state;  // JSON: what is no tensor
};

struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path folder;

  std::filesystem::path weights() const { return folder / "weights.safetensors"; }
  std::filesystem::path optimizer() const { return folder / "optimizer.safetensors"; }
  std::filesystem::path state() const { return folder / "state.json"; }
};

// Saves and then removes what is older than the newest `keep` (markers first). A valid checkpoint of the same step is left as it
// is: a step's state is the same however it was reached. Error: the sentence says whether the new checkpoint is there.
Checkpoint save_checkpoint(const std::filesystem::path& run_folder, const CheckpointContents& contents, std::int64_t keep);

struct CheckpointSearch {
  std::optional<Checkpoint> newest;  // the newest valid one
  std::vector<std::string> skipped;  // one sentence each: newer ones and why they are not valid
};

// Also beside a run that goes on: what it removes meanwhile is looked for again.
CheckpointSearch find_latest_valid(const std::filesystem::path& run_folder);

// Calls `use` with the newest valid checkpoint, where there is one, and again with the next where a run that goes on has removed it before
// `use` had read it: one that ends with an InputError on a checkpoint that is no longer valid. What `use` has done by then it does again.
CheckpointSearch use_latest_valid(const std::filesystem::path& run_folder, const std::function<void(const Checkpoint&)>& use);

// InputError, with the reason, unless the folder's marker and checksums hold.
Checkpoint verified_checkpoint(const std::filesystem::path& folder);

// Whether any folder of a checkpoint is there, valid or not, or any that was once complete.
bool has_checkpoints(const std::filesystem::path& run_folder);
bool has_complete_checkpoints(const std::filesystem::path& run_folder);
// Whether the marker of any says that tilewave made it, so that this folder was a run's whatever else is gone.
bool was_a_run(const std::filesystem::path& run_folder);

// What a killed save left in its hidden folders. Call it under the run folder's lock.
void remove_staged_checkpoints(const std::filesystem::path& run_folder);

// All checkpoints, with their folder if nothing else is in it.
void remove_all_checkpoints(const std::filesystem::path& run_folder);

}  // namespace tilewave
