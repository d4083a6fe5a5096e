// The operations of today's blocks for benchmarks: RMSNorm, SiLU and SwiGLU's product, rotary positions, repeated heads. Rows are tokens,
// columns features; heads have 64 columns where the features are heads, else all of them.
#pragma once

#include <string_view>

#include "framework/measure/operation_work.h"

namespace tilewave {

// "rms_norm", "silu", "swiglu", "repeat_heads", each also with "_backward" behind it, and "rope", whose backward pass is the same launch.
OperationWork prepare_block(Context& context, Shape shape, std::string_view name);

}  // namespace tilewave
