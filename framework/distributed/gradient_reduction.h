// Gradients summed over ranks, a layer at a time, each as soon as the backward walk has written the last of it: on a GPU in a stream of
// its own, beside what the walk still computes. What ranks say to each other is kernels/ops/collective.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "framework/autograd/variable.h"
#include "framework/nn/parameters.h"
#include "kernels/ops/collective.h"

namespace tilewave {

class GradientReduction {
 public:
  // The parameters' gradients lie by layer; they and their context outlive this.
  explicit GradientReduction(Parameters& parameters);

  // Before the backward walk whose gradients are the step's last terms.
  void begin();
  // A leaf's gradient is complete.
  void done(const Variable& leaf);
  // After the walk: gradients that nothing wrote become zero, layers that are left are summed, and so are the step state's loss and
  // stops. Launches that follow wait for all of it.
  void finish();

 private:
  void reduce(std::size_t layer);
  void launch(const AllReduceArgs& args);
  Queue& queue();

  Parameters& parameters_;
  Queue links_;                                            // where collectives go: the context's queue but on a GPU
  std::unordered_map<const void*, std::size_t> layer_of_;  // by the address of a gradient
  std::vector<std::int64_t> left_;                         // gradients of each layer that are not complete
};

}  // namespace tilewave
