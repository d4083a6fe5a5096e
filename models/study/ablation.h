// One recipe under several settings in one process: each setting a training step with its own memory, shown to compute the same loss
// as its baseline (same_loss.h), then all of them timed in turns, and so their GEMMs by themselves. Gains are per real target token:
//   gain = (baseline's step time / its real target tokens) / (this setting's) - 1
// predicted from the traced steps before anything runs, and measured. A setting that cannot run keeps its sentence; the others run. Where a
// setting has several ranks, each has processes of its own, one after another: their first steps are compared and their steps timed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/measure/interleave.h"
#include "models/planning/ablation_settings.h"
#include "models/study/same_loss.h"

namespace tilewave {

// GEMMs of one role in layers of the same name, all of a step together.
struct GemmTimes {
  std::string layer;  // "decoder.*.ffn.up"
  GemmRole role = GemmRole::forward;
  std::int64_t count = 0;
  GemmProblem problem;  // of the first
  GemmPlan plan;
  double predicted_s = 0.0, measured_s = 0.0;
  std::int64_t flops = 0;
  bool library = false;    // a library's: its tiles are not known
  bool concerned = false;  // problem or plan differ from the baseline's
};

// Of a measured gain: where the median of the rounds' own gains lies, each round's step beside its baseline's in the same round, by their
// order (median_interval), and the gain itself where it lies beside them.
struct GainInterval {
  double low = 0.0, high = 0.0;
  double confidence = 0.0;

  // No gain, or none that so few rounds can show.
  bool within_noise() const { return confidence < kConfidence || (low <= 0.0 && high >= 0.0); }
};

struct AblationVariant {
  Setting setting;
  std::string refused;                 // why it did not run; empty: it did
  bool refused_input = false;          // by what a person wrote, not by the device
  std::optional<std::size_t> same_as;  // a variant with the very same launches, whose figures these are
  ResolvedRecipe resolved;
  std::int64_t memory_bytes = 0, matrix_flops = 0;
  std::int64_t target_tokens = 0;  // real ones of a step, on average (real_tokens.h)
  Timing step;
  std::optional<double> predicted_s;  // absent where a library multiplies: its times are not modelled
  std::optional<double> predicted_gain;
  std::optional<double> measured_gain;                            // fractions; absent where the baseline did not run
  std::optional<GainInterval> gain_interval;                      // absent with it
  std::optional<double> predicted_gemm_gain, measured_gemm_gain;  // of the step's GEMMs alone, launch by launch; absent with ranks
  LossCurve curve;
  SameLoss same_loss;
  std::vector<GemmTimes> gemms;

  bool ran() const { return refused.empty(); }
  double target_tokens_per_s() const { return static_cast<double>(target_tokens) / step.median_s; }
  double tflops() const { return 1e-12 * static_cast<double>(matrix_flops) / step.median_s; }
  // Of the GEMMs' predicted times, the mean of |predicted - measured| / measured over launches; nothing where they are not modelled.
  std::optional<double> gemm_error() const;
  // Of the predicted gain, in percentage points.
  std::optional<double> error_points() const {
    return predicted_gain && measured_gain ? std::optional(100.0 * (*predicted_gain - *measured_gain)) : std::nullopt;
  }
};

struct AblationReport {
  std::string recipe;
  DeviceInfo device;
  bool of_pictures = false;          // that a model sees: they are what is counted, in the place of target tokens
  std::vector<std::string> changes;  // made to run on a CPU, as sentences
  std::int64_t steps = 0;            // that losses were compared over
  bool by_ranks = false;             // by processes of its own for each setting, not in turns
  std::vector<AblationVariant> variants;

  const AblationVariant& baseline_of(const AblationVariant& variant) const { return variants[variant.setting.baseline]; }
  // Every variant ran and none computed another loss.
  bool holds() const;
};

// What ranks made of a recipe.
struct RanksRun {
  LossCurve curve;  // of its first steps
  Timing step;
};
struct RanksAsked {
  const Recipe& recipe;
  const DeviceInfo& device;  // of each rank
  std::int64_t steps = 0;
  int rounds = 0;
};

enum class AblationSizes : std::uint8_t { fitting, full };  // fitting: toy_sized on a CPU whose step would take long

struct AblationRequest {
  Recipe recipe;
  std::vector<Setting> settings;
  std::int64_t steps = 5;  // whose losses are compared
  AblationSizes sizes = AblationSizes::fitting;
  InterleaveOptions timing{.block_s = 0.05};
  Queue queue;
  DeviceInfo device;
  // Starts as many ranks as the recipe has, one too, and lets them take its first steps and time more; Error where they cannot.
  std::function<RanksRun(const RanksAsked&)> start_ranks = {};
  std::function<void(const std::string&)> noted = [](const std::string&) {};  // progress, in sentences
};

AblationReport ablate(const AblationRequest& request);

}  // namespace tilewave
