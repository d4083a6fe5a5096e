// The step's launches and the step state around them.
#include "models/step/train_step.h"

#include <cmath>
#include <utility>

#include "framework/distributed/exchange_values.h"
#include "framework/ops/cross_entropy.h"
#include "framework/tensor/host_tensor.h"
#include "kernels/core/saturating.h"
#include "kernels/gemm/gemm.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/collective.h"

namespace tilewave {

namespace {

// What a rank knows of a validation.
struct RankSum {
  double total = 0.0;
  bool stopped = false;
};

std::unique_ptr<Transformer> transformer_of(Context& context, const ResolvedRecipe& resolved) {
  if (classifies(resolved.recipe.model)) return nullptr;
  return std::make_unique<Transformer>(
      context, resolved.recipe.model,
      ModelData{.padded_vocabulary = resolved.shapes.vocabulary_padded, .picture = pictures_of(resolved.recipe)},
      static_cast<std::uint64_t>(resolved.recipe.run.seed));
}

std::unique_ptr<PictureClassifier> classifier_of(Context& context, const ResolvedRecipe& resolved) {
  return classifies(resolved.recipe.model) ? std::make_unique<PictureClassifier>(context, resolved.recipe) : nullptr;
}

// Pictures that count and whose label has the largest of their logits, the first where several have.
std::int64_t count_right(const std::vector<double>& logits, const std::vector<std::int32_t>& labels) {
  const std::size_t classes = logits.size() / labels.size();
  std::int64_t right = 0;
  for (std::size_t picture = 0; picture < labels.size(); ++picture) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(picture * classes);
    right += std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row == labels[picture] ? 1 : 0;
  }
  return right;
}

}  // namespace

ContextOptions context_options(const Recipe& recipe) {
  const bool forced = plan_source(recipe.gemm.choice) == PlanSource::forced;
  return {.precision = recipe.run.precision,
          .pitch = recipe.guidelines.row_pitch,
          .ffn_hidden_layout = recipe.guidelines.ffn_hidden_layout,
          .gemm = {.forced = recipe.gemm.engine != GemmEngine::tilewave ? std::string(name_of(recipe.gemm.engine))
                             : forced                                   ? recipe.gemm.choice
                                                                        : std::string(),
                   .alignment_policy = recipe.gemm.alignment_policy},
          .sharding = recipe.run.shard,
          .gradient_reduction = recipe.run.gradient_reduction};
}

BatchShape batch_shape(const ResolvedRecipe& resolved) {
  return {
      .source_rows = resolved.shapes.source_rows, .target_rows = resolved.shapes.target_rows, .sequence = longest_segment(resolved.recipe)};
}

BatchShape share_shape(const ResolvedRecipe& resolved, std::int64_t ranks) {
  const bool sentences = packs_pairs(resolved.recipe.data);
  return share_shape(batch_shape(resolved), ranks, sentences ? SequenceLengths::any : SequenceLengths::whole);
}

AdamWOptions adamw_options(const Recipe& recipe) {
  const OptimizerConfig& optimizer = recipe.optimizer;
  return {.beta1 = optimizer.beta1,
          .beta2 = optimizer.beta2,
          .epsilon = optimizer.epsilon,
          .weight_decay = optimizer.weight_decay,
          .clip_norm = optimizer.clip_norm,
          .scaling = {.enabled = recipe.run.precision == Precision::fp16}};
}

Schedule schedule_of(const Recipe& recipe) {
  return {.kind = recipe.schedule.kind,
          .peak = recipe.optimizer.learning_rate,
          .warmup_steps = recipe.schedule.warmup_steps,
          .decay_steps = recipe.schedule.decay_steps,
          .decay_from = recipe.schedule.decay_from,
          .least = recipe.schedule.min_learning_rate};
}

TrainStep::TrainStep(Context& context, const ResolvedRecipe& resolved)
    : context_(context),
      resolved_(resolved),
      transformer_(transformer_of(context, resolved)),
      classifier_(classifier_of(context, resolved)),
      optimizer_(parameters(), adamw_options(resolved.recipe)),
      batch_(transformer_ ? make_batch_tensors(context, share_shape(resolved, context.ranks().count),
                                               part_of(resolved.segments, context.ranks().count))
                          : BatchTensors()),
      pictures_(classifier_ ? classifier_->make_batch(resolved.shapes.target_rows) : PictureTensors()),
      uploads_(context) {
  if (captions(resolved.recipe.model)) {
    batch_.pixels = make_pixels(context, pictures_of(resolved.recipe).value(), resolved.recipe.batch.pictures);
  }
  const std::int64_t ranks = context.ranks().count;
  TW_CHECK_INPUT(resolved.recipe.run.ranks == ranks, "run.ranks = ", resolved.recipe.run.ranks, ", and here ",
                 ranks == 1 ? "is one" : concat("are ", ranks),
                 "; `tilewave train` and `tilewave bench step` start ranks: --set run.ranks=", ranks, ".");
  if (!alone()) reduction_.emplace(parameters());
  if (optimizer_.options().scaling.enabled) context.write_step_state({.loss_scale = kFirstLossScale});
}

void TrainStep::use_step_memory(const StepTrace& trace, Launches launches) {
  use_step_memory(trace, allocate_step_memory(context_.queue(), trace.step_bytes()), launches);
}

void TrainStep::use_step_memory(const StepTrace& trace, const StepMemory& memory, Launches launches) {
  const auto part = [&](const ArenaLayout& layout) {
    return Part{.arena = std::make_shared<Arena>(memory, layout), .more_follow = {}, .last = {}};
  };
  first_pass_ = part(trace.first_pass);  // graphs go too: their launches have the former memory's addresses
  later_pass_ = part(trace.later_pass);
  update_ = part(trace.update);
  validation_ = part(trace.validation);
  launches_ = launches;
}

void TrainStep::release_step_memory() {
  context_.use_arena(nullptr);
  for (Part* const part : {&first_pass_, &later_pass_, &update_, &validation_}) {
    part->more_follow.graph.reset();  // before the memory that its launches name
    part->last.graph.reset();
    *part = {};
  }
}

void TrainStep::launch_pass(PassKind kind, PassEnd end) {
  const Recipe& recipe = resolved_.recipe;
  const DropoutRates rates{.hidden = recipe.model.dropout, .attention = recipe.model.attention_dropout};
  context_.use_arena((kind == PassKind::first ? first_pass_ : later_pass_).arena);
  context_.begin_step();
  if (kind == PassKind::first) parameters().gather_compute_copies();
  const bool reduces = reduction_ && reduction_->wants(end);
  if (kind == PassKind::first || parameters().sharding() == Sharding::gradients) parameters().reset_gradients();
  {
    const Variable logits = batch_logits(rates, BatchNormMode::training);  // [target tokens, V_padded]
    const LayerScope scope(context_, "loss");
    const Variable loss = cross_entropy(
        context_,
        {.logits = logits, .labels = labels(), .vocabulary = resolved_.shapes.vocabulary, .smoothing = recipe.optimizer.label_smoothing});
    if (reduces) {
      reduction_->begin(kind);
      backward(context_, loss, {}, [this](const Variable& leaf) { reduction_->done(leaf); });
      reduction_->finish(end);
    } else {
      backward(context_, loss);
    }
  }
  parameters().await_compute_copies();
  sites_ = context_.random_sites();
  context_.end_step();
}

void TrainStep::launch_update() {
  context_.use_arena(update_.arena);
  context_.begin_step();
  optimizer_.update();
  context_.end_step();
}

StepReport TrainStep::run(const PassBatches& batches, std::int64_t step, Update update) {
  submit(batches, step, update);
  return collect();
}

StepReport TrainStep::run(std::span<const Batch> batches, std::int64_t step, Update update) {
  submit(batches, step, update);
  return collect();
}

void TrainStep::submit(std::span<const Batch> batches, std::int64_t step, Update update) {
  std::int64_t real_tokens = 0;
  for (const Batch& batch : batches) real_tokens += batch.real_tokens;
  submit({.passes = std::ssize(batches),
          .real_tokens = real_tokens,
          .of = [&](std::int64_t pass) -> const Batch& { return batches[static_cast<std::size_t>(pass)]; }},
         step, update);
}

void TrainStep::submit(const PassBatches& batches, std::int64_t step, Update update) {
  TW_CHECK(batches.passes == passes(), "a step of this recipe takes ", passes(), " batches, not ", batches.passes, ".");
  StepState state = context_.read_step_state();
  state.step = step;
  state.seed = static_cast<std::uint64_t>(resolved_.recipe.run.seed);
  state.learning_rate = learning_rate(schedule_of(resolved_.recipe), step);
  state.loss = 0.0;
  state.stops = stop_asked_ ? 1.0 : 0.0;
  state.real_tokens = batches.real_tokens;
  state.place = {};
  context_.write_step_state(state);
  for (std::int64_t pass = 0; pass < passes(); ++pass) {
    const Batch& whole = batches.of(pass);
    if (alone()) {
      if (pass > 0) context_.write_pass_place({.first_site = static_cast<std::uint32_t>(pass) * sites_});
      upload(whole);
      enqueue_pass(pass == 0 ? PassKind::first : PassKind::later, pass + 1 == passes() ? PassEnd::last : PassEnd::more_follow, update);
    } else {
      submit_shares(whole, pass, update);
    }
    batches.meanwhile();
  }
}

std::vector<BatchShare> TrainStep::own_shares(const Batch& whole) const {
  const Communicator& ranks = context_.ranks();
  std::vector<BatchShare> own;
  for (std::vector<BatchShare>& round : shares_of(whole, share_shape(resolved_, ranks.count), ranks.count)) {
    own.push_back(std::move(round[static_cast<std::size_t>(ranks.rank)]));
  }
  return own;
}

void TrainStep::submit_shares(const Batch& whole, std::int64_t pass, Update update) {
  const std::vector<BatchShare> shares = own_shares(whole);
  extra_passes_ += std::ssize(shares) - 1;
  for (std::size_t round = 0; round < shares.size(); ++round) {
    context_.write_pass_place({.first_site = static_cast<std::uint32_t>(pass) * sites_,
                               .first_target_row = static_cast<std::uint32_t>(shares[round].first_target_row),
                               .first_source_row = static_cast<std::uint32_t>(shares[round].first_source_row)});
    uploads_.upload(shares[round].batch, batch_);
    const bool last = pass + 1 == passes() && round + 1 == shares.size();
    enqueue_pass(pass == 0 && round == 0 ? PassKind::first : PassKind::later, last ? PassEnd::last : PassEnd::more_follow, update);
  }
}

void TrainStep::repeat() {
  for (std::int64_t pass = 0; pass < passes(); ++pass) {
    if (pass == 0 && passes() > 1) context_.write_pass_place({});
    if (pass > 0) context_.write_pass_place({.first_site = static_cast<std::uint32_t>(pass) * sites_});
    enqueue_pass(pass == 0 ? PassKind::first : PassKind::later, pass + 1 == passes() ? PassEnd::last : PassEnd::more_follow, Update::yes);
  }
}

// In one graph with the update where the first pass is the last.
void TrainStep::enqueue_pass(PassKind kind, PassEnd end, Update update) {
  const bool updates = update == Update::yes && end == PassEnd::last;
  Part& part = kind == PassKind::first ? first_pass_ : later_pass_;
  enqueue(end == PassEnd::last ? part.last : part.more_follow, update, [this, kind, end, updates] {
    launch_pass(kind, end);
    if (updates && kind == PassKind::first) launch_update();
  });
  if (updates && kind == PassKind::later) enqueue(update_.last, update, [this] { launch_update(); });
  if (updates) parameters().outdate_compute_copies();  // a graph that is replayed does not say so
}

void TrainStep::renew_compute_copies() {
  if (!parameters().compute_copies_outdated()) return;
  parameters().gather_compute_copies();
  parameters().await_compute_copies();
}

void TrainStep::enqueue(Launched& launched, Update update, const std::function<void()>& launches) {
  // The first time they run launch by launch, so that plans are chosen and kernels are loaded before they are captured.
  const bool capturable = launches_ == Launches::captured && update == Update::yes && !context_.profiling() &&
                          std::holds_alternative<CudaQueue>(context_.queue());
  if (!capturable || !std::exchange(launched.before, true)) return launches();
  if (!launched.graph) launched.graph = capture(context_.queue(), launches);
  launched.graph->replay();
}

StepReport TrainStep::collect() {
  const StepState state = context_.read_step_state();
  return {.step = state.step,
          .loss = state.loss,
          .learning_rate = state.learning_rate,
          .gradient_norm = state.gradient_norm,
          .target_tokens = state.real_tokens,
          .finite = state.found_nonfinite == 0,
          .scaled = optimizer_.options().scaling.enabled,
          .loss_scale = state.loss_scale,
          .scale_exhausted = state.scale_exhausted != 0,
          .stop_asked = state.stops != 0.0};
}

Transformer& TrainStep::model() {
  if (!transformer_) check_reads_tokens(resolved_.recipe, "this");
  return *transformer_;
}

Variable TrainStep::batch_logits(const DropoutRates& rates, BatchNormMode mode) const {
  return classifier_ ? classifier_->logits(pictures_, rates, mode)
                     : transformer_->logits(batch_, longest_segment(resolved_.recipe), {.rates = rates, .mode = mode});
}

void TrainStep::upload(const Batch& batch) {
  if (classifier_) return uploads_.upload(batch, pictures_.pixels, pictures_.labels);
  uploads_.upload(batch, batch_);
}

// They stand in the step's memory until something else is launched.
Tensor TrainStep::validation_logits() {
  const NoGradient scope(context_);
  context_.use_arena(validation_.arena);
  context_.begin_step();
  const Variable logits = batch_logits({}, BatchNormMode::evaluation);
  cross_entropy(context_, {.logits = logits, .labels = labels(), .vocabulary = resolved_.shapes.vocabulary});
  context_.end_step();
  return logits.value();
}

Tensor TrainStep::logits(const Batch& batch) {
  renew_compute_copies();
  upload(batch);
  const NoGradient scope(context_);
  context_.use_arena(nullptr);  // they outlive a step's memory
  context_.begin_step();
  Tensor result = batch_logits({}, BatchNormMode::evaluation).value();
  context_.end_step();
  return result;
}

// Of this rank's rows: what they add to the mean over the batch.
double TrainStep::validation_loss(const Batch& whole, std::int64_t& right) {
  const auto measured = [&](const Batch& batch) {
    upload(batch);
    context_.write_step_state({.real_tokens = whole.real_tokens});
    const Tensor logits = validation_logits();
    if (classifier_) right += count_right(read_elements(context_, logits), batch.target_out);
    return context_.read_step_state().loss;
  };
  if (alone()) return measured(whole);
  double loss = 0.0;
  for (const BatchShare& share : own_shares(whole)) loss += measured(share.batch);
  return loss;
}

double TrainStep::validate(BatchStream stream) {
  return validate(std::move(stream), [] { return false; })->loss;
}

std::optional<ValidationLoss> TrainStep::validate(BatchStream stream, const std::function<bool()>& stop) {
  renew_compute_copies();
  const StepState before = context_.read_step_state();
  double total = 0.0;
  std::int64_t tokens = 0, right = 0;
  bool stopped = false;
  while (const std::optional<Batch> batch = stream.next()) {
    if ((stopped = stop())) break;
    total += validation_loss(*batch, right) * static_cast<double>(batch->real_tokens);
    tokens += batch->real_tokens;
  }
  context_.write_step_state(before);
  if (!alone()) {
    const std::vector<RankSum> sums = exchange_values(context_.queue(), context_.ranks(), RankSum{.total = total, .stopped = stopped});
    total = 0.0;
    for (const RankSum& sum : sums) {
      total += sum.total;
      stopped = stopped || sum.stopped;
    }
  }
  if (stopped) return {};
  TW_CHECK(tokens > 0, "there is no validation data to measure the loss on; set data.validation_source.");
  return ValidationLoss{
      .loss = total / static_cast<double>(tokens), .target_tokens = tokens, .right = classifier_ ? std::optional(right) : std::nullopt};
}

std::int64_t StepTrace::matrix_flops() const {
  std::int64_t flops = 0;
  bool countable = true;
  for (const TraceEntry& entry : trace.entries) {
    if (entry.operation == GemmArgs::kOperation || entry.operation == AttentionArgs::kOperation ||
        entry.operation == AttentionBackwardArgs::kOperation) {
      const std::int64_t all = saturating_product(entry.cost.flops, entry.times);
      countable = countable && all != kUncountable && !__builtin_add_overflow(flops, all, &flops);
    }
  }
  TW_CHECK_INPUT(countable, "a step's FLOPs are more than 2^63; lower batch.accumulate, the rows of a batch or the model.");
  return flops;
}

StepTrace trace_step(const ResolvedRecipe& resolved, const DeviceInfo& device, const StepTraceOptions& options) {
  StepTrace result;
  ContextOptions one_rank = context_options(resolved.recipe);
  one_rank.plans = options.plans;
  one_rank.ranks = options.ranks;
  one_rank.ranks.count = static_cast<int>(resolved.recipe.run.ranks);
  Context context(TraceQueue{}, device, one_rank);
  TrainStep step(context, resolved);
  result.persistent_bytes = context.persistent_bytes();
  result.parameters = step.parameters().count();
  const auto layout_of = [&](auto&& launch) {
    const auto recorder = std::make_shared<ArenaRecorder>();
    context.record_step_memory(recorder);
    launch();
    return recorder->layout();
  };
  std::vector<TraceEntry>& entries = result.trace.entries;
  log_of(context.queue()) = &result.trace;
  const std::int64_t later = resolved.recipe.batch.accumulate - 1;
  result.first_pass = layout_of([&] { step.launch_pass(PassKind::first, later > 0 ? PassEnd::more_follow : PassEnd::last); });
  result.later_begin = entries.size();
  if (later > 0) {
    result.later_pass = layout_of([&] { step.launch_pass(PassKind::later); });
    // What the last pass alone does: all that ranks do beside it, or of gradients in shares the sums of its loss.
    const bool once = resolved.recipe.run.shard != Sharding::gradients;
    for (std::size_t i = result.later_begin; i < entries.size(); ++i) {
      const bool beside = std::ranges::binary_search(context.beside().entries, i);
      entries[i].times = beside && (once || entries[i].operation == AllReduceArgs::kOperation) ? 1 : later;
    }
  }
  result.update_begin = entries.size();
  result.update = layout_of([&] { step.launch_update(); });
  log_of(context.queue()) = nullptr;
  result.beside = context.beside();
  if (later == 0 && !one_rank.ranks.alone()) result.later_pass = layout_of([&] { step.launch_pass(PassKind::later); });  // of another round
  result.validation = layout_of([&] { step.launch_validation(); });
  (void)result.matrix_flops();  // InputError where nobody could count them
  return result;
}

}  // namespace tilewave
