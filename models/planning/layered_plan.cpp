// What a layer adds is the difference of two plans.
#include "models/planning/layered_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/core/error.h"
#include "kernels/core/saturating.h"

namespace tilewave {
namespace {

constexpr std::int64_t kFewLayers = 2;  // a first and a last one

// A plan with one more layer in a stack than the shallow one, and how many are still to be added.
struct Slope {
  StepPlan one_more;
  std::int64_t layers = 0;
};

ResolvedRecipe with_layers(ResolvedRecipe resolved, std::int64_t encoder, std::int64_t decoder) {
  resolved.recipe.model.encoder_layers = encoder;
  resolved.recipe.model.decoder_layers = decoder;
  return resolved;
}

const OperationLine& same_line(const StepPlan& plan, const OperationLine& line) {
  const auto found = std::ranges::find_if(
      plan.operations, [&](const OperationLine& other) { return other.layer == line.layer && other.operation == line.operation; });
  TW_CHECK(found != plan.operations.end(), line.operation, " of ", line.layer, " is not in every layer.");
  return *found;
}

template <class Number>
void add(Number& value, Number from, Number to, std::int64_t layers) {
  value += static_cast<Number>(layers) * (to - from);
}

void add_lines(StepPlan& plan, const StepPlan& shallow, const Slope& slope) {
  TW_CHECK(slope.one_more.gemms.size() == shallow.gemms.size(), "a deeper model has other GEMMs.");
  for (std::size_t i = 0; i < plan.gemms.size(); ++i) {
    add(plan.gemms[i].count, shallow.gemms[i].count, slope.one_more.gemms[i].count, slope.layers);
  }
  for (OperationLine& line : plan.operations) {
    const OperationLine &from = same_line(shallow, line), &to = same_line(slope.one_more, line);
    add(line.count, from.count, to.count, slope.layers);
    add(line.cost.flops, from.cost.flops, to.cost.flops, slope.layers);
    add(line.cost.bytes, from.cost.bytes, to.cost.bytes, slope.layers);
    add(line.predicted_s, from.predicted_s, to.predicted_s, slope.layers);
  }
}

bool countable(const StepPlan& shallow, const std::vector<Slope>& slopes) {
  double flops = static_cast<double>(shallow.matrix_flops);
  for (const Slope& slope : slopes) {
    flops += static_cast<double>(slope.layers) * static_cast<double>(slope.one_more.matrix_flops - shallow.matrix_flops);
  }
  return flops < 0.9 * static_cast<double>(kUncountable);
}

}  // namespace

bool is_deep(const ModelConfig& model) { return model.encoder_layers + model.decoder_layers > kDeepLayers; }

StepPlan plan_by_layers(const ResolvedRecipe& resolved, const DeviceInfo& device) {
  const ModelConfig& model = resolved.recipe.model;
  if (!is_deep(model)) return plan_step(resolved, device);
  const std::int64_t encoder = std::min(model.encoder_layers, kFewLayers), decoder = std::min(model.decoder_layers, kFewLayers);
  const auto planned = [&](std::int64_t of_encoder, std::int64_t of_decoder) {
    return plan_step(with_layers(resolved, of_encoder, of_decoder), device);
  };
  const StepPlan shallow = planned(encoder, decoder);
  std::vector<Slope> slopes;
  if (model.encoder_layers > encoder) {
    slopes.push_back({.one_more = planned(encoder + 1, decoder), .layers = model.encoder_layers - encoder});
  }
  if (model.decoder_layers > decoder) {
    slopes.push_back({.one_more = planned(encoder, decoder + 1), .layers = model.decoder_layers - decoder});
  }
  if (!countable(shallow, slopes)) return plan_step(resolved, device);  // which says so
  StepPlan plan = shallow;
  for (const Slope& slope : slopes) {
    add_lines(plan, shallow, slope);
    add(plan.gemm_s, shallow.gemm_s, slope.one_more.gemm_s, slope.layers);
    add(plan.other_s, shallow.other_s, slope.one_more.other_s, slope.layers);
    add(plan.links_s, shallow.links_s, slope.one_more.links_s, slope.layers);
    add(plan.exposed_s, shallow.exposed_s, slope.one_more.exposed_s, slope.layers);
    add(plan.late_s, shallow.late_s, slope.one_more.late_s, slope.layers);
    add(plan.alone_s, shallow.alone_s, slope.one_more.alone_s, slope.layers);
    add(plan.bytes, shallow.bytes, slope.one_more.bytes, slope.layers);
    add(plan.parameters, shallow.parameters, slope.one_more.parameters, slope.layers);
    add(plan.matrix_flops, shallow.matrix_flops, slope.one_more.matrix_flops, slope.layers);
  }
  std::ranges::stable_sort(plan.operations, std::greater{}, &OperationLine::predicted_s);
  return plan;
}

}  // namespace tilewave
