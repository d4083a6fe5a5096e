// A fully-connected layer's parameters, "<name>.weight" [out, in] and, where it has one, "<name>.bias" [out], and its operation.
#pragma once

#include <string>
#include <vector>

#include "framework/nn/parameters.h"
#include "framework/ops/linear.h"

namespace tilewave {

struct LinearSpec {
  std::string name;
  std::int64_t in = 0, out = 0;
  double deviation = 0.02;  // of the initial weights; biases start at zero
  bool bias = true;
  std::vector<std::int64_t> parts;  // of `out`, where several layers are one
};

class Linear {
 public:
  Linear(Parameters& parameters, const LinearSpec& spec)
      : weight_(parameters.add({.name = spec.name + ".weight",
                                .shape = {spec.out, spec.in},
                                .initialization = {.deviation = spec.deviation},
                                .parts = spec.parts})),
        bias_(spec.bias
                  ? parameters.add({.name = spec.name + ".bias", .shape = {1, spec.out}, .kind = ParameterKind::bias, .parts = spec.parts})
                  : Variable()) {}

  // activation(x W^T + b) + residual
  Variable forward(Context& context, const Variable& x, const Variable& residual = {}, Activation activation = Activation::none) const {
    return linear(context, {.x = x, .weight = weight_, .bias = bias_, .residual = residual, .activation = activation});
  }
  const Variable& weight() const { return weight_; }
  const Variable& bias() const { return bias_; }

 private:
  Variable weight_, bias_;
};

}  // namespace tilewave
