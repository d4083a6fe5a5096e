// y = f(x) with f one of ReLU, GELU (tanh) and GELU (erf), where it is not part of a fully-connected layer.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

Variable activation(Context& context, const Variable& input, Activation kind);  // input's shape

}  // namespace tilewave
