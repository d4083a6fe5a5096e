// The settings of an ablation by prediction alone: each recipe's step planned for a device that need not be there.
//   gain = (baseline's predicted time / its target rows) / (this setting's) - 1
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/ablation_settings.h"
#include "models/guidelines.h"
#include "models/plan.h"

namespace tilewave {

struct PredictedSetting {
  Setting setting;
  std::string refused;  // why there is no prediction; empty: there is one
  StepShapes shapes;
  StepPlan step;
  double gain = 0.0;

  bool predicted() const { return refused.empty(); }
};

std::vector<PredictedSetting> predict_settings(const Recipe& recipe, const std::vector<Setting>& settings, const DeviceInfo& device);

}  // namespace tilewave
