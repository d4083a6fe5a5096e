// A setting that cannot be planned, or whose step does not fit into the GPU's memory, says why; the others are planned.
#include "models/predicted_settings.h"

#include "kernels/error.h"
#include "models/memory_check.h"
#include "models/wave_free.h"

namespace tilewave {
namespace {

PredictedSetting predict(const Recipe& recipe, const Setting& setting, const DeviceInfo& device) {
  PredictedSetting result{.setting = setting, .refused = {}, .refused_input = false, .shapes = {}, .step = {}, .gain = {}};
  try {
    const Recipe own = with_setting(recipe, setting);
    if (own.gemm.engine != GemmEngine::in_house) {
      result.refused = "a library's times are not predicted.";
      return result;
    }
    check_plannable(own, device);
    const ResolvedRecipe resolved = resolve(predictable(own), {}, device);
    result.shapes = resolved.shapes;
    result.target_rows = resolved.shapes.target_rows * own.batch.accumulate;
    const StepTrace trace = trace_step(resolved, device);
    result.step = plan_step(resolved, trace, device);
    if (device.backend == Backend::cuda) result.refused = memory_shortage(resolved, trace, device, device.memory_bytes);
  } catch (const InputError& error) {
    result.refused = error.what();
    result.refused_input = true;
  }
  return result;
}

double seconds_a_target_row(const PredictedSetting& one) { return one.step.predicted_s() / static_cast<double>(one.target_rows); }

}  // namespace

std::vector<PredictedSetting> predict_settings(const Recipe& recipe, const std::vector<Setting>& settings, const DeviceInfo& device) {
  std::vector<PredictedSetting> all;
  for (const Setting& setting : settings) all.push_back(predict(recipe, setting, device));
  for (PredictedSetting& one : all) {
    const PredictedSetting& baseline = all[one.setting.baseline];
    if (one.predicted() && baseline.predicted()) one.gain = seconds_a_target_row(baseline) / seconds_a_target_row(one) - 1.0;
  }
  return all;
}

}  // namespace tilewave
