// The settings of an ablation by prediction alone: each recipe's step planned for a device that need not be there.
//   gain = (baseline's predicted time / its real target tokens) / (this setting's) - 1
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/planning/ablation_settings.h"
#include "models/planning/plan.h"
#include "models/planning/real_tokens.h"
#include "models/recipe/guidelines.h"

namespace tilewave {

struct PredictedSetting {
  Setting setting;
  std::string refused;         // why there is no prediction; empty: there is one
  bool refused_input = false;  // since the setting itself cannot be planned
  StepShapes shapes;
  StepPlan step;
  std::int64_t target_rows = 0;    // of a step, all its passes together
  std::int64_t target_tokens = 0;  // real ones
  std::vector<Adjustment> adjustments;
  std::optional<double> gain, gemm_gain;  // of the step, of its GEMMs alone; absent where there is no prediction of the baseline

  bool predicted() const { return refused.empty(); }
};

std::vector<PredictedSetting> predict_settings(const Recipe& recipe, const std::vector<Setting>& settings, const DeviceInfo& device,
                                               RealTokenCounter& tokens);
std::vector<PredictedSetting> predict_settings(const Recipe& recipe, const std::vector<Setting>& settings, const DeviceInfo& device);

}  // namespace tilewave
