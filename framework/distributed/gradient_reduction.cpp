#include "framework/distributed/gradient_reduction.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/core/memory.h"
#include "kernels/ops/add.h"
#include "kernels/ops/convert.h"

namespace tilewave {

GradientReduction::GradientReduction(Parameters& parameters)
    : parameters_(parameters), in_turns_(parameters.sharding() == Sharding::gradients) {
  const std::vector<ParameterLayer>& layers = parameters.layers();
  TW_CHECK(!layers.empty(), "gradients that lie each by itself are not summed over ranks; place them by layer.");
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const ParameterPlace& place : layers[layer].places) layer_of_.emplace(place.parameter->variable.value().data(), layer);
    const auto next = std::find_if(layers.begin() + static_cast<std::ptrdiff_t>(layer) + 1, layers.end(),
                                   [&](const ParameterLayer& other) { return other.gradients.data() == layers[layer].gradients.data(); });
    turn_before_.push_back(static_cast<std::size_t>(next - layers.begin()));
  }
  Context& context = parameters.context();
  if (context.options().gradient_reduction == GradientReductionType::fp32) return;
  TW_CHECK(context.precision().gradient == DType::f32, "gradients of ", name_of(context.precision().gradient),
           " are summed as they are; gradients of f32 can be summed in bf16.");
  const auto largest = std::ranges::max_element(layers, {}, &ParameterLayer::elements);
  narrow_ = context.persistent({1, largest->elements}, DType::bf16);
}

void GradientReduction::begin(PassKind kind) {
  kind_ = kind;
  left_.clear();
  for (const ParameterLayer& layer : parameters_.layers()) left_.push_back(std::ssize(layer.places));
}

void GradientReduction::done(const Variable& leaf) {
  const auto found = layer_of_.find(leaf.value().data());
  if (found == layer_of_.end()) return;  // no parameter of the model
  if (!leaf.gradient_written()) return;  // nothing reached it: finish() sees to it
  const std::vector<ParameterLayer>& layers = parameters_.layers();
  const std::size_t before = turn_before_[found->second];
  TW_CHECK(before == layers.size() || left_[before] == 0, layers[found->second].name, " has its gradients before all of ",
           layers[before].name, "'s are summed, whose memory they share; layers of one make are added in the order of the forward pass.");
  if (--left_[found->second] == 0) reduce(found->second);
}

void GradientReduction::finish(PassEnd end) {
  for (std::size_t layer = 0; layer < left_.size(); ++layer) {
    TW_CHECK(!in_turns_ || left_[layer] == 0, parameters_.layers()[layer].name,
             " has a parameter that no pass reaches, and the memory of its gradients is another layer's by now.");
  }
  parameters_.zero_unwritten_gradients();
  for (std::size_t layer = 0; layer < left_.size(); ++layer) {
    if (left_[layer] > 0) reduce(layer);
  }
  Context& context = parameters_.context();
  if (end == PassEnd::last) {
    double* const sums = &context.step_state()->loss;  // and stops behind it
    static_assert(offsetof(StepState, stops) == offsetof(StepState, loss) + sizeof(double));
    context.launch_beside(AllReduceArgs{.x = {sums, 1, 2, 2, DType::f64}, .ranks = context.ranks()});
  }
  context.await_ranks();
}

void GradientReduction::reduce(std::size_t layer) {
  left_[layer] = 0;
  Context& context = parameters_.context();
  const ParameterLayer& done = parameters_.layers()[layer];
  const std::string outer = context.layer();
  context.set_layer(done.name);
  parameters_.sharding() == Sharding::none ? sum_all(done) : sum_shares(done);
  context.set_layer(outer);
}

// What goes over the links: the layer's gradients, or their copy in bf16. Collectives and conversions follow each other in one stream, so
// that the copy of the next layer waits for the sums of this one.
Tensor GradientReduction::sent(const ParameterLayer& layer) {
  if (!narrow_) return layer.gradients;
  const Tensor copy = narrow_.columns(0, layer.elements);
  launch_conversion(layer.gradients, copy);
  return copy;
}

// As rows, which a CPU's threads share out: a layer, and a rank's share of it, are so many of them.
void GradientReduction::launch_conversion(const Tensor& x, const Tensor& y) {
  constexpr std::int64_t kCols = kAlignment / static_cast<std::int64_t>(sizeof(float));
  const auto rows = [](const Tensor& vector) { return vector.as_rows(0, {vector.cols() / kCols, kCols}, kCols); };
  parameters_.context().launch_beside(ConvertArgs{.x = rows(x).view(), .y = rows(y).view()});
}

void GradientReduction::sum_all(const ParameterLayer& layer) {
  Context& context = parameters_.context();
  const Tensor whole = sent(layer);
  context.launch_beside(AllReduceArgs{.x = whole.view(), .ranks = context.ranks()});
  if (narrow_) launch_conversion(whole, layer.gradients);
}

// The sums go to this rank's columns of the layer's memory, which are its share of the gradients unless layers take turns.
void GradientReduction::sum_shares(const ParameterLayer& layer) {
  Context& context = parameters_.context();
  const ShareRange own = share_of(layer, context.ranks(), context.ranks().rank);
  const Tensor sums = layer.gradients.columns(own.first, own.count);
  // The walk goes on to the layer before this one, whose memory is that of the one behind: wait for what is summed there.
  if (in_turns_) context.await_ranks();
  const Tensor whole = sent(layer), part = whole.columns(own.first, own.count);
  context.launch_beside(ReduceScatterArgs{.x = whole.view(), .y = part.view(), .ranks = context.ranks()});
  if (narrow_) launch_conversion(part, sums);
  if (!in_turns_) return;
  const MatrixView share = layer.gradient_share.view();
  context.launch_beside(AddArgs{.a = sums.view(), .b = kind_ == PassKind::later ? ConstMatrixView(share) : ConstMatrixView(), .y = share});
}

}  // namespace tilewave
