// The columns of D that make no whole 16 bytes, of rows that start on such.
#pragma once

#include "kernels/gemm/gemm.h"

namespace tilewave {

// D's last columns, fewer than eight, where operands lie as a forward's and D is what the sums are: a launch of its own, which leaves the
// other columns as they are.
void launch_last_columns(CudaQueue& queue, const GemmArgs& args, std::int64_t columns);

}  // namespace tilewave
