// A plan as JSON lines (docs/use/formats.md), as the command line prints them and the C interface hands them over.
#pragma once

#include <iosfwd>
#include <vector>

#include "models/planning/advice.h"
#include "models/planning/plan.h"
#include "models/planning/predicted_settings.h"

namespace tilewave {

// What either JSON or a table says of a GEMM.
Cost cost_of(const GemmProblem& problem);
// That the device's peak and bandwidth leave for all launches of the line; 0: not known.
double roofline_s(const GemmLine& line, const DeviceInfo& device);
std::int64_t ctas_per_sm(const GemmPlan& plan, const DeviceInfo& device);
// NAN where the device's times are not known.
double predicted_or_nan(double seconds, const DeviceInfo& device);

struct PlannedLine {
  const GemmLine& line;
  const DeviceInfo& device;
  double step_s = 0.0;  // that its share is of
};
void write_json(std::ostream& stream, const PlannedLine& planned);

struct PlannedRecipe {
  const ResolvedRecipe& resolved;
  const StepTrace& trace;
  const StepPlan& step;
  const std::vector<Advice>& advice;
  const std::vector<PredictedSetting>& settings;
  const DeviceInfo& device;
};
void write_json(std::ostream& stream, const PlannedRecipe& planned);

}  // namespace tilewave
