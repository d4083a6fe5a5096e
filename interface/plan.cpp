// tw_plan, tw_devices and what the library says of itself.
#include <sstream>
#include <vector>

#include "framework/io/json_lines.h"
#include "framework/measure/calibration.h"
#include "interface/guard.h"
#include "interface/recipes.h"
#include "kernels/core/device_profiles.h"
#include "kernels/core/error.h"
#include "models/planning/plan_json.h"
#include "models/planning/resolve.h"

namespace tilewave {
namespace {

std::string planned(const Recipe& asked, const DeviceInfo& device) {
  const Recipe recipe = predictable(asked);
  check_plannable(recipe, device);
  RealTokenCounter tokens(recipe);
  const ResolvedRecipe resolved = resolve(recipe, {}, device, tokens);
  const StepTrace trace = trace_step(resolved, device);
  const StepPlan step = plan_step(resolved, trace, device);
  const std::vector<Advice> advice = advise(resolved.recipe, device, tokens, recipe.guidelines.wave_free_batch);
  std::ostringstream text;
  write_json(text, PlannedRecipe{.resolved = resolved, .trace = trace, .step = step, .advice = advice, .settings = {}, .device = device});
  return std::move(text).str();
}

std::string line_of(const DeviceInfo& device) {
  JsonObject object;
  object.add("backend", device.backend == Backend::cuda ? "cuda" : "cpu").add("name", device.name).add("index", device.index);
  object.add(device.backend == Backend::cuda ? "sm_count" : "threads", device.sm_count);
  if (device.backend == Backend::cuda) object.add("capability", device.capability).add("memory_bytes", device.memory_bytes);
  return object.text() + "\n";
}

}  // namespace
}  // namespace tilewave

using namespace tilewave;

int32_t tw_interface(void) { return TW_INTERFACE; }
const char* tw_version(void) { return TILEWAVE_VERSION; }
int32_t tw_has_cuda(void) { return has_cuda() ? 1 : 0; }

tw_status tw_plan(const tw_plan_request* request, char** json_lines) {
  return guarded([&] {
    TW_CHECK_INPUT(request != nullptr && json_lines != nullptr, "tw_plan takes a request and a place for its answer.");
    *json_lines = nullptr;
    const Recipe recipe = recipe_of(request->recipe);
    const std::string profile = text_of(request->profile);
    TW_CHECK_INPUT(profile.empty() || request->device == nullptr, "a plan is made for one device, and ", profile, " and ",
                   text_of(request->device), " are two.");
    const DeviceInfo device = profile.empty() ? device_of(request->device, request->threads) : device_profile(profile).device;
    *json_lines = handed_over(planned(recipe, device));
    return TW_OK;
  });
}

tw_status tw_devices(char** json_lines) {
  return guarded([&] {
    TW_CHECK_INPUT(json_lines != nullptr, "tw_devices takes a place for its answer.");
    *json_lines = nullptr;
    std::string text;
    for (const DeviceInfo& device : probe_cuda().usable) text += line_of(device);
    *json_lines = handed_over(text + line_of(probe_cpu()));
    return TW_OK;
  });
}
