// Layer normalisation's parameters, "<name>.weight" (ones) and "<name>.bias" (zeros), both [d], and its operation.
#pragma once

#include <string>

#include "framework/nn/parameters.h"
#include "framework/ops/layer_norm.h"

namespace tilewave {

class LayerNorm {
 public:
  LayerNorm(Parameters& parameters, const std::string& name, std::int64_t d)
      : gamma_(parameters.add({.name = name + ".weight", .shape = {1, d}, .kind = ParameterKind::norm, .initialization = {.mean = 1.0}})),
        beta_(parameters.add({.name = name + ".bias", .shape = {1, d}, .kind = ParameterKind::norm})) {}

  Variable forward(Context& context, const Variable& x) const { return layer_norm(context, {.x = x, .gamma = gamma_, .beta = beta_}); }

 private:
  Variable gamma_, beta_;
};

}  // namespace tilewave
