// One training step: forward, backward and update, the same launches every time; and the trace of it, from which come memory,
// plans and the list of its GEMMs before anything is allocated. Of batch.accumulate passes the first one writes gradients and the others,
// which are launch by launch the same, add to them: the second one stands for all of them in the trace, and on a GPU one captured graph is
// replayed for each. All passes take turns in the memory of one batch. Where ranks take a step together, each has a share of every batch,
// and gradients and loss are summed over them before the update.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "framework/data/batch_shares.h"
#include "framework/data/batches.h"
#include "framework/distributed/gradient_reduction.h"
#include "framework/optimizer/adamw.h"
#include "framework/optimizer/learning_rate.h"
#include "framework/tensor/arena.h"
#include "kernels/core/graph.h"
#include "models/recipe/recipe.h"
#include "models/transformer/batch_tensors.h"
#include "models/transformer/transformer.h"
#include "models/vision/picture_classifier.h"

namespace tilewave {

struct StepReport {
  std::int64_t step = 0;  // counted from 1
  double loss = 0.0;      // nats a real target token, with label smoothing
  double learning_rate = 0.0;
  double gradient_norm = 0.0;      // before clipping
  std::int64_t target_tokens = 0;  // real ones, over all accumulated batches
  bool finite = true;              // false: loss or norm is not, and nothing was updated
  bool scaled = false;             // under loss scaling, as fp16 is
  double loss_scale = 1.0;         // that the next step finds
  bool scale_exhausted = false;    // not finite although the loss scale was at its least
  bool stop_asked = false;         // of one rank or another

  // Under loss scaling a step that is not finite lowers the scale, and training goes on.
  bool skipped() const { return !finite && scaled && !scale_exhausted; }
};

inline constexpr double kFirstLossScale = 65536.0;  // of fp16

ContextOptions context_options(const Recipe& recipe);
// Of what a pass trains on, and of the part of it that one of `ranks` has.
BatchShape batch_shape(const ResolvedRecipe& resolved);
BatchShape share_shape(const ResolvedRecipe& resolved, std::int64_t ranks);
AdamWOptions adamw_options(const Recipe& recipe);
Schedule schedule_of(const Recipe& recipe);

enum class Update : std::uint8_t { yes, no };  // no: gradients stay for a look, weights stay as they are

// How a step's launches reach a GPU: one after another, or as graphs that are captured the second time: one of a whole step; of several
// passes one of the first, one for the others and one of the update. On a CPU both are the same.
enum class Launches : std::uint8_t { separate, captured };

// The batches of a step, one a pass.
struct PassBatches {
  std::int64_t passes = 1;
  std::int64_t real_tokens = 0;                       // of all of them
  std::function<const Batch&(std::int64_t pass)> of;  // asked in order, each when the passes before it are in the queue
  std::function<void()> meanwhile = [] {};            // called once a pass, while a GPU is at work on it
};

struct StepTrace;

struct ValidationLoss {
  double loss = 0.0;                       // nats a real target token, without label smoothing
  std::int64_t target_tokens = 0;          // that it is the mean over
  std::optional<std::int64_t> right = {};  // pictures whose likeliest class is their label's, where there are pictures

  std::optional<double> accuracy() const {
    return right ? std::optional(static_cast<double>(*right) / static_cast<double>(target_tokens)) : std::nullopt;
  }
};

class TrainStep {
 public:
  // Allocates the model, the optimizer and the batches in the context; all outlive this object's steps.
  TrainStep(Context& context, const ResolvedRecipe& resolved);

  // Steps and validation run in memory laid out by a trace of this step from now on, and steps may be captured.
  void use_step_memory(const StepTrace& trace, Launches launches = Launches::captured);
  void use_step_memory(const StepTrace& trace, const StepMemory& memory, Launches launches = Launches::captured);

  // Gives the steps' memory back once the last step and validation are done.
  void release_step_memory();

  // Trains on the batches (as many as the recipe accumulates) as update number `step`: submit, then collect.
  StepReport run(const PassBatches& batches, std::int64_t step, Update update = Update::yes);
  StepReport run(std::span<const Batch> batches, std::int64_t step, Update update = Update::yes);
  // Puts the step into the queue; on a GPU it returns before the last passes are done.
  void submit(const PassBatches& batches, std::int64_t step, Update update = Update::yes);
  void submit(std::span<const Batch> batches, std::int64_t step, Update update = Update::yes);
  // The step that was submitted last, once more, every pass on the batch of its last one: for timing.
  void repeat();
  // Waits for the step that was submitted last.
  StepReport collect();
  // The launches of a pass, of the update, and of a batch's loss alone, without label smoothing and dropout; whatever the batch and the
  // step state hold.
  void launch_pass(PassKind kind, PassEnd end = PassEnd::last);
  void launch_update();
  void launch_validation() { (void)validation_logits(); }

  // This rank was asked to stop: the reports of the steps that are submitted from now on say so on every rank.
  void ask_to_stop() { stop_asked_ = true; }
  // Of the optimizer's state this rank has its share alone.
  bool shares() const { return transformer_ && transformer_->parameters().sharding() != Sharding::none; }
  // Passes that ranks made beyond a step's own, since a batch's sequences did not fit their shares at once.
  std::int64_t extra_passes() const { return extra_passes_; }

  // What the weights as they are make of a batch, without dropout: [target rows, V_padded]. Of ranks with shares all ask at once, as for a
  // validation, behind which each has all weights until the next step.
  Tensor logits(const Batch& batch);

  // Mean loss without label smoothing, in nats a real target token, over a whole stream of the step's batch shape.
  double validate(BatchStream stream);
  // Nothing where `stop` says so before one of its batches.
  std::optional<ValidationLoss> validate(BatchStream stream, const std::function<bool()>& stop);

  // InputError where the step's model tells pictures apart.
  Transformer& model();
  Parameters& parameters() { return transformer_ ? transformer_->parameters() : classifier_->parameters(); }
  AdamW& optimizer() { return optimizer_; }
  const ResolvedRecipe& resolved() const { return resolved_; }
  Context& context() { return context_; }

 private:
  // Launches that a graph may hold, captured the second time.
  struct Launched {
    bool before = false;
    std::optional<Graph> graph;
  };
  // Some of a step's launches, and their memory within a step: those of a pass that others follow, and of the last one.
  struct Part {
    std::shared_ptr<Arena> arena;
    Launched more_follow, last;
  };
  std::int64_t passes() const { return resolved_.recipe.batch.accumulate; }
  bool alone() const { return context_.ranks().alone(); }
  // A pass on what batch_ holds. The update goes with the last one.
  void enqueue_pass(PassKind kind, PassEnd end, Update update);
  void enqueue(Launched& launched, Update update, const std::function<void()>& launches);
  void renew_compute_copies();  // all ranks call it
  // This rank's shares of a batch, a pass each.
  std::vector<BatchShare> own_shares(const Batch& whole) const;
  void submit_shares(const Batch& whole, std::int64_t pass, Update update);
  // [target rows, V_padded], or [pictures, classes], and what they should say.
  Variable batch_logits(const DropoutRates& rates, BatchNormMode mode) const;
  const Tensor& labels() const { return classifier_ ? pictures_.labels : batch_.target_out; }
  void upload(const Batch& batch);
  Tensor validation_logits();
  double validation_loss(const Batch& whole, std::int64_t& right);

  Context& context_;
  ResolvedRecipe resolved_;
  std::unique_ptr<Transformer> transformer_;       // or
  std::unique_ptr<PictureClassifier> classifier_;  // one of the two, and its batch
  AdamW optimizer_;
  BatchTensors batch_;
  PictureTensors pictures_;
  StagedUploads uploads_;
  Part first_pass_, later_pass_, update_, validation_;  // in the same memory
  std::optional<GradientReduction> reduction_;          // over ranks
  std::uint32_t sites_ = 0;                             // of dropout in a pass, once one was launched
  Launches launches_ = Launches::separate;
  bool stop_asked_ = false;
  std::int64_t extra_passes_ = 0;
};

struct StepTrace {
  Trace trace;  // the launches of a step in order: the first pass, the second one for all that follow it, the update
  LaunchesBeside beside;
  std::size_t later_begin = 0, update_begin = 0;  // entries of the trace: of a later pass, if there is one, and of the update
  ArenaLayout first_pass, later_pass, update;     // of what lives within each of these
  ArenaLayout validation;                         // of what lives while a batch is validated, which is between steps
  std::int64_t persistent_bytes = 0;              // weights, gradients, moments, a batch
  std::int64_t decoding_bytes = 0;  // that translating test pairs takes at least, instead of a step's memory; not traced: the caller's
  std::int64_t parameters = 0;      // logical elements

  std::int64_t step_bytes() const { return std::max({first_pass.bytes, later_pass.bytes, update.bytes, validation.bytes}); }
  std::int64_t bytes() const { return persistent_bytes + std::max(step_bytes(), decoding_bytes); }
  std::int64_t matrix_flops() const;  // of matrix products, attention's included: what a device's peak is compared with
};

struct StepTraceOptions {
  GemmPlans plans = {};     // of GEMMs that these do not know the recipe's choice decides
  Communicator ranks = {};  // which have joined; as many as the recipe says
};
// Runs a step of one of run.ranks on a trace: no memory, no arithmetic.
StepTrace trace_step(const ResolvedRecipe& resolved, const DeviceInfo& device, const StepTraceOptions& options = {});

}  // namespace tilewave
