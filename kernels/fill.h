// y = value, everywhere.
#pragma once

#include "kernels/queue.h"
#include "kernels/view.h"

namespace tilewave {

struct FillArgs {
  static constexpr std::string_view kOperation = "fill";
  MatrixView y;
  double value = 0.0;
};

inline Cost cost(const FillArgs& args) { return {.flops = 0, .bytes = args.y.bytes()}; }
void run(CpuQueue& queue, const FillArgs& args);
void run(CudaQueue& queue, const FillArgs& args);

}  // namespace tilewave
