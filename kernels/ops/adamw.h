// AdamW with decoupled weight decay over all parameters in one launch, in torch.optim.AdamW's order:
//   g = gradient * clip_factor / gradient_scale
//   w = w - learning_rate * weight_decay * w                (where the tensor decays)
//   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
//   w = w - learning_rate / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon)
//   compute = w, rounded to its dtype                        (where it is not the master itself)
// Nothing is written where state->found_nonfinite is set. Updates count from 1: state->step below that is an Error on a CPU, and a GPU
// writes nothing.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/core/queue.h"
#include "kernels/core/step_state.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

enum class WeightDecay : std::uint8_t { no, yes };

struct AdamWTensor {
  MatrixView master;  // [rows, cols] f32 or f64
  ConstMatrixView gradient;
  MatrixView first_moment, second_moment;
  MatrixView compute;  // absent where the master is computed with
  WeightDecay decay = WeightDecay::yes;
};

struct AdamWArgs {
  static constexpr std::string_view kOperation = "adamw";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::adamw_share};
  std::span<const AdamWTensor> tensors;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  const StepState* state = nullptr;
};

inline Cost cost(const AdamWArgs& args) {
  Cost total;
  for (const AdamWTensor& tensor : args.tensors) {
    total.flops += 14 * tensor.master.rows * tensor.master.cols;
    total.bytes += 2 * tensor.master.bytes() + tensor.gradient.bytes() + 2 * tensor.first_moment.bytes() +
                   2 * tensor.second_moment.bytes() + tensor.compute.bytes();
  }
  return total;
}
void check(const AdamWArgs& args);
void run(CpuQueue& queue, const AdamWArgs& args);
void run(CudaQueue& queue, const AdamWArgs& args);

}  // namespace tilewave
