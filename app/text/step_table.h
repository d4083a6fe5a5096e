// A traced step for a person, and a profiled one: the answer, then its lines.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "app/text/page.h"
#include "kernels/core/device.h"
#include "models/step/train_step.h"

namespace tilewave {

struct TracedStep {
  const ResolvedRecipe& resolved;
  const StepTrace& trace;
  const DeviceInfo& device;
};
// What `train --dry-run` ends with: work, memory, and the step's GEMMs.
void print_step(std::ostream& stream, const TracedStep& step, const Page& page);

// Launches that do the same in layers of the same name stand in one row: time per step, share of it, rate, and for GEMMs how the
// prediction fared.
struct Profile {
  const std::vector<ProfiledLaunch>& launches;
  std::int64_t steps = 1;
};
void print_profile(std::ostream& stream, const Profile& profile, const Page& page);

}  // namespace tilewave
