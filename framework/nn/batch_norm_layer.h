// Batch normalization's parameters, "<name>.weight" (ones) and "<name>.bias" (zeros), its running statistics, "<name>.running_mean" and
// "<name>.running_variance", all [channels], and its operation. Training moves the running statistics; an evaluation reads them, so that
// what is said of a picture does not depend on the others of its batch.
#pragma once

#include <string>

#include "framework/nn/parameters.h"
#include "framework/ops/batch_norm.h"

namespace tilewave {

struct BatchNormSpec {
  std::string name;
  std::int64_t channels = 0;
  double epsilon = 1e-5;
};

class BatchNormLayer {
 public:
  BatchNormLayer(Parameters& parameters, const BatchNormSpec& spec)
      : epsilon_(spec.epsilon),
        gamma_(parameters.add(
            {.name = spec.name + ".weight", .shape = {1, spec.channels}, .kind = ParameterKind::norm, .initialization = {.mean = 1.0}})),
        beta_(parameters.add({.name = spec.name + ".bias", .shape = {1, spec.channels}, .kind = ParameterKind::norm})),
        running_mean_(
            parameters.add_buffer({.name = spec.name + ".running_mean", .shape = {1, spec.channels}, .kind = ParameterKind::norm})),
        running_variance_(parameters.add_buffer({.name = spec.name + ".running_variance",
                                                 .shape = {1, spec.channels},
                                                 .kind = ParameterKind::norm,
                                                 .initialization = {.mean = 1.0}})) {}

  Variable forward(Context& context, const Variable& x, BatchNormMode mode) const {  // [N H W, channels]
    return batch_norm(context, {.x = x,
                                .gamma = gamma_,
                                .beta = beta_,
                                .running_mean = running_mean_,
                                .running_variance = running_variance_,
                                .epsilon = epsilon_,
                                .mode = mode});
  }

 private:
  double epsilon_;
  Variable gamma_, beta_;
  Tensor running_mean_, running_variance_;
};

}  // namespace tilewave
