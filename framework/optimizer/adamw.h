// AdamW with global-norm clipping: two launches per step, the norm over all gradients and the update of all parameters. The step
// number, learning rate and loss scale come from the step state in device memory. Where ranks have shares of the parameters' state, each
// updates its own, and the norm's sum goes over all ranks; compute copies are gathered from them before they are read again.
#pragma once

#include <vector>

#include "framework/nn/parameters.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/gradient_norm.h"

namespace tilewave {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double clip_norm = 1.0;  // 0: no clipping
  LossScaling scaling;
};

class AdamW {
 public:
  AdamW(Parameters& parameters, const AdamWOptions& options);

  // Measures the gradients and updates every parameter with them, unless something is not finite.
  void update();

  const AdamWOptions& options() const { return options_; }

  // Moments of the parameter at this place in Parameters::all(), for checkpoints.
  ParameterState first_moment(std::size_t index) const { return moment(first_moments_, index); }
  ParameterState second_moment(std::size_t index) const { return moment(second_moments_, index); }

 private:
  void add_tensors();
  void add_shares();
  void measure_shares();
  ParameterState moment(const std::vector<Tensor>& moments, std::size_t index) const;

  Parameters& parameters_;
  AdamWOptions options_;
  std::vector<Tensor> first_moments_, second_moments_;  // of each parameter, or of each layer's share
  std::vector<MatrixView> gradients_;
  std::vector<AdamWTensor> tensors_;
  Tensor workspace_;  // of the norm
};

}  // namespace tilewave
