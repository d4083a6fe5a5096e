// Conversion on a CPU, rows shared out over the threads.
#include "kernels/ops/convert.h"

#include <algorithm>

#include "kernels/core/element.h"
#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {
void run(CpuQueue& queue, const ConvertArgs& args) {
  check(args);
  with_element(args.x.dtype, [&]<class From>(From) {
    with_element(args.y.dtype, [&]<class To>(To) {
      for_row_ranges(queue, args.x.rows, args.x.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          std::transform(args.x.row<From>(r), args.x.row<From>(r) + args.x.cols, args.y.row<To>(r), converted<To, From>);
        }
      });
    });
  });
}

}  // namespace tilewave
