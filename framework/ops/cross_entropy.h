// Mean cross entropy in nats over the rows that count (labels >= 0), with label smoothing over the logical vocabulary.
// The gradient takes the logits' memory, already scaled by loss_scale / real_tokens of the step state: the result must be the
// root of backward(), and the logits may have no other reader.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

struct CrossEntropyInputs {
  Variable logits;              // [tokens, padded vocabulary]
  Tensor labels;                // [1, tokens] i32
  std::int64_t vocabulary = 0;  // logical columns
  double smoothing = 0.0;
};

Variable cross_entropy(Context& context, const CrossEntropyInputs& inputs);  // [1, 1]

}  // namespace tilewave
