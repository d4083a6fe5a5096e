#include "framework/distributed/gradient_reduction.h"

#include <cstddef>
#include <string>

namespace tilewave {
namespace {

Queue links_of(Context& context) {
  if (std::holds_alternative<CudaQueue>(context.queue())) return make_cuda_queue(context.device().index);
  return context.queue();
}

}  // namespace

GradientReduction::GradientReduction(Parameters& parameters) : parameters_(parameters), links_(links_of(parameters.context())) {
  const std::vector<LayerGradients>& layers = parameters.layers();
  TW_CHECK(!layers.empty(), "gradients that lie each by itself are not summed over ranks; place them by layer.");
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const Parameter* parameter : layers[layer].parameters) layer_of_.emplace(parameter->variable.gradient().data(), layer);
  }
}

// Launches that are timed one by one, and those of a trace, are the context's own.
Queue& GradientReduction::queue() {
  Context& context = parameters_.context();
  const bool apart = std::holds_alternative<CudaQueue>(context.queue()) && !context.profiling();
  return apart ? links_ : context.queue();
}

void GradientReduction::begin() {
  left_.clear();
  for (const LayerGradients& layer : parameters_.layers()) left_.push_back(std::ssize(layer.parameters));
}

void GradientReduction::done(const Variable& leaf) {
  const auto found = layer_of_.find(leaf.gradient().data());
  if (found == layer_of_.end()) return;  // no parameter of the model
  if (!leaf.gradient_written()) return;  // nothing reached it: finish() sees to it
  if (--left_[found->second] == 0) reduce(found->second);
}

void GradientReduction::finish() {
  parameters_.zero_unwritten_gradients();
  for (std::size_t layer = 0; layer < left_.size(); ++layer) {
    if (left_[layer] > 0) reduce(layer);
  }
  Context& context = parameters_.context();
  double* const sums = &context.step_state()->loss;  // and stops behind it
  static_assert(offsetof(StepState, stops) == offsetof(StepState, loss) + sizeof(double));
  launch({.x = {sums, 1, 2, 2, DType::f64}, .ranks = context.ranks()});
  if (&queue() != &context.queue()) follow(context.queue(), links_);
}

void GradientReduction::reduce(std::size_t layer) {
  left_[layer] = 0;
  Context& context = parameters_.context();
  const LayerGradients& gradients = parameters_.layers()[layer];
  const std::string outer = context.layer();
  context.set_layer(gradients.name);
  launch({.x = gradients.flat.view(), .ranks = context.ranks()});
  context.set_layer(outer);
}

void GradientReduction::launch(const AllReduceArgs& args) {
  Context& context = parameters_.context();
  if (&queue() == &context.queue()) return context.launch(args);
  follow(links_, context.queue());
  run(links_, args);
}

}  // namespace tilewave
