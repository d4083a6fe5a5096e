// Plans of many settings of one deep model: layers of a stack are alike, so that each one adds the same launches, times, FLOPs and
// parameters as the one before. Where there are many the step is planned with two of a stack and with three, and the others are added.
#pragma once

#include "models/planning/plan.h"

namespace tilewave {

inline constexpr std::int64_t kDeepLayers = 16;  // of both stacks: with fewer a step is planned as it is

// plan_step's, but that of a deep model `bytes` is an estimate: step memory is laid out of a whole step.
StepPlan plan_by_layers(const ResolvedRecipe& resolved, const DeviceInfo& device);
bool is_deep(const ModelConfig& model);

}  // namespace tilewave
