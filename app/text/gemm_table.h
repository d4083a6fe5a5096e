// The GEMMs of a step, or of a layer by itself, as `plan` and `train --dry-run` print them: alignment, tiles and waves in columns of their
// own, the lines of a layer beneath its name.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "app/text/page.h"
#include "models/planning/plan_json.h"

namespace tilewave {

struct GemmRows {
  const std::vector<GemmLine>& lines;
  const DeviceInfo& device;
  double step_s = 0.0;  // that shares are of
};
void print_gemms(std::ostream& stream, const GemmRows& gemms, const Page& page);

}  // namespace tilewave
