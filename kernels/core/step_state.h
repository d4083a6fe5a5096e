// What changes between steps, in device memory, so that the launches of a step stay the same: kernels read it, the optimizer's
// kernels and the host write it.
#pragma once

#include <cstdint>

namespace tilewave {

// Which of a batch's two sequences of rows. A decoder-only model has the target's alone.
enum class TokenSide : std::uint8_t { target, source };

// Where a pass stands in its step, which every random number is counted by: how many dropout sites the passes before it had, and, of a
// rank's rows, the first one of each side among those of all ranks, a multiple of 4 (the keys of one draw).
struct PassPlace {
  std::uint32_t first_site = 0;  // added to a launch's own
  std::uint32_t first_target_row = 0, first_source_row = 0;

  constexpr std::uint32_t first_row(TokenSide side) const { return side == TokenSide::source ? first_source_row : first_target_row; }
};

struct StepState {
  std::int64_t step = 0;         // of the update under way, counted from 1
  std::uint64_t seed = 0;        // of every random stream
  double learning_rate = 0.0;    // of this step
  double loss_scale = 1.0;       // multiplies the loss's gradient
  double gradient_scale = 1.0;   // written by gradient_norm: the loss scale of the gradients that stand, divided out by adamw
  double gradient_norm = 0.0;    // written by gradient_norm, loss scale divided out
  double clip_factor = 1.0;      // written by gradient_norm: min(1, clip_norm / gradient_norm)
  double sum_of_squares = 0.0;   // of a rank's share of the gradients, summed over ranks where each has one
  std::int64_t real_tokens = 0;  // target tokens that count, over every accumulated batch of the step
  // Both are summed over ranks, side by side, where several of them take a step together.
  double loss = 0.0;                 // written by cross_entropy: nats a real target token, summed over the accumulated batches
  double stops = 0.0;                // ranks that were asked to stop
  std::int64_t good_steps = 0;       // written by gradient_norm under loss scaling: finite steps since the scale last changed
  std::int32_t found_nonfinite = 0;  // an update that finds it set writes nothing; sticky without loss scaling
  std::int32_t scale_exhausted = 0;  // written by gradient_norm: not finite although loss_scale was at its floor; sticky
  PassPlace place;                   // of the pass under way
};

}  // namespace tilewave
