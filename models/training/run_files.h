// What a run keeps in its folder beside its checkpoints (docs/use/formats.md): recipe, tokenizer, plans, a line of numbers for each step,
// the profile, the summary; and whether all of it is still there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/io/json_lines.h"
#include "models/training/event_log.h"
#include "models/training/trainer.h"
#include "models/training/training_state.h"

namespace tilewave {

PairCounts validation_pairs_of(const Corpus& corpus, const BatchStream& validation);

class RunFiles {
 public:
  // All of these live as long as it does.
  struct Run {
    const RunFolder& folder;
    const ResolvedRecipe& resolved;
    const Corpus& corpus;
    const TrainingState& state;
    const TrainingObserver& observer;
    PairCounts validation_pairs;
  };
  explicit RunFiles(const Run& run) : run_(run), folder_(run.folder.path()) {}

  const std::filesystem::path& folder() const { return folder_; }

  // Of a run that starts from its first step, and of one that goes on from the state's.
  void begin(const Trace& plans, const DeviceInfo& device);
  void go_on(const Trace& plans, const DeviceInfo& device);
  // Where the first step's weights come from: hidden before the run begins, shown once a checkpoint holds them.
  void hide_origin(const WeightOrigin& origin) const;
  void show_origin() const;
  bool has_origin() const;
  // Whether the folder should hold a tokenizer and does not; where the run goes on all the same, it is written again.
  bool lost_tokenizer() const;
  void write_tokenizer_again(bool same_corpus) const;

  void keep_metrics(const TrainingProgress& progress, const std::optional<ValidationLoss>& validation);
  void keep_profile(const std::vector<ProfiledLaunch>& launches) const;
  void keep_summary(const TrainingResult& result);
  void remove_summary() const;

  // A checkpoint of the state's step is about to be written, and is written: what came before is on the disk first.
  void sync() { metrics_->sync(); }
  void saved() { saved_step_ = run_.state.step; }

  // Throws where the folder is gone, or another one is in its place: what is written there would be no run.
  void check_in_place() const;
  // What a person has taken out of the folder while its run is under way, as a list; empty where all is there.
  std::string missing() const;

 private:
  bool keeps_tokenizer() const;
  void note_missing_lines() const;
  void begin_events();

  Run run_;
  std::filesystem::path folder_;
  std::int64_t saved_step_ = 0;  // of the newest checkpoint; 0: there is none
  std::optional<JsonLines> metrics_;
  std::optional<EventLog> events_;  // where run.log asks for them
};

}  // namespace tilewave
