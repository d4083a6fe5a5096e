// The step's launches and the step state around them.
#include "models/train_step.h"

#include <cmath>
#include <utility>

#include "framework/ops/cross_entropy.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/saturating.h"

namespace tilewave {

ContextOptions context_options(const Recipe& recipe) {
  return {.precision = recipe.run.precision,
          .pitch = recipe.guidelines.row_pitch,
          .ffn_hidden_layout = recipe.guidelines.ffn_hidden_layout,
          .gemm = {.forced = recipe.gemm.engine != GemmEngine::in_house                         ? std::string(name_of(recipe.gemm.engine))
                             : recipe.gemm.choice == "model" || recipe.gemm.choice == "measure" ? ""
                                                                                                : recipe.gemm.choice,
                   .alignment_policy = recipe.gemm.alignment_policy}};
}

BatchShape batch_shape(const ResolvedRecipe& resolved) {
  return {
      .source_rows = resolved.shapes.source_rows, .target_rows = resolved.shapes.target_rows, .sequence = resolved.recipe.batch.sequence};
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
          .decay_steps = recipe.schedule.decay_steps};
}

TrainStep::TrainStep(Context& context, const ResolvedRecipe& resolved)
    : context_(context),
      resolved_(resolved),
      model_(context, resolved.recipe.model, resolved.shapes.vocabulary_padded, static_cast<std::uint64_t>(resolved.recipe.run.seed)),
      optimizer_(model_.parameters(), adamw_options(resolved.recipe)) {
  for (std::int64_t batch = 0; batch < resolved.recipe.batch.accumulate; ++batch) {
    batches_.push_back(make_batch_tensors(context, batch_shape(resolved)));
  }
  if (optimizer_.options().scaling.enabled) context.write_step_state({.loss_scale = kFirstLossScale});
}

void TrainStep::use_step_memory(const StepTrace& trace, Launches launches) {
  use_step_memory(trace, allocate_step_memory(context_.queue(), trace.step_bytes()), launches);
}

void TrainStep::use_step_memory(const StepTrace& trace, const StepMemory& memory, Launches launches) {
  step_arena_ = std::make_shared<Arena>(memory, trace.memory);
  validation_arena_ = std::make_shared<Arena>(memory, trace.validation);
  context_.use_arena(step_arena_);
  launches_ = launches;
  graph_.reset();  // its launches have the former memory's addresses
  launched_before_ = false;
}

void TrainStep::release_step_memory() {
  context_.use_arena(nullptr);
  graph_.reset();  // before the memory that its launches name
  step_arena_.reset();
  validation_arena_.reset();
}

void TrainStep::launch(Update update) {
  const Recipe& recipe = resolved_.recipe;
  const DropoutRates rates{.hidden = recipe.model.dropout, .attention = recipe.model.attention_dropout};
  context_.begin_step();
  model_.parameters().reset_gradients();
  for (const BatchTensors& batch : batches_) {
    const Variable logits = model_.logits(batch, recipe.batch.sequence, rates);  // [target tokens, V_padded]
    const LayerScope scope(context_, "loss");
    const Variable loss = cross_entropy(context_, {.logits = logits,
                                                   .labels = batch.target_out,
                                                   .vocabulary = resolved_.shapes.vocabulary,
                                                   .smoothing = recipe.optimizer.label_smoothing});
    backward(context_, loss);
  }
  if (update == Update::yes) optimizer_.update();
  context_.end_step();
}

StepReport TrainStep::run(std::span<const Batch> batches, std::int64_t step, Update update) {
  submit(batches, step, update);
  return collect();
}

void TrainStep::submit(std::span<const Batch> batches, std::int64_t step, Update update) {
  TW_CHECK(batches.size() == batches_.size(), "a step of this recipe takes ", batches_.size(), " batches, not ", batches.size(), ".");
  StepState state = context_.read_step_state();
  state.step = step;
  state.seed = static_cast<std::uint64_t>(resolved_.recipe.run.seed);
  state.learning_rate = learning_rate(schedule_of(resolved_.recipe), step);
  state.loss = 0.0;
  state.real_tokens = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    upload(context_, batches[i], batches_[i]);
    state.real_tokens += batches[i].real_tokens;
  }
  context_.write_step_state(state);
  enqueue(update);
}

void TrainStep::enqueue(Update update) {
  // The first step runs launch by launch, so that plans are chosen and kernels are loaded before the second one is captured.
  const bool capturable = launches_ == Launches::captured && update == Update::yes && !context_.profiling() &&
                          std::holds_alternative<CudaQueue>(context_.queue());
  if (!capturable || !std::exchange(launched_before_, true)) return launch(update);
  if (!graph_) graph_ = capture(context_.queue(), [this] { launch(Update::yes); });
  graph_->replay();
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
          .scale_exhausted = state.scale_exhausted != 0};
}

void TrainStep::launch_validation() {
  const NoGradient scope(context_);
  const BatchTensors& batch = batches_.front();
  context_.use_arena(validation_arena_);
  context_.begin_step();
  cross_entropy(context_, {.logits = model_.logits(batch, resolved_.recipe.batch.sequence, {}),
                           .labels = batch.target_out,
                           .vocabulary = resolved_.shapes.vocabulary});
  context_.end_step();
  context_.use_arena(step_arena_);
}

double TrainStep::validate(BatchStream stream) {
  return validate(std::move(stream), [] { return false; })->loss;
}

std::optional<ValidationLoss> TrainStep::validate(BatchStream stream, const std::function<bool()>& stop) {
  const StepState before = context_.read_step_state();
  double total = 0.0;
  std::int64_t tokens = 0;
  bool stopped = false;
  while (const std::optional<Batch> batch = stream.next()) {
    if ((stopped = stop())) break;
    upload(context_, *batch, batches_.front());
    context_.write_step_state({.real_tokens = batch->real_tokens});
    launch_validation();
    total += context_.read_step_state().loss * static_cast<double>(batch->real_tokens);
    tokens += batch->real_tokens;
  }
  context_.write_step_state(before);
  if (stopped) return {};
  TW_CHECK(tokens > 0, "there is no validation data to measure the loss on; set data.validation_source.");
  return ValidationLoss{.loss = total / static_cast<double>(tokens), .target_tokens = tokens};
}

std::int64_t StepTrace::matrix_flops() const {
  std::int64_t flops = 0;
  bool countable = true;
  for (const TraceEntry& entry : trace.entries) {
    if (entry.operation == GemmArgs::kOperation || entry.operation == AttentionArgs::kOperation ||
        entry.operation == AttentionBackwardArgs::kOperation) {
      countable = countable && entry.cost.flops != kUncountable && !__builtin_add_overflow(flops, entry.cost.flops, &flops);
    }
  }
  TW_CHECK_INPUT(countable, "a step's FLOPs are more than 2^63; lower batch.accumulate, the rows of a batch or the model.");
  return flops;
}

StepTrace trace_step(const ResolvedRecipe& resolved, const DeviceInfo& device, const GemmPlans& plans) {
  StepTrace result;
  ContextOptions options = context_options(resolved.recipe);
  options.plans = plans;
  Context context(TraceQueue{}, device, options);
  TrainStep step(context, resolved);
  result.persistent_bytes = context.persistent_bytes();
  result.parameters = step.model().parameters().count();
  const auto layout_of = [&](auto&& launch) {
    const auto recorder = std::make_shared<ArenaRecorder>();
    context.record_step_memory(recorder);
    launch();
    return recorder->layout();
  };
  log_of(context.queue()) = &result.trace;
  result.memory = layout_of([&] { step.launch(); });
  log_of(context.queue()) = nullptr;
  result.validation = layout_of([&] { step.launch_validation(); });
  (void)result.matrix_flops();  // InputError where nobody could count them
  return result;
}

}  // namespace tilewave
