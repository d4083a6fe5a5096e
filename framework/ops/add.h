// y = a + b: the residual addition where no GEMM's epilogue carries it.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

Variable add(Context& context, const Variable& a, const Variable& b);  // [rows, cols], all three

}  // namespace tilewave
