// A norm's parameters and its operation: layer normalisation's "<name>.weight" (ones) and "<name>.bias" (zeros), both [d], or RMS
// normalisation's weight alone. A layer norm without a bias adds a row of zeros that nobody trains.
#pragma once

#include <string>

#include "framework/nn/parameters.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/rms_norm.h"

namespace tilewave {

enum class NormKind : std::uint8_t { layer_norm, rms_norm };

struct NormSpec {
  std::string name;
  std::int64_t d = 0;
  NormKind kind = NormKind::layer_norm;
  bool bias = true;  // a layer norm's
  double epsilon = kLayerNormEpsilon;
};

class NormLayer {
 public:
  NormLayer(Parameters& parameters, const NormSpec& spec) : kind_(spec.kind), epsilon_(spec.epsilon) {
    const Shape shape{1, spec.d};
    gamma_ = parameters.add({.name = spec.name + ".weight", .shape = shape, .kind = ParameterKind::norm, .initialization = {.mean = 1.0}});
    if (kind_ == NormKind::rms_norm) return;
    Context& context = parameters.context();
    beta_ = spec.bias ? parameters.add({.name = spec.name + ".bias", .shape = shape, .kind = ParameterKind::norm})
                      : Variable(context.persistent(shape, context.precision().compute));
  }

  Variable forward(Context& context, const Variable& x) const {
    if (kind_ == NormKind::rms_norm) return rms_norm(context, {.x = x, .gamma = gamma_, .epsilon = epsilon_});
    return layer_norm(context, {.x = x, .gamma = gamma_, .beta = beta_, .epsilon = epsilon_});
  }

 private:
  NormKind kind_;
  double epsilon_;
  Variable gamma_, beta_;
};

}  // namespace tilewave
