// Gradients summed over ranks, a layer at a time, each as soon as the backward walk has written the last of it: on a GPU in a stream of
// its own, beside what the walk still computes. Every rank gets all sums, or its share of them alone. In bf16, layers take turns in memory
// that has a copy of one: rounded into it, summed there, and widened from it. What ranks say to each other is kernels/ops/collective.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "framework/autograd/variable.h"
#include "framework/nn/parameters.h"
#include "kernels/ops/collective.h"

namespace tilewave {

// The first pass of a step writes gradients, later ones add to them.
enum class PassKind : std::uint8_t { first, later };
// Behind the last one a step's gradients are complete.
enum class PassEnd : std::uint8_t { more_follow, last };

class GradientReduction {
 public:
  // The parameters' gradients lie by layer; they and their context outlive this.
  explicit GradientReduction(Parameters& parameters);

  // Whether a pass's gradients are summed over ranks: those of a step's last one, which have all terms; where layers take turns in the
  // memory of gradients, those of every pass, which are added up in the ranks' shares.
  bool wants(PassEnd end) const { return in_turns_ || end == PassEnd::last; }
  // Before the backward walk of such a pass.
  void begin(PassKind kind);
  // A leaf's gradient is complete.
  void done(const Variable& leaf);
  // After the walk: gradients that nothing wrote become zero, layers that are left are summed, and behind the last pass so are the step
  // state's loss and stops. Launches that follow wait for all of it.
  void finish(PassEnd end);

 private:
  void reduce(std::size_t layer);
  void sum_all(const ParameterLayer& layer);
  void sum_shares(const ParameterLayer& layer);
  Tensor sent(const ParameterLayer& layer);
  void launch_conversion(const Tensor& x, const Tensor& y);

  Parameters& parameters_;
  bool in_turns_;
  Tensor narrow_;  // [1, elements of the largest layer], what is summed in bf16; absent where gradients are summed as they are
  PassKind kind_ = PassKind::first;
  std::unordered_map<const void*, std::size_t> layer_of_;  // by the address of a value
  std::vector<std::int64_t> left_;                         // gradients of each layer that are not complete
  std::vector<std::size_t> turn_before_;  // of each layer the one that has its memory before it in the walk; none: as many as there are
};

}  // namespace tilewave
