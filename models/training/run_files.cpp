#include "models/training/run_files.h"

#include "framework/io/file.h"
#include "models/step/step_plans.h"
#include "models/training/launch_trace.h"
#include "models/training/resumed_recipe.h"

namespace tilewave {
namespace {

constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kSummaryFile = "summary.json";
constexpr const char* kWeightsFile = "weights.json";

// The loss beside what it is the mean over and what it leaves out.
void add_validation(JsonObject& object, const ValidationLoss& validation, const PairCounts& pairs) {
  object.add("validation_loss", validation.loss)
      .add(validation.right ? "validation_pictures" : "validation_tokens", validation.target_tokens);
  if (const std::optional<double> accuracy = validation.accuracy()) object.add("validation_accuracy", *accuracy);
  if (pairs.all > 0) object.add("validation_pairs", pairs.all).add("validation_pairs_left_out", pairs.left_out);
}

}  // namespace

PairCounts validation_pairs_of(const Corpus& corpus, const BatchStream& validation) {
  const DataKind kind = corpus.config().kind;
  if (kind != DataKind::parallel && kind != DataKind::number_names) return {};
  const CorpusFacts& facts = corpus.facts();
  return {.all = facts.validation + facts.blank_validation, .left_out = validation.skipped() + facts.blank_validation};
}

void add_numbers(JsonObject& object, const TrainingResult& result) {
  object.add("loss", result.loss);
  add_validation(object, result.validation, result.validation_pairs);
  if (result.best) object.add("best_validation_loss", result.best->loss).add("best_step", result.best->step);
  if (result.exact_match) object.add("exact_match", *result.exact_match);
  if (result.test_pairs.all > 0) {
    object.add("test_pairs", result.test_pairs.all)
        .add("test_pairs_translated", result.exact_match ? result.test_pairs.counted() : 0)
        .add("test_pairs_left_out", result.test_pairs.left_out);
  }
  if (!result.not_translated.empty()) object.add("not_translated", result.not_translated);
}

bool RunFiles::keeps_tokenizer() const { return run_.corpus.tokenizer() && run_.corpus.tokenizer()->kind() != TokenizerKind::bytes; }

bool RunFiles::lost_tokenizer() const { return keeps_tokenizer() && !is_there(folder_ / run_.corpus.tokenizer()->file_name()); }

void RunFiles::begin(const Trace& plans, const DeviceInfo& device) {
  store_recipe(folder_, run_.resolved);
  if (keeps_tokenizer()) run_.corpus.tokenizer()->save_in(folder_);
  store_plans(folder_, plans, device);
  metrics_.emplace(JsonLines::create(folder_ / kMetricsFile));
  begin_events();
}

void RunFiles::begin_events() {
  if (run_.resolved.recipe.run.log == RunLog::tensorboard) events_.emplace(folder_);
}

void RunFiles::go_on(const Trace& plans, const DeviceInfo& device) {
  show_origin();
  store_plans(folder_, plans, device);
  write_file_atomically(folder_ / "recipe.toml", to_toml(run_.resolved.recipe));
  metrics_.emplace(JsonLines::resume(folder_ / kMetricsFile, run_.state.step));
  note_missing_lines();
  begin_events();
  saved_step_ = run_.state.step;
}

void RunFiles::hide_origin(const WeightOrigin& origin) const { write_file_atomically(folder_ / kHiddenWeights, to_json(origin)); }

void RunFiles::show_origin() const {
  if (!is_there(folder_ / kHiddenWeights)) return;
  rename_path(folder_ / kHiddenWeights, folder_ / kWeightsFile);
  sync_folder(folder_);
}

bool RunFiles::has_origin() const { return is_there(folder_ / kHiddenWeights) || is_there(folder_ / kWeightsFile); }

// The same text makes the same tokenizer, and the corpus' fingerprint, which counts it in, says whether it is.
void RunFiles::write_tokenizer_again(bool same_corpus) const {
  const Tokenizer& tokenizer = *run_.corpus.tokenizer();
  tokenizer.save_in(folder_);
  const DataConfig& data = run_.resolved.recipe.data;
  const std::string from =
      data.tokenizer_source() == TokenizerSource::file ? concat("from ", data.tokenizer) : "trained on the text that is there now";
  run_.observer.noted(concat((folder_ / tokenizer.file_name()).string(), " was gone and is written again, ", from, ", ",
                             same_corpus
                                 ? "the same as it was."
                                 : "which is not the run's: its ids may mean other pieces than those the weights were trained on."));
}

void RunFiles::note_missing_lines() const {
  const JsonLines::Missing missing = metrics_->missing();
  if (missing.steps == 0) return;
  run_.observer.noted(concat((folder_ / kMetricsFile).string(), " has no line of ", missing.steps, " of the ", run_.state.step,
                             " steps done, the first of them step ", missing.first,
                             ": their losses are lost, and the run goes on without."));
}

void RunFiles::keep_metrics(const TrainingProgress& progress, const std::optional<ValidationLoss>& validation) {
  const StepReport& report = progress.step;
  JsonObject line;
  line.add("step", report.step)
      .add("loss", report.loss)
      .add("learning_rate", report.learning_rate)
      .add("gradient_norm", report.gradient_norm)
      .add("target_tokens", report.target_tokens)
      .add("target_tokens_per_s", progress.target_tokens_per_s)
      .add("elapsed_s", progress.elapsed_s);
  if (validation) add_validation(line, *validation, run_.validation_pairs);
  metrics_->append(line);
  if (events_) events_->add(progress, validation);
}

// The launches of the profiled steps, a line each.
void RunFiles::keep_profile(const std::vector<ProfiledLaunch>& launches) const {
  std::string lines;
  for (const ProfiledLaunch& launch : launches) {
    JsonObject line;
    line.add("step", launch.step).add("begin_us", 1e6 * launch.begin_s);
    line.add("layer", launch.entry.layer).add("operation", launch.entry.operation).add("time_us", 1e6 * launch.seconds);
    line.add("flops", launch.entry.cost.flops).add("bytes", launch.entry.cost.bytes);
    if (launch.entry.gemm) {
      const GemmProblem& gemm = *launch.entry.gemm;
      line.add("role", name_of(gemm.role)).add("m", gemm.m).add("n", gemm.n).add("k", gemm.k);
    }
    if (launch.entry.plan)
      line.add("kernel", name_of(launch.entry.plan->composition)).add("predicted_us", 1e6 * launch.entry.plan->predicted_s);
    lines += line.text() + "\n";
  }
  write_file_atomically(folder_ / "profile.jsonl", lines);
  write_file_atomically(folder_ / "trace.json", launch_trace(launches, concat("tilewave ", run_.resolved.recipe.name)));
}

void RunFiles::keep_summary(const TrainingResult& result) {
  if (events_) events_->add_validation(result.steps, result.validation);
  JsonObject summary;
  summary.add("steps", result.steps);
  add_numbers(summary, result);
  summary.add("target_tokens_per_s", result.target_tokens_per_s).add("seconds", result.seconds);
  std::vector<JsonObject> samples(result.samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SampleTranslation& sample = result.samples[i];
    samples[i].add("source", sample.source).add("expected", sample.expected).add("translation", sample.translation);
  }
  if (!samples.empty()) summary.add("samples", std::span<const JsonObject>(samples));
  write_file_atomically(folder_ / kSummaryFile, summary.text() + "\n");
}

void RunFiles::remove_summary() const { remove_file(folder_ / kSummaryFile); }

void RunFiles::check_in_place() const {
  if (run_.folder.in_place()) return;
  const std::string lost = saved_step_ == run_.state.step ? "no step is lost if it is only elsewhere"
                           : saved_step_ > 0              ? concat("the steps behind the checkpoint of step ", saved_step_, " are lost")
                                             : concat("nothing of it was saved yet, and its ", run_.state.step, " steps are lost");
  throw Error(concat(folder_.string(),
                     ": this folder, or the .lock in it, was removed, renamed or replaced while its run was under way, and the run has "
                     "ended with step ",
                     run_.state.step, ": ", lost, "; put the folder back and go on with --resume, or start a new run."));
}

std::string RunFiles::missing() const {
  const auto there = [this](const char* name) { return is_there(folder_ / name); };
  std::string lost;
  const auto add = [&](const std::string& part) { lost += (lost.empty() ? "" : ", ") + part; };
  if (!there("recipe.toml")) add("recipe.toml (which makes it a run)");
  if (lost_tokenizer()) add(concat(run_.corpus.tokenizer()->file_name(), " (which --resume writes again)"));
  if (saved_step_ > 0 && !there("checkpoints")) add(concat("checkpoints/ (with those up to step ", saved_step_, ")"));
  if (!metrics_->in_place()) add(concat("metrics.jsonl (with the lines of steps 1 to ", run_.state.step, ")"));
  return lost;
}

}  // namespace tilewave
