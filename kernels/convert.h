// y = x, rounded to y's type (to nearest, ties to even). Between any two floating-point types.
#pragma once

#include "kernels/queue.h"
#include "kernels/view.h"

namespace tilewave {

struct ConvertArgs {
  static constexpr std::string_view kOperation = "convert";
  ConstMatrixView x;
  MatrixView y;
};

// Throws Error where shapes differ or a type is no floating-point one.
void check(const ConvertArgs& args);

inline Cost cost(const ConvertArgs& args) { return {.flops = 0, .bytes = args.x.bytes() + args.y.bytes()}; }
void run(CpuQueue& queue, const ConvertArgs& args);
void run(CudaQueue& queue, const ConvertArgs& args);

}  // namespace tilewave
