// y = residual + dropout(x): elements are kept with probability 1 - p and divided by it. Draws depend on the seed, the step, the
// place in the step, row and column only. With p = 0 this is the residual addition alone; without a residual too, x itself.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

struct DropoutInputs {
  Variable x;         // [tokens, d]
  Variable residual;  // [tokens, d], or absent
  double probability = 0.0;
};

Variable dropout(Context& context, const DropoutInputs& inputs);  // [tokens, d]

}  // namespace tilewave
