// The run, from its folder to its summary.
#include "models/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <utility>

#include "framework/io/file.h"
#include "framework/tensor/host_tensor.h"
#include "models/decoding/decode.h"
#include "models/decoding/decoding_memory.h"
#include "models/planning/wave_free.h"
#include "models/recipe/corpus_of.h"
#include "models/step/memory_check.h"
#include "models/step/step_batches.h"
#include "models/step/step_plans.h"
#include "models/training/resumed_recipe.h"
#include "models/training/training_state.h"

namespace tilewave {
namespace {

constexpr std::size_t kSamples = 5;
constexpr const char* kTokenizerFile = "tokenizer.model";
constexpr const char* kMetricsFile = "metrics.jsonl";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::optional<Tokenizer> stored_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kTokenizerFile;
  return is_there(path) ? std::optional(Tokenizer::load(path)) : std::nullopt;
}

// Names the first tensor that is not finite by doing the step again, launch by launch, without its update.
std::string first_nonfinite(TrainStep& step, const PassBatches& batches, std::int64_t number) {
  Context& context = step.context();
  std::string found;
  context.inspect([&](const std::string& layer, std::string_view what, const Tensor& tensor) {
    if (!found.empty() || tensor.dtype() == DType::i32) return;
    const std::int64_t piece_rows = rows_of_piece(tensor, sizeof(double));
    for (std::int64_t first = 0; first < tensor.rows() && found.empty(); first += piece_rows) {
      const std::vector<double> elements = read_elements(context, tensor.slice_rows(first, std::min(piece_rows, tensor.rows() - first)));
      const auto bad = std::find_if(elements.begin(), elements.end(), [](double element) { return !std::isfinite(element); });
      if (bad == elements.end()) continue;
      const std::int64_t index = first * tensor.cols() + (bad - elements.begin());
      found = sentence(what, " in ", layer.empty() ? "the model" : layer, ", row ", index / tensor.cols(), ", column ",
                       index % tensor.cols(), " (", *bad, ")");
    }
  });
  for (const Parameter& parameter : step.model().parameters().all()) context.inspected(parameter.spec.name, "the weight", parameter.master);
  step.submit(batches, number, Update::no);
  context.inspect({});
  return found.empty() ? "the sum of the gradients' squares" : found;
}

// The plans that the run began with, where it is resumed as it was; else those that the recipe asks to be measured.
GemmPlans plans_of(const ResolvedRecipe& resolved, const StepPlansRequest& request, const RunFolder* resumed) {
  if (resumed != nullptr && read_recipe(resumed->path() / "recipe.toml").gemm == resolved.recipe.gemm) {
    GemmPlans plans = stored_plans(resumed->path(), request);
    if (!plans.empty()) return plans;
  }
  return plans_for_step(resolved, request);
}

// Test pairs as ids, as far as the model can translate them and say what is expected.
struct TestPairs {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<const TextPair*> pairs;  // of the sources
};
TestPairs test_pairs_of(const Corpus& corpus, const Recipe& recipe) {
  TestPairs asked;
  if (recipe.model.architecture != Architecture::encoder_decoder) return asked;
  const auto fits = [&](const std::vector<std::int32_t>& ids) { return std::ssize(ids) <= recipe.batch.sequence; };
  for (const TextPair& pair : corpus.test_pairs()) {
    std::vector<std::int32_t> ids = corpus.tokenizer()->encode(pair.source);
    if (!fits(ids) || !fits(corpus.tokenizer()->encode(pair.target))) continue;
    asked.sources.push_back(std::move(ids));
    asked.pairs.push_back(&pair);
  }
  return asked;
}

// The trace of the step and of what follows the last one; throws where it does not fit into memory.
StepTrace traced(const ResolvedRecipe& resolved, const TrainingRequest& request, const GemmPlans& plans, const Corpus& corpus) {
  StepTrace trace = trace_step(resolved, request.device, plans);
  std::size_t longest = 0;
  for (const std::vector<std::int32_t>& source : test_pairs_of(corpus, resolved.recipe).sources) longest = std::max(longest, source.size());
  if (longest > 0) trace.decoding_bytes = least_decoding_bytes(resolved, request.device, static_cast<std::int64_t>(longest));
  Queue queue = request.queue;
  if (const std::optional<std::int64_t> free = free_bytes(queue)) check_memory(resolved, trace, request.device, *free);
  return trace;
}

bool trains_tokenizer(const DataConfig& data) { return data.tokenizer == TokenizerKind::bpe && uses_tokenizer(data); }

// What takes its time before the first step.
void note_reading(const DataConfig& data, bool and_training, const TrainingObserver& observer) {
  if (data.kind == DataKind::number_names || data.kind == DataKind::synthetic) return;
  observer.noted(sentence("reading ", data.source, and_training ? " and training a tokenizer on it" : ""));
}

PairCounts validation_pairs_of(const Corpus& corpus, const BatchStream& validation) {
  const DataKind kind = corpus.config().kind;
  if (kind != DataKind::parallel && kind != DataKind::number_names) return {};
  const CorpusFacts& facts = corpus.facts();
  return {.all = facts.validation + facts.blank_validation, .left_out = validation.skipped() + facts.blank_validation};
}

// The loss beside what it is the mean over and what it leaves out.
void add_validation(JsonObject& object, const ValidationLoss& validation, const PairCounts& pairs) {
  object.add("validation_loss", validation.loss).add("validation_tokens", validation.target_tokens);
  if (pairs.all > 0) object.add("validation_pairs", pairs.all).add("validation_pairs_left_out", pairs.left_out);
}

Corpus read_corpus(const Recipe& recipe, std::optional<Tokenizer> tokenizer, const TrainingObserver& observer) {
  Corpus corpus = corpus_of(recipe, std::move(tokenizer));
  for (const std::string& note : corpus.notes()) observer.noted(note);
  return corpus;
}

// A step that can be run: all that may be refused about it is known before a folder is made.
struct PlannedStep {
  PlannedStep(const TrainingRequest& request, const TrainingObserver& observer, const Recipe& recipe, const Corpus& corpus,
              const RunFolder* resumed = nullptr)
      : resolved(resolve_with(corpus, recipe, request.device)),
        plans(plans_of(resolved, {.queue = request.queue, .device = request.device, .noted = observer.noted}, resumed)),
        trace(traced(resolved, request, plans, corpus)),
        batches(corpus, batch_shape(resolved), resolved.recipe.batch.accumulate),
        validation(corpus.validation(batch_shape(resolved))) {}

  ResolvedRecipe resolved;
  GemmPlans plans;
  StepTrace trace;
  StepBatches batches;
  BatchStream validation;
};

// All that a run allocates comes before its folder, so that memory which is not there costs no folder and no run that --force gives up.
class Run {
 public:
  Run(const TrainingRequest& request, const TrainingObserver& observer, const Corpus& corpus, PlannedStep planned)
      : request_(request),
        observer_(observer),
        corpus_(corpus),
        resolved_(std::move(planned.resolved)),
        trace_(std::move(planned.trace)),
        context_(request.queue, request.device, context_options(resolved_.recipe, planned.plans)),
        step_(context_, resolved_),
        batches_(std::move(planned.batches)),
        validation_pairs_(validation_pairs_of(corpus, planned.validation)) {
    step_.use_step_memory(trace_);
    note_what_is_left_out(planned.validation.skipped());
  }

  TrainingResult start() {
    if (const int signal = observer_.beginning(); signal != 0) return {.signal = signal};
    const RunFolder folder(request_.run);
    hold(folder);
    begin();
    return train();
  }

  TrainingResult resume(const RunFolder& folder) {
    hold(folder);
    restore(folder.state() == RunState::ended);
    return signal_ != 0 ? TrainingResult{.signal = signal_} : train();
  }

 private:
  void hold(const RunFolder& folder) {
    run_folder_ = &folder;
    folder_ = folder.path();
  }

  TrainingResult train() {
    const std::int64_t steps = resolved_.recipe.run.steps;
    observer_.started({.folder = folder_,
                       .resolved = &resolved_,
                       .parameters = trace_.parameters,
                       .bytes = trace_.bytes(),
                       .matrix_flops = trace_.matrix_flops(),
                       .first_step = state_.step + 1,
                       .data = corpus_.facts()});
    while (state_.step < steps && signal_ == 0) {
      const TrainingProgress progress = take_step();
      const RunConfig& run = resolved_.recipe.run;
      const bool last = state_.step == steps;
      std::optional<ValidationLoss> validated;
      if (run.validate_every > 0 && state_.step % run.validate_every == 0 && !last) {
        validated = step_.validate(corpus_.validation(batch_shape(resolved_)), [this] { return stopped_by() != 0; });
        if (validated) observer_.validated(state_.step, validated->loss);
      }
      keep_metrics(progress, validated);
      check_folder();
      stopped_by();
      const ProfiledSteps& profile = request_.profile;
      if (profile.contain(state_.step) && (last || signal_ != 0 || !profile.contain(state_.step + 1))) save_profile();
      if (last || signal_ != 0 || (run.checkpoint_every > 0 && state_.step % run.checkpoint_every == 0)) save();
    }
    return signal_ != 0 ? interrupted() : ended();
  }

  bool keeps_tokenizer() const { return corpus_.tokenizer() && corpus_.tokenizer()->kind() == TokenizerKind::bpe; }

  void begin() {
    store_recipe(folder_, resolved_);
    if (keeps_tokenizer()) corpus_.tokenizer()->save(folder_ / kTokenizerFile);
    store_plans(folder_, trace_.trace, request_.device);
    metrics_.emplace(JsonLines::create(folder_ / kMetricsFile));
    state_.corpus = corpus_.fingerprint();
    state_.vocabulary = resolved_.shapes.vocabulary;
    state_.vocabulary_padded = resolved_.shapes.vocabulary_padded;
    state_.recipe_hash = hash_of(decisive(resolved_.recipe));
  }

  void restore(bool was_ended) {
    const CheckpointSearch search = find_latest_valid(folder_);
    for (const std::string& reason : search.skipped) observer_.noted(reason);
    const bool forced = request_.run.overwrite == Overwrite::force;
    if (!search.newest) {  // a save that was cut off leaves no complete one
      TW_CHECK_INPUT(
          forced || (!was_ended && !has_complete_checkpoints(folder_)), folder_.string(),
          " has no checkpoint that can be used, and steps would be lost: bring one back, start from the first step with --resume "
          "--force, or choose another --run.");
      observer_.noted(sentence(folder_.string(), " has no valid checkpoint yet: the run starts from its first step."));
      if ((signal_ = observer_.beginning()) != 0) return;
      remove_file(folder_ / "summary.json");
      begin();
      return;
    }
    state_ = restore_training(*search.newest, step_);
    const std::int64_t steps = resolved_.recipe.run.steps;
    TW_CHECK_INPUT(state_.step <= steps, folder_.string(), " has done ", state_.step, " steps and run.steps = ", steps,
                   " asks for fewer; resume it with run.steps of at least ", state_.step, ", or start a new run.");
    const Schedule schedule = schedule_of(resolved_.recipe);
    if (state_.step < steps && schedule.kind == ScheduleKind::cosine && steps > schedule.decay_steps) {
      observer_.noted(sentence("the cosine of this run's learning rate ends at step ", schedule.decay_steps,
                               ", as settled when the run began: the steps behind it change nothing. --set schedule.decay_steps=", steps,
                               " with --force lets it end there."));
    }
    const std::string recipe_hash = hash_of(decisive(resolved_.recipe));
    TW_CHECK_INPUT(forced || state_.recipe_hash == recipe_hash, search.newest->folder.string(), " was trained by another recipe than ",
                   (folder_ / "recipe.toml").string(),
                   " is now, or by an earlier tilewave; bring the old one back, start a new run, or insist with --force.");
    const bool same_corpus = state_.corpus == corpus_.fingerprint();
    const bool lost_tokenizer = keeps_tokenizer() && !is_there(folder_ / kTokenizerFile);
    TW_CHECK_INPUT(
        forced || same_corpus, folder_.string(),
        " was trained on another corpus than the recipe names now: its text, its split or its tokenizer has changed; bring back the "
        "old files",
        lost_tokenizer ? ", tokenizer.model among them, which is gone from the folder" : "", ", start a new run, or insist with --force.");
    state_.corpus = corpus_.fingerprint();
    state_.vocabulary_padded = resolved_.shapes.vocabulary_padded;
    state_.recipe_hash = recipe_hash;
    batches_.restore(state_.position);
    note_older_passes();
    if ((signal_ = observer_.beginning()) != 0) return;
    remove_file(folder_ / "summary.json");
    store_plans(folder_, trace_.trace, request_.device);
    write_file_atomically(folder_ / "recipe.toml", to_toml(resolved_.recipe));
    if (lost_tokenizer) write_tokenizer_again(same_corpus);
    metrics_.emplace(JsonLines::resume(folder_ / kMetricsFile, state_.step));
    note_missing_lines();
    saved_step_ = state_.step;
  }

  // The same text makes the same tokenizer, and the corpus' fingerprint, which counts it in, says whether it is.
  void write_tokenizer_again(bool same_corpus) {
    corpus_.tokenizer()->save(folder_ / kTokenizerFile);
    observer_.noted(sentence((folder_ / kTokenizerFile).string(), " was gone and is written again, trained on the text that is there now, ",
                             same_corpus
                                 ? "the same as it was."
                                 : "which is not the run's: its ids may mean other pieces than those the weights were trained on."));
  }

  void note_missing_lines() {
    const JsonLines::Missing missing = metrics_->missing();
    if (missing.steps == 0) return;
    observer_.noted(sentence((folder_ / kMetricsFile).string(), " has no line of ", missing.steps, " of the ", state_.step,
                             " steps done, the first of them step ", missing.first,
                             ": their losses are lost, and the run goes on without."));
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
    context_.profile(request_.profile.contain(state_.step + 1) ? &profiler_ : nullptr);
    step_.submit(batches_.current(), state_.step + 1);
    batches_.draw_ahead();  // while a GPU is at work
    const StepReport report = step_.collect();
    if (context_.profiling()) ++profiled_steps_;
    context_.profile(nullptr);  // validation is no part of a step
    if (report.skipped()) {
      observer_.noted(sentence("step ", report.step,
                               ": the gradients are not finite in fp16, so nothing was updated; the loss scale is now ", report.loss_scale,
                               "."));
    } else if (!report.finite) {
      TW_CHECK(!report.scale_exhausted, "step ", report.step, ": the gradients are not finite although the loss scale is down to ",
               report.loss_scale,
               "; nothing was updated and the last checkpoint stands. Try --set run.precision=bf16, or a smaller "
               "optimizer.learning_rate.");
      throw Error(sentence("step ", report.step, ": the loss or the gradient norm is not finite, first in ",
                           first_nonfinite(step_, batches_.current(), report.step),
                           "; nothing was updated and the last checkpoint stands. Try a smaller optimizer.learning_rate or a longer "
                           "schedule.warmup_steps."));
    }
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

  void keep_metrics(const TrainingProgress& progress, const std::optional<ValidationLoss>& validation) {
    const StepReport& report = progress.step;
    JsonObject line;
    line.add("step", report.step)
        .add("loss", report.loss)
        .add("learning_rate", report.learning_rate)
        .add("gradient_norm", report.gradient_norm)
        .add("target_tokens", report.target_tokens)
        .add("target_tokens_per_s", progress.target_tokens_per_s)
        .add("elapsed_s", progress.elapsed_s);
    if (validation) add_validation(line, *validation, validation_pairs_);
    metrics_->append(line);
  }

  // The launches of the profiled steps, a line each.
  void save_profile() {
    const std::vector<ProfiledLaunch> launches = profiler_.take();
    std::string lines;
    for (const ProfiledLaunch& launch : launches) {
      JsonObject line;
      line.add("layer", launch.entry.layer).add("operation", launch.entry.operation).add("time_us", 1e6 * launch.seconds);
      line.add("flops", launch.entry.cost.flops).add("bytes", launch.entry.cost.bytes);
      if (launch.entry.gemm) {
        const GemmProblem& gemm = *launch.entry.gemm;
        line.add("role", name_of(gemm.role)).add("m", gemm.m).add("n", gemm.n).add("k", gemm.k);
      }
      if (launch.entry.plan) line.add("row", launch.entry.plan->row).add("predicted_us", 1e6 * launch.entry.plan->predicted_s);
      lines += line.text() + "\n";
    }
    write_file_atomically(folder_ / "profile.jsonl", lines);
    observer_.profiled(launches, std::exchange(profiled_steps_, 0));
  }

  void note_what_is_left_out(std::int64_t skipped_validation) {
    const CorpusFacts& facts = corpus_.facts();
    if (facts.blank > 0) observer_.noted(sentence("training pairs left out for a blank side: ", facts.blank, "."));
    if (facts.blank_validation > 0) observer_.noted(sentence("validation pairs left out for a blank side: ", facts.blank_validation, "."));
    if (batches_.skipped() > 0) {
      observer_.noted(sentence(batches_.skipped(), " of ", facts.training, " training pairs are longer than batch.sequence = ",
                               resolved_.recipe.batch.sequence, " or than the batch, and left out."));
    }
    if (skipped_validation > 0) {
      observer_.noted(
          sentence(skipped_validation, " of ", facts.validation, " validation pairs are as long, and left out of the validation loss."));
    }
  }

  void save() {
    check_in_place();
    metrics_->sync();
    save_training(folder_, step_, state_, resolved_.recipe.run.keep);
    check_in_place();
    saved_step_ = state_.step;
  }

  // What is written to a folder that is gone, or to another one in its place, would be no run.
  void check_in_place() const {
    if (run_folder_->in_place()) return;
    const std::string lost = saved_step_ == state_.step ? "no step is lost if it is only elsewhere"
                             : saved_step_ > 0          ? sentence("the steps behind the checkpoint of step ", saved_step_, " are lost")
                                                        : sentence("nothing of it was saved yet, and its ", state_.step, " steps are lost");
    throw Error(sentence(folder_.string(),
                         ": this folder, or the .lock in it, was removed, renamed or replaced while its run was under way, and the run has "
                         "ended with step ",
                         state_.step, ": ", lost, "; put the folder back and go on with --resume, or start a new run."));
  }

  // What a person takes out of the folder while its run is under way: all that is known is saved, and the run ends with what is missing.
  void check_folder() {
    check_in_place();
    const auto there = [this](const char* name) { return is_there(folder_ / name); };
    std::string lost;
    const auto add = [&](const std::string& part) { lost += (lost.empty() ? "" : ", ") + part; };
    if (!there("recipe.toml")) add("recipe.toml (which makes it a run)");
    if (keeps_tokenizer() && !there(kTokenizerFile)) add("tokenizer.model (which --resume writes again)");
    if (saved_step_ > 0 && !there("checkpoints")) add(sentence("checkpoints/ (with those up to step ", saved_step_, ")"));
    if (!metrics_->in_place()) add(sentence("metrics.jsonl (with the lines of steps 1 to ", state_.step, ")"));
    if (lost.empty()) return;
    save();
    throw Error(sentence(folder_.string(), ": while its run was under way, this was removed, renamed or replaced: ", lost,
                         "; the run has ended with step ", state_.step,
                         ", whose checkpoint is saved: put back what there is of it, and go on with --resume."));
  }

  TrainingResult result() const {
    return {.folder = folder_,
            .steps = state_.step,
            .loss = state_.loss,
            .samples = {},
            .target_tokens_per_s = state_.elapsed_s > 0.0 ? static_cast<double>(state_.target_tokens) / state_.elapsed_s : 0.0,
            .seconds = state_.elapsed_s,
            .matrix_flops_per_s = state_.elapsed_s > 0.0
                                      ? static_cast<double>(state_.step) * static_cast<double>(trace_.matrix_flops()) / state_.elapsed_s
                                      : 0.0};
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
    observer_.saved(folder_);
    TrainingResult result = this->result();
    const std::optional<ValidationLoss> validated =
        step_.validate(corpus_.validation(batch_shape(resolved_)), [this] { return stopped_by() != 0; });
    if (!validated) return interrupted();
    result.validation = *validated;
    result.validation_pairs = validation_pairs_;
    TW_CHECK(std::isfinite(result.validation.loss), "the validation loss is ", result.validation.loss,
             " after the last step, so the run has not ended as one; try a smaller optimizer.learning_rate.");
    if (stopped_by() == 0) translate_test_pairs(result);
    if (signal_ != 0) return interrupted();
    JsonObject summary;
    summary.add("steps", result.steps);
    add_numbers(summary, result);
    summary.add("target_tokens_per_s", result.target_tokens_per_s).add("seconds", result.seconds);
    check_folder();
    write_file_atomically(folder_ / "summary.json", summary.text() + "\n");
    check_in_place();
    return result;
  }

  void translate_test_pairs(TrainingResult& result) {
    const TestPairs asked = test_pairs_of(corpus_, resolved_.recipe);
    if (corpus_.test_pairs().empty() || resolved_.recipe.model.architecture != Architecture::encoder_decoder) return;
    result.test_pairs.all = std::ssize(corpus_.test_pairs());
    result.test_pairs.left_out = result.test_pairs.all - std::ssize(asked.pairs);
    if (result.test_pairs.left_out > 0) {
      observer_.noted(sentence(result.test_pairs.left_out, " of ", result.test_pairs.all, " test pairs are longer than batch.sequence = ",
                               resolved_.recipe.batch.sequence, " on a side and not translated; they count as not matched."));
    }
    const std::optional<std::vector<std::vector<std::int32_t>>> targets = translations_of(asked, result);
    if (!targets || signal_ != 0) return;
    const Tokenizer& tokenizer = *corpus_.tokenizer();
    std::size_t exact = 0;
    for (std::size_t i = 0; i < targets->size(); ++i) {
      const std::string translation = tokenizer.decode((*targets)[i]);
      const TextPair& pair = *asked.pairs[i];
      if (translation == tokenizer.decode(tokenizer.encode(pair.target))) ++exact;  // which may know fewer kinds of spaces
      if (i < kSamples) result.samples.push_back({.source = pair.source, .expected = pair.target, .translation = translation});
    }
    result.exact_match = static_cast<double>(exact) / static_cast<double>(result.test_pairs.all);
  }

  // In the memory that the steps leave, so that what was enough for them is enough to the end. None, and why, where even less is free.
  std::optional<std::vector<std::vector<std::int32_t>>> translations_of(const TestPairs& asked, TrainingResult& result) {
    batches_.drop();
    step_.release_step_memory();
    std::int64_t bytes = trace_.bytes() - trace_.persistent_bytes;
    if (const std::optional<std::int64_t> free = free_bytes(context_.queue())) bytes = std::clamp<std::int64_t>(*free / 2, 1, bytes);
    try {
      return translate(step_.model(), asked.sources,
                       {.vocabulary = corpus_.tokenizer()->vocabulary(),
                        .positions = resolved_.recipe.batch.sequence,
                        .bytes = bytes,
                        .interrupted = [&] { return stopped_by() != 0; }});
    } catch (const OutOfMemory& error) {
      result.not_translated = error.what();
    } catch (const std::bad_alloc&) {
      result.not_translated = "there is not enough memory to translate a sentence; free some, or raise the limit.";
    }
    observer_.noted(sentence("the test pairs are not translated: ", result.not_translated));
    return std::nullopt;
  }

  const TrainingRequest& request_;
  const TrainingObserver& observer_;
  const RunFolder* run_folder_ = nullptr;
  std::filesystem::path folder_;
  const Corpus& corpus_;
  ResolvedRecipe resolved_;
  StepTrace trace_;
  Context context_;
  TrainStep step_;
  StepBatches batches_;
  PairCounts validation_pairs_;
  Profiler profiler_;
  TrainingState state_;
  std::int64_t saved_step_ = 0;      // of the newest checkpoint; 0: there is none
  std::int64_t profiled_steps_ = 0;  // of those asked for, in this process
  int signal_ = 0;
  std::optional<JsonLines> metrics_;
};

}  // namespace

void add_numbers(JsonObject& object, const TrainingResult& result) {
  object.add("loss", result.loss);
  add_validation(object, result.validation, result.validation_pairs);
  if (result.exact_match) object.add("exact_match", *result.exact_match);
  if (result.test_pairs.all > 0) {
    object.add("test_pairs", result.test_pairs.all)
        .add("test_pairs_translated", result.exact_match ? result.test_pairs.counted() : 0)
        .add("test_pairs_left_out", result.test_pairs.left_out);
  }
  if (!result.not_translated.empty()) object.add("not_translated", result.not_translated);
}

TrainingResult train(const TrainingRequest& request, const TrainingObserver& observer) {
  check_supported(request.recipe, request.device.backend);
  check_files(request.recipe);
  if (request.run.start == RunStart::resume) {
    const RunFolder folder(request.run);
    const Recipe recipe = resumed_recipe(request.recipe, folder.path(), request.run.overwrite);
    const std::optional<Tokenizer> tokenizer = stored_tokenizer(folder.path());
    note_reading(recipe.data, !tokenizer && trains_tokenizer(recipe.data), observer);
    const Corpus corpus = read_corpus(recipe, tokenizer, observer);
    return Run(request, observer, corpus, PlannedStep(request, observer, recipe, corpus, &folder)).resume(folder);
  }
  check_start(request.run);
  note_reading(request.recipe.data, trains_tokenizer(request.recipe.data), observer);
  const Corpus corpus = read_corpus(request.recipe, std::nullopt, observer);
  return Run(request, observer, corpus, PlannedStep(request, observer, request.recipe, corpus)).start();
}

}  // namespace tilewave
