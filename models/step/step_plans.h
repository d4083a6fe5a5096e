// The GEMM plans of a run: measured where the recipe asks for it, kept in the run folder, replayed when the run is resumed, so that
// the same kernels make the same bits.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "models/step/train_step.h"

namespace tilewave {

inline constexpr std::string_view kPlansFile = "plans.jsonl";  // framework/io/planned_gemms.h has the format

struct StepPlansRequest {
  Queue queue;
  DeviceInfo device;
  std::function<void(const std::string&)> noted = [](const std::string&) {};
};

// gemm.choice = "measure": the fastest plan of each of the step's GEMMs, timed before the step is traced for its memory. Otherwise
// none: the Context chooses.
GemmPlans plans_for_step(const ResolvedRecipe& resolved, const StepPlansRequest& request);

// The recipe's options for a Context, with these plans.
ContextOptions context_options(const Recipe& recipe, const GemmPlans& plans, const Communicator& ranks = {});

void store_plans(const std::filesystem::path& folder, const Trace& trace, const DeviceInfo& device);
// Those that this device can run; none where the folder has none. What is left to be chosen anew is noted.
GemmPlans stored_plans(const std::filesystem::path& folder, const StepPlansRequest& request);

}  // namespace tilewave
