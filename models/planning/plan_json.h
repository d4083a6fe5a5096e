// A plan as JSON lines (docs/use/formats.md).
#pragma once

#include <iosfwd>
#include <vector>

#include "models/planning/advice.h"
#include "models/planning/plan.h"
#include "models/planning/predicted_settings.h"

namespace tilewave {

struct PlannedLine {
  const GemmLine& line;
  const DeviceInfo& device;
  double step_s = 0.0;  // that its share is of
};
void print_json(std::ostream& stream, const PlannedLine& planned);

struct PlannedStep {
  const ResolvedRecipe& resolved;
  const StepTrace& trace;
  const StepPlan& step;
  const std::vector<Advice>& advice;
  const std::vector<PredictedSetting>& settings;
  const DeviceInfo& device;
};
void print_json(std::ostream& stream, const PlannedStep& planned);

}  // namespace tilewave
