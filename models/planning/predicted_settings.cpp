// A setting that cannot be planned, or whose step does not fit into the GPU's memory, says why; the others are planned.
#include "models/planning/predicted_settings.h"

#include "kernels/core/error.h"
#include "models/planning/resolve.h"
#include "models/step/memory_check.h"

namespace tilewave {
namespace {

PredictedSetting predict(const Recipe& recipe, const Setting& setting, const DeviceInfo& device, RealTokenCounter& tokens) {
  PredictedSetting result{
      .setting = setting, .refused = {}, .refused_input = false, .shapes = {}, .step = {}, .adjustments = {}, .gain = {}, .gemm_gain = {}};
  try {
    const Recipe own = with_setting(recipe, setting);
    if (own.gemm.engine != GemmEngine::tilewave) {
      result.refused = "a library's times are not predicted.";
      return result;
    }
    check_plannable(own, device);
    const ResolvedRecipe resolved = resolve(predictable(own), {}, device, tokens);
    result.shapes = resolved.shapes;
    result.adjustments = resolved.adjustments;
    result.target_rows = resolved.shapes.target_rows * own.batch.accumulate;
    result.target_tokens = tokens(resolved).target_tokens();
    const StepTrace trace = trace_step(resolved, device);
    result.step = plan_step(resolved, trace, device);
    if (device.backend == Backend::cuda) result.refused = memory_shortage(resolved, trace, device, device.memory_bytes);
  } catch (const InputError& error) {
    result.refused = error.what();
    result.refused_input = true;
  }
  return result;
}

}  // namespace

std::vector<PredictedSetting> predict_settings(const Recipe& recipe, const std::vector<Setting>& settings, const DeviceInfo& device,
                                               RealTokenCounter& tokens) {
  std::vector<PredictedSetting> all;
  for (const Setting& setting : settings) all.push_back(predict(recipe, setting, device, tokens));
  for (PredictedSetting& one : all) {
    const PredictedSetting& baseline = all[one.setting.baseline];
    if (!one.predicted() || !baseline.predicted()) continue;
    const double more_tokens = static_cast<double>(one.target_tokens) / static_cast<double>(baseline.target_tokens);
    one.gain = more_tokens * baseline.step.predicted_s() / one.step.predicted_s() - 1.0;
    one.gemm_gain = more_tokens * baseline.step.gemm_s / one.step.gemm_s - 1.0;
  }
  return all;
}

std::vector<PredictedSetting> predict_settings(const Recipe& recipe, const std::vector<Setting>& settings, const DeviceInfo& device) {
  RealTokenCounter tokens(recipe);
  return predict_settings(recipe, settings, device, tokens);
}

}  // namespace tilewave
