// Plans between the trace, the measurement and the run folder.
#include "models/step/step_plans.h"

#include <set>

#include "framework/io/file.h"
#include "framework/io/planned_gemms.h"
#include "framework/measure/measured_plans.h"

namespace tilewave {

GemmPlans plans_for_step(const ResolvedRecipe& resolved, const StepPlansRequest& request) {
  if (plan_source(resolved.recipe.gemm.choice) != PlanSource::measure) return {};
  std::set<GemmProblem> problems;
  for (const TraceEntry& entry : trace_step(resolved, request.device).trace.entries) {
    if (entry.gemm) problems.insert(*entry.gemm);
  }
  return measured_plans(
      problems,
      {.queue = request.queue, .device = request.device, .choice = context_options(resolved.recipe).gemm, .noted = request.noted});
}

ContextOptions context_options(const Recipe& recipe, const GemmPlans& plans, const Communicator& ranks) {
  ContextOptions options = context_options(recipe);
  options.plans = plans;
  options.ranks = ranks;
  return options;
}

void store_plans(const std::filesystem::path& folder, const Trace& trace, const DeviceInfo& device) {
  GemmPlans plans;
  for (const TraceEntry& entry : trace.entries) {
    if (entry.gemm && entry.plan) plans.insert_or_assign(*entry.gemm, *entry.plan);
  }
  PlannedGemms stored = {.device = device.name, .driver = device.driver, .gemms = {}};
  for (const auto& [problem, plan] : plans) stored.gemms.push_back({.problem = problem, .plan = plan});
  write_planned_gemms(folder / kPlansFile, stored);
}

GemmPlans stored_plans(const std::filesystem::path& folder, const StepPlansRequest& request) {
  const std::filesystem::path path = folder / kPlansFile;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return {};
  const ReadGemms read = read_planned_gemms(path, request.device);
  if (read.left_out > 0) {
    request.noted(concat(path.string(), ": ", read.left_out, " plans, chosen on ", printable(read.gemms.device),
                         ", cannot run here and are chosen anew: the resumed run's numbers will differ in their last bits."));
  }
  GemmPlans plans;
  for (const PlannedGemm& gemm : read.gemms.gemms) {
    GemmPlan plan = gemm.plan;
    plan.reason = concat("as the run began, ", path.string());
    plans.insert_or_assign(gemm.problem, plan);
  }
  return plans;
}

}  // namespace tilewave
