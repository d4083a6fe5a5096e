// The GEMMs of a step, or of a layer by itself, as `plan` and `train --dry-run` print them: alignment, tiles and waves in columns of their
// own, the lines of a layer beneath its name.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "app/text/page.h"
#include "models/planning/plan.h"

namespace tilewave {

struct GemmRows {
  const std::vector<GemmLine>& lines;
  const DeviceInfo& device;
  double step_s = 0.0;  // that shares are of
};
void print_gemms(std::ostream& stream, const GemmRows& gemms, const Page& page);

// What either JSON or a table says of a line.
Cost cost_of(const GemmProblem& problem);
// That the device's peak and bandwidth leave for all launches of the line; 0: not known.
double roofline_s(const GemmLine& line, const DeviceInfo& device);
std::int64_t ctas_per_sm(const GemmPlan& plan, const DeviceInfo& device);
// NAN where the device's times are not known.
double predicted_or_nan(double seconds, const DeviceInfo& device);

}  // namespace tilewave
