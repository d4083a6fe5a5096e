// Everything an operation needs besides its operands, passed explicitly: the queue, the device, the precision table, step
// memory, the cache of GEMM plans, random sites, names for the trace, and whether gradients are wanted. There are no globals.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/tensor/arena.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/pitch.h"
#include "framework/tensor/precision.h"
#include "framework/tensor/profiler.h"
#include "framework/tensor/sharding.h"
#include "framework/tensor/tensor.h"
#include "kernels/core/communicator.h"
#include "kernels/core/device.h"
#include "kernels/core/memory.h"
#include "kernels/core/queue.h"
#include "kernels/core/step_state.h"
#include "kernels/gemm/plan.h"

namespace tilewave {

enum class GradientMode : std::uint8_t { on, off };

using GemmPlans = std::map<GemmProblem, GemmPlan>;

struct ContextOptions {
  Precision precision = Precision::fp32;
  PitchPolicy pitch = PitchPolicy::aligned;
  ActivationLayout ffn_hidden_layout = ActivationLayout::token_major;
  GemmChoice gemm;
  GemmPlans plans;                     // these problems' plans; those of others are chosen when they are first asked for
  Communicator ranks;                  // that take each step together
  Sharding sharding = Sharding::none;  // among them
  GradientReductionType gradient_reduction = GradientReductionType::fp32;
};

// Of a trace of what a context launches: which entries go beside the others, in order with what else does, and where they are waited for.
struct LaunchesBeside {
  struct Await {
    std::size_t before = 0;    // the entry of the trace
    std::size_t launched = 0;  // so many of `entries`, the first ones, are done by then
  };
  std::vector<std::size_t> entries;  // ascending
  std::vector<Await> awaits;         // in order
};

class Context {
 public:
  using Options = ContextOptions;

  explicit Context(Queue queue, DeviceInfo device, Options options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Queue& queue() { return queue_; }
  const DeviceInfo& device() const { return device_; }
  const PrecisionTable& precision() const { return precision_; }
  const Options& options() const { return options_; }
  bool tracing() const { return std::holds_alternative<TraceQueue>(queue_); }
  const Communicator& ranks() const { return options_.ranks; }

  template <class Args>
  void launch(const Args& args) {
    if (profiler_ == nullptr) return run(queue_, args);
    TraceEntry entry = trace_entry(args);
    entry.layer = layer_;
    profiler_->time(queue_, std::move(entry), [&] { run(queue_, args); });
  }

  // What ranks do together, which on a GPU goes to a stream of its own, behind what the queue holds now; what is launched after
  // await_ranks() waits for it. Launches that are timed one by one go to the queue itself.
  template <class Args>
  void launch_beside(const Args& args) {
    links_are_ahead_ = true;
    if (!links_ || profiler_ != nullptr) {
      launch(args);
      return note_beside();
    }
    follow(*links_, queue_);
    run(*links_, args);
  }
  // Waits for nothing where nothing was launched beside since: a capture has no stream but those that followed its own.
  void await_ranks();
  // What was launched beside until now, to be waited for alone; every mark's pass ends with await_ranks().
  struct BesideMark {
    QueueMark place;
    std::size_t launched = 0;
  };
  BesideMark mark_beside();
  void await(const BesideMark& mark);
  const LaunchesBeside& beside() const { return beside_; }  // in the log that the queue has had since the context was made

  // Times every launch from now on; null for none.
  void profile(Profiler* profiler) { profiler_ = profiler; }
  bool profiling() const { return profiler_ != nullptr; }

  // Uninitialised memory. tensor() and workspace() live within a step and come from its arena; persistent() is zeroed and
  // outlives steps. The row pitch follows Options::pitch; vectors, of one row or one column, are packed.
  Tensor tensor(Shape shape, DType dtype);
  Tensor persistent(Shape shape, DType dtype);
  std::shared_ptr<void> workspace(std::int64_t bytes);
  std::int64_t pitch_of(std::int64_t cols, DType dtype) const;
  std::int64_t persistent_bytes() const { return persistent_bytes_; }

  // Between begin_step and end_step allocations are recorded, or replayed from an arena, whichever was set; without either they
  // come from the heap. begin_step also restarts the random sites, so that a step draws the same streams every time.
  void record_step_memory(std::shared_ptr<ArenaRecorder> recorder) { recorder_ = std::move(recorder); }
  void use_arena(std::shared_ptr<Arena> arena) { arena_ = std::move(arena); }
  void begin_step();
  void end_step() { in_step_ = false; }

  // The plan for a problem, chosen once.
  const GemmPlan& plan(const GemmProblem& problem);
  const GemmPlans& plans() const { return plans_; }

  StepState* step_state() const { return static_cast<StepState*>(step_state_.data()); }  // device memory
  StepState read_step_state();
  void write_step_state(const StepState& state);
  void write_pass_place(const PassPlace& place);  // of the step state this alone, in the order of the queue

  std::uint32_t next_random_site() { return next_site_++; }
  std::uint32_t random_sites() const { return next_site_; }  // that the step under way has had
  std::uint64_t next_node() { return next_node_++; }

  // Whose rows the operations at hand work on: what a rank's random numbers are counted by.
  TokenSide side() const { return side_; }
  void set_side(TokenSide side) { side_ = side; }

  GradientMode gradient_mode() const { return gradient_mode_; }
  void set_gradient_mode(GradientMode mode) { gradient_mode_ = mode; }

  // The operation whose backward pass gets a wrong term (a negative control of gradient checks); empty for none.
  const std::string& planted() const { return planted_; }
  void plant(std::string operation) { planted_ = std::move(operation); }

  // Called with every tensor that an operation's forward or backward pass has written, to look for what went wrong; null for none.
  using Inspector = std::function<void(const std::string& layer, std::string_view what, const Tensor& tensor)>;
  void inspect(Inspector inspector) { inspector_ = std::move(inspector); }
  bool inspecting() const { return static_cast<bool>(inspector_); }
  void inspected(const std::string& layer, std::string_view what, const Tensor& tensor) const {
    if (inspector_) inspector_(layer, what, tensor);
  }

  const std::string& layer() const { return layer_; }
  void set_layer(std::string layer);

 private:
  void note_beside();  // of the last launch
  void note_await(std::size_t launched);

  Queue queue_;
  std::optional<Queue> links_;  // of ranks that joined with GPUs
  bool links_are_ahead_ = false;
  LaunchesBeside beside_;
  DeviceInfo device_;
  Options options_;
  PrecisionTable precision_;
  std::shared_ptr<ArenaRecorder> recorder_;
  std::shared_ptr<Arena> arena_;
  bool in_step_ = false;
  std::int64_t persistent_bytes_ = 0;
  GemmPlans plans_;
  Tensor step_state_;
  std::uint32_t next_site_ = 0;
  std::uint64_t next_node_ = 0;
  TokenSide side_ = TokenSide::target;
  GradientMode gradient_mode_ = GradientMode::on;
  std::string planted_;
  Profiler* profiler_ = nullptr;
  Inspector inspector_;
  std::string layer_;
};

// Names the layer that the launches within its lifetime belong to: "decoder.3" + "ffn" -> "decoder.3.ffn".
class LayerScope {
 public:
  LayerScope(Context& context, std::string_view name);
  ~LayerScope();
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

 private:
  Context& context_;
  std::string outer_;
};

// Operations within its lifetime work on rows of that side.
class SideScope {
 public:
  SideScope(Context& context, TokenSide side) : context_(context), before_(context.side()) { context.set_side(side); }
  ~SideScope() { context_.set_side(before_); }
  SideScope(const SideScope&) = delete;
  SideScope& operator=(const SideScope&) = delete;

 private:
  Context& context_;
  TokenSide before_;
};

// No gradients are recorded within its lifetime: validation, decoding.
class NoGradient {
 public:
  explicit NoGradient(Context& context) : context_(context), before_(context.gradient_mode()) {
    context.set_gradient_mode(GradientMode::off);
  }
  ~NoGradient() { context_.set_gradient_mode(before_); }
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  Context& context_;
  GradientMode before_;
};

}  // namespace tilewave
