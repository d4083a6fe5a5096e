// What a step will cost, before it runs and without its device: every launch of the traced step, the GEMMs by their plans' predicted
// times, the rest by kernels/gemm/cost/operation_time.h. A device whose bandwidth is not known, as a CPU's, has no times for the rest.
// What ranks do together begins when it is launched and the links between them are free, beside the rest of its pass; what waits for it in
// the step waits in the prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/step/train_step.h"

namespace tilewave {

// FLOPs a byte of memory traffic, and where the device turns from memory- to math-limited (0: not known).
double intensity(const Cost& cost);
double ops_per_byte(const DeviceInfo& device, DType operands, MathMode math);

// The least time that the device's printed peak and bandwidth leave for a launch, and for all launches of a step one after another;
// 0: not known.
double floor_s(const Cost& cost, const DeviceInfo& device, DType operands, MathMode math);
double floor_s(const Trace& trace, const PrecisionTable& precision, const DeviceInfo& device);

inline constexpr std::int64_t kTailsMatterBelow = 300;  // blocks: in launches of more the last wave hardly shows (Deep Learning
                                                        // Performance, section 3.2)

// The waves of a plan, parts along K included: what runs at a time is the plan's tiling.slots.
struct PlanWaves {
  double waves = 0.0;
  double tail_fraction = 1.0;  // of the slots that the last, partial wave uses; 1 where every wave is full
  double efficiency = 1.0;     // waves over whole waves
};
// Where blocks share all tiles' K out (stream_k) there are no waves: one, as full as there are blocks.
PlanWaves waves_of(const GemmPlan& plan);

// A GEMM of a fully-connected layer by itself (the guide's Table 1), all three matrices of the precision's activations, on the base
// addresses of allocations.
struct LayerGemm {
  GemmRole role = GemmRole::forward;
  std::int64_t out = 0, in = 0, tokens = 0;
};
GemmProblem plain_gemm(const LayerGemm& layer, Precision precision, PitchPolicy policy);

// GEMMs that pose the same problem in layers of the same name, layers' numbers replaced by a star.
struct GemmLine {
  std::string layer;  // "decoder.*.ffn.up"
  std::int64_t count = 1;
  GemmProblem problem;
  GemmPlan plan;

  double predicted_s() const { return static_cast<double>(count) * plan.predicted_s; }
};

// Everything else, by operation and layer's name.
struct OperationLine {
  std::string layer;
  std::string operation;
  std::int64_t count = 1;
  Cost cost;                 // of all of them
  double predicted_s = 0.0;  // of all of them; 0: not known
};

struct StepPlan {
  std::vector<GemmLine> gemms;            // in the order in which they are first launched
  std::vector<OperationLine> operations;  // the longest first
  double gemm_s = 0.0, other_s = 0.0;     // predicted, of one rank
  std::int64_t ranks = 1;
  double links_s = 0.0;    // of what goes over the links between ranks, one behind another
  double exposed_s = 0.0;  // what the step waits for, of that or of the SMs that it takes: the rest is beside the passes
  double late_s = 0.0;     // what ranks wait for whoever is the slowest
  double alone_s = 0.0;    // what a step of this rank's share would take without the others
  std::int64_t rows = 0;   // of source and target, over all accumulated passes
  std::int64_t bytes = 0;  // of memory, across and within steps
  std::int64_t parameters = 0;
  std::int64_t matrix_flops = 0;  // attention's included

  double predicted_s() const { return gemm_s + other_s + exposed_s + late_s; }
  // What a rank does in a step is to what it would do in that time without the others.
  double efficiency() const { return alone_s / predicted_s(); }
  // Of the GEMMs whose layer ends in `layer`, all roles together.
  double seconds_of_layer(std::string_view layer) const;
};

// The recipe with tilewave's own GEMMs by predicted time, where it asks for a library's or for measured ones, of which nothing is
// predicted.
Recipe predictable(const Recipe& recipe);

// A recipe for one process that trains on what one of run.ranks has: what is advised of its rows is a rank's.
Recipe of_one_rank(const ResolvedRecipe& resolved);

// What to take in the place of a precision that the device, as a profile has it, has no units for; nothing where it has some.
std::optional<Precision> precision_instead(Precision precision, const DeviceInfo& device);
// InputError where there is one for the recipe's.
void check_plannable(const Recipe& recipe, const DeviceInfo& device);

StepPlan plan_step(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device);
StepPlan plan_step(const ResolvedRecipe& resolved, const DeviceInfo& device);

// "decoder.3.ffn.up" -> "decoder.*.ffn.up"
std::string without_numbers(std::string_view layer);
// Whether a layer's name, or its end from a dot on, is `end`: "decoder.3.ffn.up" is named by "ffn.up" and not by "up".
bool named_by(std::string_view layer, std::string_view end);

}  // namespace tilewave
