// y = value on a CPU.
#include "kernels/ops/fill.h"

#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {

void run(CpuQueue& queue, const FillArgs& args) {
  with_cpu_float(args.y.dtype, "fill", [&]<class T>(T) {
    for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) std::fill_n(args.y.row<T>(r), args.y.cols, static_cast<T>(args.value));
    });
  });
}

}  // namespace tilewave
