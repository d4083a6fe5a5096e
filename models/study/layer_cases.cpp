// What the cases of all models share.
#include "models/study/layer_cases.h"

#include "framework/ops/cross_entropy.h"
#include "framework/tensor/host_tensor.h"
#include "framework/tensor/random.h"
#include "kernels/ops/normalize_pixels.h"

namespace tilewave {

namespace {
constexpr double kShift = 0.1;  // deviation of what biases and norms are moved by
}  // namespace

Variable LayerCases::input(std::int64_t rows) { return random_leaf(context_, {rows, config().d_model}, random_key(seed_, 2, ++inputs_)); }

std::vector<NamedVariable> LayerCases::leaves(const Parameters& parameters, const std::string& layer) {
  std::vector<NamedVariable> variables;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.decay() == WeightDecay::no) shift(parameter.master);
    const bool within = parameter.spec.name.starts_with(layer + '.');
    variables.push_back({within ? parameter.spec.name.substr(layer.size() + 1) : parameter.spec.name, parameter.variable});
  }
  return variables;
}

void LayerCases::shift(const Tensor& tensor) {
  std::vector<double> elements = read_elements(context_, tensor);
  const std::vector<double> by =
      read_elements(context_, random_leaf(context_, tensor.shape(), random_key(seed_, 3, ++inputs_), kShift).value());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] += by[i];
  write_elements(context_, tensor, elements);
}

Variable LayerCases::loss(Context& context, const Variable& logits, const Tensor& labels) const {
  return cross_entropy(context, {.logits = logits,
                                 .labels = labels,
                                 .vocabulary = resolved_.shapes.vocabulary,
                                 .smoothing = resolved_.recipe.optimizer.label_smoothing});
}

std::vector<std::uint8_t> LayerCases::random_shades(std::int64_t count) const {
  Random random(random_key(seed_, 4));
  std::vector<std::uint8_t> shades(static_cast<std::size_t>(count));
  for (std::uint8_t& shade : shades) shade = static_cast<std::uint8_t>(random.below(kShades));
  return shades;
}

}  // namespace tilewave
