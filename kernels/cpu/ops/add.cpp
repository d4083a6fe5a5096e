// y = a + b on a CPU; the definition stands in kernels/ops/add.h.
#include "kernels/ops/add.h"

#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {
namespace {

template <class T>
void add_rows(const AddArgs& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const T* a = args.a.row<T>(r);
    T* y = args.y.row<T>(r);
    if (!args.b) {
      std::copy_n(a, args.y.cols, y);
      continue;
    }
    const T* b = args.b.row<T>(r);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = a[c] + b[c];
  }
}

}  // namespace

void run(CpuQueue& queue, const AddArgs& args) {
  check(args);
  with_cpu_float(args.y.dtype, "add", [&]<class T>(T) {
    for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) { add_rows<T>(args, begin, end); });
  });
}

}  // namespace tilewave
