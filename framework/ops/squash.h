// y = sigmoid(x) or tanh(x), element by element.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/ops/squash.h"

namespace tilewave {

Variable squash(Context& context, const Variable& input, Squash kind);  // input's shape

}  // namespace tilewave
