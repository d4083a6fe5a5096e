// Memory, plans and names of a Context.
#include "framework/tensor/context.h"

#include <algorithm>
#include <utility>

#include "kernels/gemm/tiling.h"

namespace tilewave {

Context::Context(Queue queue, DeviceInfo device, Options options)
    : queue_(std::move(queue)),
      device_(std::move(device)),
      options_(std::move(options)),
      precision_(precision_table(options_.precision)),
      plans_(options_.plans) {
  if (options_.ranks.nccl != nullptr && std::holds_alternative<CudaQueue>(queue_)) links_ = links_of(options_.ranks);
  step_state_ = persistent({1, static_cast<std::int64_t>(sizeof(StepState) / sizeof(std::int32_t))}, DType::i32);
  write_step_state({});
}

Context::~Context() = default;

void Context::note_beside() {
  if (const Trace* const log = log_of(queue_)) beside_.entries.push_back(log->entries.size() - 1);
}

void Context::await_ranks() {
  if (!std::exchange(links_are_ahead_, false)) return;
  if (links_) follow(queue_, *links_);
  note_await(beside_.entries.size());
}

Context::BesideMark Context::mark_beside() {
  return {.place = links_ ? mark_end(*links_) : QueueMark(), .launched = beside_.entries.size()};
}

void Context::await(const BesideMark& mark) {
  follow(queue_, mark.place);
  note_await(mark.launched);
}

void Context::note_await(std::size_t launched) {
  if (const Trace* const log = log_of(queue_)) beside_.awaits.push_back({.before = log->entries.size(), .launched = launched});
}

std::int64_t Context::pitch_of(std::int64_t cols, DType dtype) const { return tilewave::pitch_of(cols, dtype, options_.pitch); }

std::shared_ptr<void> Context::workspace(std::int64_t bytes) {
  if (in_step_ && recorder_) {
    const std::size_t allocation = recorder_->allocate(bytes);
    return {allocate(queue_, bytes), [recorder = recorder_, allocation, queue = queue_](void* data) mutable {
              recorder->release(allocation);
              release(queue, data);
            }};
  }
  if (in_step_ && arena_) return {arena_->allocate(bytes), [arena = arena_](void*) {}};
  return {allocate(queue_, std::max<std::int64_t>(bytes, 1)), [queue = queue_](void* data) mutable { release(queue, data); }};
}

Tensor Context::tensor(Shape shape, DType dtype) {
  const bool vector = shape.rows == 1 || shape.cols == 1;
  const std::int64_t pitch = vector ? shape.cols : pitch_of(shape.cols, dtype);
  return {workspace(shape.rows * pitch * size_of(dtype)), shape, pitch, dtype};
}

Tensor Context::persistent(Shape shape, DType dtype) {
  const bool in_step = std::exchange(in_step_, false);
  Tensor result = tensor(shape, dtype);
  in_step_ = in_step;
  persistent_bytes_ += round_up(result.bytes(), kAlignment);
  fill_bytes(queue_, result.data(), 0, result.bytes());
  return result;
}

void Context::begin_step() {
  in_step_ = true;
  next_site_ = 0;
  if (arena_) arena_->begin_step();
}

const GemmPlan& Context::plan(const GemmProblem& problem) {
  const auto known = plans_.find(problem);
  if (known != plans_.end()) return known->second;
  return plans_.emplace(problem, choose(problem, device_, options_.gemm)).first->second;
}

StepState Context::read_step_state() {
  StepState state;
  copy_to_host(queue_, &state, step_state_.data(), sizeof(state));
  return state;
}

void Context::write_step_state(const StepState& state) { copy_to_device(queue_, step_state_.data(), &state, sizeof(state)); }

void Context::write_pass_place(const PassPlace& place) { copy_to_device(queue_, &step_state()->place, &place, sizeof(place)); }

void Context::set_layer(std::string layer) {
  layer_ = std::move(layer);
  if (Trace* log = log_of(queue_)) log->layer = layer_;
}

LayerScope::LayerScope(Context& context, std::string_view name) : context_(context), outer_(context.layer()) {
  context.set_layer(outer_.empty() ? std::string(name) : outer_ + "." + std::string(name));
}

LayerScope::~LayerScope() { context_.set_layer(outer_); }

}  // namespace tilewave
