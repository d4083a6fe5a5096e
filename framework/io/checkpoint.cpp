// Checkpoints: stage, publish, mark; find and verify; rotate.
#include "framework/io/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/core/error.h"

namespace tilewave {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMarker = "COMPLETE";
constexpr std::string_view kStaging = ".staging-";
constexpr std::array<const char*, 3> kFiles{"weights.safetensors", "optimizer.safetensors", "state.json"};
constexpr std::int64_t kMaxMarkerBytes = 4096;
constexpr int kMaxTurns = 100;  // of a search beside a run that saves and removes all the time

fs::path checkpoints_of(const fs::path& run_folder) { return run_folder / "checkpoints"; }

std::string name_of_step(std::int64_t step) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "step-%08lld", static_cast<long long>(step));
  return name.data();
}

std::optional<std::int64_t> step_of_name(std::string_view name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = -1;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
  return step >= 0 && name_of_step(step) == name ? std::optional(step) : std::nullopt;
}

// The folders that are named like checkpoints, newest first.
std::vector<Checkpoint> candidates(const fs::path& run_folder) {
  std::vector<Checkpoint> found;
  std::error_code ignored;
  if (!fs::is_directory(checkpoints_of(run_folder), ignored)) return found;
  for (const std::string& name : names_in(checkpoints_of(run_folder))) {
    if (const auto step = step_of_name(name)) found.push_back({.step = *step, .folder = checkpoints_of(run_folder) / name});
  }
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.step > b.step; });
  return found;
}

bool is_marked(const fs::path& folder) { return is_there(folder / kMarker); }

// What there is to be seen of the checkpoints without reading them: which there are, and which are marked.
std::vector<std::pair<std::int64_t, bool>> marks_of(const std::vector<Checkpoint>& all) {
  std::vector<std::pair<std::int64_t, bool>> marks;
  for (const Checkpoint& checkpoint : all) marks.emplace_back(checkpoint.step, is_marked(checkpoint.folder));
  return marks;
}

bool is_valid(const fs::path& folder) {
  try {
    verified_checkpoint(folder);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// What the marker says; null where it is no marker of a tilewave checkpoint. InputError where it cannot be read.
nlohmann::json marker_of(const fs::path& folder) {
  nlohmann::json marker = nlohmann::json::parse(read_file(folder / kMarker, kMaxMarkerBytes), nullptr, false);
  const bool ours = marker.is_object() && marker.value("format", nlohmann::json()) == "tilewave checkpoint";
  return ours ? marker : nlohmann::json();
}

bool is_ours(const fs::path& folder) {
  try {
    return !marker_of(folder).is_null();
  } catch (const InputError&) {
    return false;
  }
}

using Digests = std::array<FileDigest, kFiles.size()>;

std::string marker_text(std::int64_t step, const Digests& digests) {
  nlohmann::ordered_json marker{
      {"format", "tilewave checkpoint"}, {"version", 1}, {"step", step}, {"files", nlohmann::ordered_json::object()}};
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    marker["files"][kFiles[i]] = {{"bytes", digests[i].bytes}, {"crc32c", digests[i].crc32c}};
  }
  return marker.dump(2) + "\n";
}

// The files are named and few: a folder that holds something else, put there by a person, stays with it.
void remove_checkpoint_folder(const fs::path& folder) {
  if (!is_there(folder)) return;
  if (is_marked(folder)) {
    remove_file(folder / kMarker);
    sync_folder(folder);  // no marker may come back beside files that are gone
  }
  for (const char* name : kFiles) remove_file(folder / name);
  remove_stale_temporaries(folder);
  remove_folder_if_empty(folder);
}

// Takes back what a failed save has made. That may fail on the same disk or for want of memory, which must not hide the first failure.
struct RemoveUnlessComplete {
  fs::path folder;
  ~RemoveUnlessComplete() {
    try {
      if (!folder.empty()) remove_checkpoint_folder(folder);
    } catch (...) {  // a folder without its marker is no checkpoint; the next save removes it
    }
  }
};

template <class Fill>
FileDigest write_new_file(const fs::path& path, Fill&& fill) {
  OutputFile file(path);
  fill(file);
  return file.finish();
}

void publish(const fs::path& run_folder, const CheckpointContents& contents) {
  const fs::path parent = checkpoints_of(run_folder);
  const std::string name = name_of_step(contents.step);
  const fs::path staging = parent / (std::string(kStaging) + name);
  make_folder(parent);  // and none above it: a run folder that is gone is not made again
  remove_checkpoint_folder(parent / name);
  remove_checkpoint_folder(staging);

  // Stage.
  RemoveUnlessComplete guard{staging};
  make_folder(staging);
  const Digests digests{
      write_new_file(staging / kFiles[0], [&](OutputFile& file) { write_safetensors(file, contents.weights); }),
      write_new_file(staging / kFiles[1], [&](OutputFile& file) { write_safetensors(file, contents.optimizer); }),
      write_new_file(staging / kFiles[2], [&](OutputFile& file) { file.write(contents.state); }),
  };
  sync_folder(staging);

  // Publish, then mark.
  rename_path(staging, parent / name);
  guard.folder = parent / name;
  sync_folder(parent);
  write_file_atomically(parent / name / kMarker, marker_text(contents.step, digests));
  guard.folder.clear();
}

// Older folders without a marker are remains of a save or of a removal; newer ones are another matter and stay.
void rotate(const fs::path& run_folder, std::int64_t newest, std::int64_t keep) {
  std::int64_t kept = 0;
  for (const Checkpoint& checkpoint : candidates(run_folder)) {
    if (checkpoint.step > newest) continue;
    if (is_marked(checkpoint.folder) && kept < keep) {
      ++kept;
    } else {
      remove_checkpoint_folder(checkpoint.folder);
    }
  }
}

}  // namespace

Checkpoint save_checkpoint(const fs::path& run_folder, const CheckpointContents& contents, std::int64_t keep) {
  TW_CHECK(contents.step >= 0 && keep >= 1, "a checkpoint of step ", contents.step, " cannot be saved with run.keep = ", keep,
           "; both count from zero, and at least one checkpoint is kept.");
  Checkpoint checkpoint{.step = contents.step, .folder = checkpoints_of(run_folder) / name_of_step(contents.step)};
  if (!is_valid(checkpoint.folder)) {
    try {
      publish(run_folder, contents);
    } catch (const Error& error) {
      throw Error(concat("the checkpoint of step ", contents.step, " was not saved, the one before it stays: ", error.what()));
    }
  }
  try {
    rotate(run_folder, contents.step, keep);
  } catch (const Error& error) {
    throw Error(concat("the checkpoint of step ", contents.step, " is saved, but an older one was not removed: ", error.what()));
  }
  return checkpoint;
}

bool has_checkpoints(const fs::path& run_folder) { return !candidates(run_folder).empty(); }

bool has_complete_checkpoints(const fs::path& run_folder) {
  const std::vector<Checkpoint> all = candidates(run_folder);
  return std::any_of(all.begin(), all.end(), [](const Checkpoint& checkpoint) { return is_marked(checkpoint.folder); });
}

bool was_a_run(const fs::path& run_folder) {
  const std::vector<Checkpoint> all = candidates(run_folder);
  return std::any_of(all.begin(), all.end(), [](const Checkpoint& checkpoint) { return is_ours(checkpoint.folder); });
}

CheckpointSearch find_latest_valid(const fs::path& run_folder) {
  for (int turn = 1;; ++turn) {
    CheckpointSearch search;
    const std::vector<Checkpoint> all = candidates(run_folder);
    const auto marks = marks_of(all);
    for (const Checkpoint& checkpoint : all) {
      try {
        search.newest = verified_checkpoint(checkpoint.folder);
        break;
      } catch (const Error& error) {
        search.skipped.push_back(concat("skipped a checkpoint: ", error.what()));
      }
    }
    // A run that goes on may have saved a newer one, and removed what was listed, while it was looked at.
    if (search.skipped.empty() || turn == kMaxTurns || marks_of(candidates(run_folder)) == marks) return search;
  }
}

CheckpointSearch use_latest_valid(const fs::path& run_folder, const std::function<void(const Checkpoint&)>& use) {
  for (int turn = 1;; ++turn) {
    CheckpointSearch search = find_latest_valid(run_folder);
    try {
      if (search.newest) use(*search.newest);
      return search;
    } catch (const InputError&) {
      if (turn == kMaxTurns || is_valid(search.newest->folder)) throw;
    }
  }
}

Checkpoint verified_checkpoint(const fs::path& folder) {
  const std::string where = folder.string();
  TW_CHECK_INPUT(is_marked(folder), where, ": has no ", kMarker,
                 ", so its save or removal was cut off or is under way; take another checkpoint.");
  const nlohmann::json marker = marker_of(folder);
  std::error_code ignored;
  const auto step = step_of_name(fs::canonical(folder, ignored).filename().string());  // "step-10/" and "." have no name
  const auto field = [&](const nlohmann::json& object, const char* key) {
    return object.is_object() ? object.value(key, nlohmann::json()) : nlohmann::json();
  };
  TW_CHECK_INPUT(field(marker, "version") == 1, where, ": its ", kMarker,
                 " is not one of a tilewave checkpoint of version 1; take another checkpoint.");
  TW_CHECK_INPUT(step && field(marker, "step") == *step, where, ": its ", kMarker,
                 " is of another step than its name; take another checkpoint.");

  const nlohmann::json files = field(marker, "files");
  const auto promised = [&](const char* name) { return field(files, name); };
  for (const char* name : kFiles) {  // lengths first: they cost nothing
    const std::int64_t bytes = InputFile(folder / name).bytes();
    TW_CHECK_INPUT(field(promised(name), "bytes") == bytes, where, ": ", name, " has ", bytes, " bytes, not those that ", kMarker,
                   " promises; take another checkpoint.");
  }
  for (const char* name : kFiles) {
    TW_CHECK_INPUT(field(promised(name), "crc32c") == digest_file(folder / name).crc32c, where, ": ", name,
                   " does not have the checksum that ", kMarker, " promises, so it was changed or damaged; take another checkpoint.");
  }
  return {.step = *step, .folder = folder};
}

void remove_staged_checkpoints(const fs::path& run_folder) {
  for (const std::string& name : names_in(checkpoints_of(run_folder))) {
    if (name.starts_with(kStaging)) remove_checkpoint_folder(checkpoints_of(run_folder) / name);
  }
}

void remove_all_checkpoints(const fs::path& run_folder) {
  remove_staged_checkpoints(run_folder);
  for (const Checkpoint& checkpoint : candidates(run_folder)) remove_checkpoint_folder(checkpoint.folder);
  remove_folder_if_empty(checkpoints_of(run_folder));
}

}  // namespace tilewave
