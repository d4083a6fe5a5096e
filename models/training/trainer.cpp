// The run, from its folder to its summary.
#include "models/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

#include "framework/distributed/exchange_values.h"
#include "framework/distributed/rank_watch.h"
#include "models/recipe/run_tokenizer.h"
#include "models/step/memory_check.h"
#include "models/training/best_checkpoint.h"
#include "models/training/nonfinite.h"
#include "models/training/planned_step.h"
#include "models/training/rank_agreement.h"
#include "models/training/resumed_recipe.h"
#include "models/training/run_files.h"
#include "models/training/test_pairs.h"
#include "models/training/training_state.h"

namespace tilewave {
namespace {

constexpr const char* kRanksFolder = ".ranks";  // of a run folder, while ranks are at work in it

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// All that a run allocates comes before its folder, so that memory which is not there costs no folder and no run that --force gives up.
class Run {
 public:
  Run(const TrainingRequest& request, const TrainingObserver& observer, const Corpus& corpus, PlannedStep planned)
      : request_(request),
        observer_(observer),
        corpus_(corpus),
        resolved_(std::move(planned.resolved)),
        trace_(std::move(planned.trace)),
        context_(request.queue, request.device, context_options(resolved_.recipe, planned.plans, request.ranks)),
        step_(context_, resolved_),
        batches_(std::move(planned.batches)),
        validation_pairs_(validation_pairs_of(corpus, planned.validation)) {
    step_.use_step_memory(trace_);
    note_what_is_left_out(planned.validation.skipped());
  }

  TrainingResult start() {
    load_weights_of_request();
    agree(context_, resolved_, corpus_, request_.program);
    if (const int signal = agreed_signal(observer_.beginning()); signal != 0) return {.signal = signal};
    const std::optional<RunFolder> folder = leads() ? std::optional<RunFolder>(std::in_place, request_.run) : std::nullopt;
    hold(folder);
    begin();
    return train();
  }

  TrainingResult resume(const std::optional<RunFolder>& folder) {
    agree(context_, resolved_, corpus_, request_.program);
    hold(folder);
    restore(folder && folder->state() == RunState::ended);
    return signal_ != 0 ? TrainingResult{.signal = signal_} : train();
  }

 private:
  void load_weights_of_request() {
    if (request_.weights.path.empty()) return;
    origin_ = load_initial_weights(request_.weights, step_.parameters());
    for (const std::string& sentence : origin_->told()) observer_.noted(sentence);
  }

  // Of several ranks the first one writes; the others have neither files nor a best checkpoint.
  bool leads() const { return request_.ranks.rank == 0; }

  void hold(const std::optional<RunFolder>& folder) {
    if (!folder) return;
    files_.emplace(RunFiles::Run{.folder = *folder,
                                 .resolved = resolved_,
                                 .corpus = corpus_,
                                 .state = state_,
                                 .observer = observer_,
                                 .validation_pairs = validation_pairs_});
    best_.emplace(folder->path());
  }

  void keep_best(double validation_loss) {
    if (!resolved_.recipe.run.keep_best || !std::isfinite(validation_loss)) return;
    if (!first_decides(leads() && best_->improves(validation_loss))) return;
    if (!leads()) return tell_shares(step_);
    files_->check_in_place();
    best_->keep(step_, state_, validation_loss);
  }

  bool shares() const { return step_.shares(); }
  // What all ranks save together, the first one decides; of a state that it knows alone, for itself.
  bool first_decides(bool own) { return shares() ? exchange_values(context_.queue(), request_.ranks, own ? 1 : 0).front() != 0 : own; }

  TrainingResult train() {
    const std::int64_t steps = resolved_.recipe.run.steps;
    observer_.started({.folder = folder(),
                       .resolved = &resolved_,
                       .parameters = trace_.parameters,
                       .bytes = trace_.bytes(),
                       .matrix_flops = trace_.matrix_flops(),
                       .first_step = state_.step + 1,
                       .data = corpus_.facts()});
    watch_ranks();
    while (state_.step < steps && signal_ == 0) {
      const TrainingProgress progress = take_step();
      const RunConfig& run = resolved_.recipe.run;
      const bool last = state_.step == steps;
      std::optional<ValidationLoss> validated;
      if (run.validate_every > 0 && state_.step % run.validate_every == 0 && !last) {
        validated = step_.validate(corpus_.validation(batch_shape(resolved_)), [this] { return stopped_by() != 0; });
        if (!alone() && !validated) note_signal();
      }
      if (files_) files_->keep_metrics(progress, validated);
      if (validated) keep_best(validated->loss);
      if (validated) observer_.validated(state_.step, *validated);
      check_folder();
      if (alone()) stopped_by();
      const ProfiledSteps& profile = request_.profile;
      if (profile.contain(state_.step) && (last || signal_ != 0 || !profile.contain(state_.step + 1))) keep_profile();
      if (last || signal_ != 0 || (run.checkpoint_every > 0 && state_.step % run.checkpoint_every == 0)) save();
      if (signal_ != 0 && !lost_.empty()) throw Error(lost_text());
    }
    return signal_ != 0 ? interrupted() : ended();
  }

  void watch_ranks() {
    if (alone()) return;
    watch_.emplace(WatchedRanks{.folder = std::filesystem::path(told_by_first(context_, folder().string())) / kRanksFolder,
                                .rank = request_.ranks.rank,
                                .count = request_.ranks.count,
                                .timeout_s = resolved_.recipe.run.rank_timeout,
                                .lost = request_.rank_lost});
  }

  void begin() {
    if (files_ && origin_) files_->hide_origin(*origin_);
    if (files_) files_->begin(trace_.trace, request_.device);
    state_.corpus = corpus_.fingerprint();
    state_.vocabulary = resolved_.shapes.vocabulary;
    state_.vocabulary_padded = resolved_.shapes.vocabulary_padded;
    state_.recipe_hash = hash_of(decisive(resolved_.recipe));
    if (!origin_) return;
    state_.position = batches_.position();
    save();  // the weights' file is not needed again
    if (files_) files_->show_origin();
  }

  bool alone() const { return request_.ranks.alone(); }
  std::filesystem::path folder() const { return files_ ? files_->folder() : std::filesystem::path(); }

  // What one rank or another was told; a rank that was told nothing by itself stops as if it were asked to end.
  int agreed_signal(int own) {
    if (alone()) return own;
    const std::vector<int> all = exchange_values(context_.queue(), request_.ranks, own);
    const auto told = std::find_if(all.begin(), all.end(), [](int signal) { return signal != 0; });
    return own != 0 || told == all.end() ? own : *told;
  }
  void note_signal() {
    if (signal_ == 0) signal_ = SIGTERM;
  }

  // The first rank looks for the checkpoint, which all of them then read.
  void restore(bool was_ended) {
    const std::filesystem::path checkpoint = told_by_first(context_, leads() ? newest_checkpoint(was_ended) : "");
    if (checkpoint.empty()) {
      if ((signal_ = agreed_signal(observer_.beginning())) != 0) return;
      if (best_ && resolved_.recipe.run.keep_best) best_->go_on_from(0);
      if (files_) files_->remove_summary();
      begin();
      return;
    }
    const std::filesystem::path folder = checkpoint.parent_path().parent_path();
    const bool forced = request_.run.overwrite == Overwrite::force;
    state_ = restore_training({.folder = checkpoint}, step_);
    const std::int64_t steps = resolved_.recipe.run.steps;
    TW_CHECK_INPUT(state_.step <= steps, folder.string(), " has done ", state_.step, " steps and run.steps = ", steps,
                   " asks for fewer; resume it with run.steps of at least ", state_.step, ", or start a new run.");
    const Schedule schedule = schedule_of(resolved_.recipe);
    if (state_.step < steps && schedule.ends() && steps > schedule.decay_steps) {
      observer_.noted(concat("the ", schedule.kind == ScheduleKind::cosine ? "cosine" : "fall",
                             " of this run's learning rate ends at step ", schedule.decay_steps,
                             ", as settled when the run began: the steps behind it ",
                             schedule.least > 0.0 ? concat("keep the rate at ", schedule.least) : "change nothing",
                             ". --set schedule.decay_steps=", steps, " with --force lets it end there."));
    }
    const std::string recipe_hash = hash_of(decisive(resolved_.recipe));
    TW_CHECK_INPUT(forced || state_.recipe_hash == recipe_hash, checkpoint.string(), " was trained by another recipe than ",
                   (folder / "recipe.toml").string(),
                   " is now, or by an earlier tilewave; bring the old one back, start a new run, or insist with --force.");
    const bool same_corpus = state_.corpus == corpus_.fingerprint();
    const bool lost_tokenizer = files_ && files_->lost_tokenizer();
    TW_CHECK_INPUT(
        forced || same_corpus, folder.string(),
        " was trained on another corpus than the recipe names now: its text, its split or its tokenizer has changed; bring back the "
        "old files",
        lost_tokenizer ? concat(", ", corpus_.tokenizer()->file_name(), " among them, which is gone from the folder") : "",
        ", start a new run, or insist with --force.");
    state_.corpus = corpus_.fingerprint();
    state_.vocabulary_padded = resolved_.shapes.vocabulary_padded;
    state_.recipe_hash = recipe_hash;
    batches_.restore(state_.position);
    note_older_passes();
    if ((signal_ = agreed_signal(observer_.beginning())) != 0 || !files_) return;
    if (resolved_.recipe.run.keep_best) best_->go_on_from(state_.step);
    files_->remove_summary();
    if (lost_tokenizer) files_->write_tokenizer_again(same_corpus);
    files_->go_on(trace_.trace, request_.device);
  }

  // Its folder, relative to where the run's stands; empty where the run starts from its first step.
  std::string newest_checkpoint(bool was_ended) {
    const std::filesystem::path& folder = files_->folder();
    const CheckpointSearch search = find_latest_valid(folder);
    for (const std::string& reason : search.skipped) observer_.noted(reason);
    if (search.newest) return search.newest->folder.string();
    // A save that was cut off leaves no complete one.
    const bool forced = request_.run.overwrite == Overwrite::force;
    TW_CHECK_INPUT(!files_->has_origin(), folder.string(),
                   " was begun with weights of a file, and has no valid checkpoint that holds them; start a new run with --weights.");
    TW_CHECK_INPUT(forced || (!was_ended && !has_complete_checkpoints(folder)), folder.string(),
                   " has no checkpoint that can be used, and steps would be lost: bring one back, start from the first step with --resume "
                   "--force, or choose another --run.");
    observer_.noted(concat(folder.string(), " has no valid checkpoint yet: the run starts from its first step."));
    return {};
  }

  void note_older_passes() {
    const DataKind kind = corpus_.config().kind;
    if (state_.position.rows_before || (kind != DataKind::text && kind != DataKind::tokens)) return;
    observer_.noted(
        "an earlier tilewave began this run: its passes over the data leave out what a full batch cuts off a sequence. It goes on so, and "
        "its steps stay what they would have been; a new run sees every token.");
  }

  TrainingProgress take_step() {
    const auto start = std::chrono::steady_clock::now();
    batches_.next_step();
    profiler_.begin_step(state_.step + 1);
    context_.profile(request_.profile.contain(state_.step + 1) ? &profiler_ : nullptr);
    if (!alone() && stopped_by() != 0) step_.ask_to_stop();
    step_.submit(batches_.current(), state_.step + 1);
    batches_.draw_ahead();  // while a GPU is at work
    const StepReport report = step_.collect();
    if (context_.profiling()) ++profiled_steps_;
    context_.profile(nullptr);  // validation is no part of a step
    if (report.skipped()) {
      observer_.noted(concat("step ", report.step, ": the gradients are not finite in fp16, so nothing was updated; the loss scale is now ",
                             report.loss_scale, "."));
    } else if (!report.finite) {
      TW_CHECK(!report.scale_exhausted, "step ", report.step, ": the gradients are not finite although the loss scale is down to ",
               report.loss_scale,
               "; nothing was updated and the last checkpoint stands. Try --set run.precision=bf16, or a smaller "
               "optimizer.learning_rate.");
      throw Error(concat("step ", report.step, ": the loss or the gradient norm is not finite, first in ",
                         first_nonfinite(step_, batches_.current(), report.step),
                         "; nothing was updated and the last checkpoint stands. Try a smaller optimizer.learning_rate or a longer "
                         "schedule.warmup_steps."));
    }
    if (report.stop_asked) note_signal();
    const double seconds = seconds_since(start);
    state_.step = report.step;
    state_.position = batches_.position();
    if (std::isfinite(report.loss)) state_.loss = report.loss;
    state_.elapsed_s += seconds;
    state_.target_tokens += report.target_tokens;
    const TrainingProgress progress{
        .step = report, .target_tokens_per_s = static_cast<double>(report.target_tokens) / seconds, .elapsed_s = state_.elapsed_s};
    observer_.stepped(progress);
    return progress;
  }

  void keep_profile() {
    const std::vector<ProfiledLaunch> launches = profiler_.take();
    if (files_) files_->keep_profile(launches);
    observer_.profiled(launches, std::exchange(profiled_steps_, 0));
  }

  void note_what_is_left_out(std::int64_t skipped_validation) {
    const CorpusFacts& facts = corpus_.facts();
    if (facts.blank > 0) observer_.noted(concat("training pairs left out for a blank side: ", facts.blank, "."));
    if (facts.blank_validation > 0) observer_.noted(concat("validation pairs left out for a blank side: ", facts.blank_validation, "."));
    if (batches_.skipped() > 0) {
      observer_.noted(concat(batches_.skipped(), " of ", facts.training, " training pairs are longer than batch.sequence = ",
                             resolved_.recipe.batch.sequence, " or than the batch, and left out."));
    }
    if (skipped_validation > 0) {
      observer_.noted(
          concat(skipped_validation, " of ", facts.validation, " validation pairs are as long, and left out of the validation loss."));
    }
  }

  void save() {
    if (!leads() && shares()) tell_shares(step_);
    if (!files_) return;
    files_->check_in_place();
    files_->sync();
    save_training(files_->folder(), step_, state_, resolved_.recipe.run.keep);
    files_->check_in_place();
    files_->saved();
  }

  // What a person takes out of the folder while its run is under way: all that is known is saved, and the run ends with what is missing.
  // Where ranks have shares, all of them save behind the next step.
  void check_folder() {
    if (!files_ || !lost_.empty()) return;
    files_->check_in_place();
    lost_ = files_->missing();
    if (lost_.empty()) return;
    if (shares()) return step_.ask_to_stop();
    save();
    throw Error(lost_text());
  }

  std::string lost_text() const {
    return concat(files_->folder().string(), ": while its run was under way, this was removed, renamed or replaced: ", lost_,
                  "; the run has ended with step ", state_.step,
                  ", whose checkpoint is saved: put back what there is of it, and go on with --resume.");
  }

  TrainingResult result() const {
    return {.folder = folder(),
            .steps = state_.step,
            .loss = state_.loss,
            .samples = {},
            .target_tokens_per_s = state_.elapsed_s > 0.0 ? static_cast<double>(state_.target_tokens) / state_.elapsed_s : 0.0,
            .seconds = state_.elapsed_s,
            .matrix_flops_per_s = state_.elapsed_s > 0.0 ? static_cast<double>(request_.ranks.count) * static_cast<double>(state_.step) *
                                                               static_cast<double>(trace_.matrix_flops()) / state_.elapsed_s
                                                         : 0.0,
            .extra_passes = step_.extra_passes()};
  }

  // The signal that asks the run to stop, once there is one.
  int stopped_by() {
    if (signal_ == 0) signal_ = request_.stop_signal();
    return signal_;
  }

  TrainingResult interrupted() const {
    TrainingResult stopped = result();
    stopped.signal = signal_;
    return stopped;
  }

  TrainingResult ended() {
    observer_.saved(folder());
    TrainingResult result = this->result();
    const std::optional<ValidationLoss> validated =
        step_.validate(corpus_.validation(batch_shape(resolved_)), [this] { return stopped_by() != 0; });
    if (!validated) {
      if (!alone()) note_signal();
      return interrupted();
    }
    result.validation = *validated;
    result.validation_pairs = validation_pairs_;
    TW_CHECK(std::isfinite(result.validation.loss), "the validation loss is ", result.validation.loss,
             " after the last step, so the run has not ended as one; try a smaller optimizer.learning_rate.");
    keep_best(result.validation.loss);
    if (!leads()) return result;
    if (resolved_.recipe.run.keep_best) result.best = best_->found();
    if (stopped_by() == 0 && !sees_pictures(resolved_.recipe.model)) {
      const TranslationLimits limits{.bytes = [this] { return room_for_decoding(); }, .interrupted = [this] { return stopped_by() != 0; }};
      translate_test_pairs(step_.model(), corpus_, resolved_.recipe, limits, observer_.noted, result);
    }
    if (signal_ != 0) return interrupted();
    check_folder();
    TW_CHECK(lost_.empty(), lost_text());
    files_->keep_summary(result);
    files_->check_in_place();
    return result;
  }

  // The memory that the steps leave, so that what was enough for them is enough to the end.
  std::int64_t room_for_decoding() {
    batches_.drop();
    step_.release_step_memory();
    const std::int64_t bytes = trace_.bytes() - trace_.persistent_bytes;
    const std::optional<std::int64_t> free = free_bytes(context_.queue());
    return free ? std::clamp<std::int64_t>(*free / 2, 1, bytes) : bytes;
  }

  const TrainingRequest& request_;
  const TrainingObserver& observer_;
  const Corpus& corpus_;
  ResolvedRecipe resolved_;
  StepTrace trace_;
  Context context_;
  TrainStep step_;
  StepBatches batches_;
  PairCounts validation_pairs_;
  Profiler profiler_;
  TrainingState state_;
  std::int64_t profiled_steps_ = 0;  // of those asked for, in this process
  int signal_ = 0;
  std::string lost_;  // of the run's folder
  std::optional<RunFiles> files_;
  std::optional<BestCheckpoint> best_;
  std::optional<RankWatch> watch_;
  std::optional<WeightOrigin> origin_;  // of the weights that a run begins with, where they are a file's
};

}  // namespace

TrainingResult train(const TrainingRequest& request, const TrainingObserver& observer) {
  check_supported(request.recipe, request.device.backend);
  check_files(request.recipe);
  const bool leads = request.ranks.rank == 0;
  if (request.run.start == RunStart::resume) {
    TW_CHECK_INPUT(request.weights.path.empty(), "--weights ", request.weights.path.string(),
                   " are a new run's, and one that --resume goes on with has its own; leave one of the two out.");
    Queue queue = request.queue;
    const std::optional<RunFolder> folder = leads ? std::optional<RunFolder>(std::in_place, request.run) : std::nullopt;
    const std::filesystem::path path = exchange(queue, request.ranks, folder ? folder->path().string() : "").front();
    const Recipe recipe = resumed_recipe(request.recipe, path, request.run.overwrite);
    const Corpus corpus = read_corpus(recipe, stored_tokenizer(path), observer);
    return Run(request, observer, corpus, PlannedStep(request, observer, recipe, corpus, path)).resume(folder);
  }
  if (leads) check_start(request.run);
  check_tokenizer(request.recipe);
  const Corpus corpus = read_corpus(request.recipe, std::nullopt, observer);
  return Run(request, observer, corpus, PlannedStep(request, observer, request.recipe, corpus)).start();
}

}  // namespace tilewave
