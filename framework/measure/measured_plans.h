// Choice by measurement: of each problem's plans those that the model ranks first, timed on scratch operands, and the fastest kept.
// Winners are remembered in cache_folder(), one file for a device, a driver and what may be chosen; a file of another driver, or one
// that cannot be read, is measured anew and said so.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "framework/tensor/context.h"

namespace tilewave {

struct MeasuredChoice {
  Queue queue;
  DeviceInfo device;
  GemmChoice choice;  // a library forced: among its heuristic's candidates; a CPU's row is the model's, so that results keep their bits
  std::function<void(const std::string&)> noted = [](const std::string&) {};  // sentences that a person should read
};

// A plan for each problem. Launches and waits: not within a captured graph.
GemmPlans measured_plans(const std::set<GemmProblem>& problems, const MeasuredChoice& choice);

}  // namespace tilewave
