// Pixels by their table on a CPU, rows shared out over the threads. Of every floating-point type, as conversion is.
#include "kernels/ops/normalize_pixels.h"

#include <algorithm>

#include "kernels/core/element.h"
#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {
namespace {

template <class T>
void normalize_rows(const NormalizePixelsArgs& args, std::int64_t begin, std::int64_t end) {
  const auto* const shades = static_cast<const std::uint8_t*>(args.shades.data);
  for (std::int64_t r = begin; r < end; ++r) {
    T* const y = args.y.row<T>(r);
    if (r >= args.real_rows) {
      std::fill_n(y, args.y.cols, converted<T>(0.0F));
      continue;
    }
    for (std::int64_t c = 0; c < args.y.cols; ++c) y[c] = converted<T>(args.table.row<float>(c)[shades[r * args.y.cols + c]]);
  }
}

}  // namespace

void run(CpuQueue& queue, const NormalizePixelsArgs& args) {
  check(args);
  with_element(args.y.dtype, [&]<class T>(T) {
    for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) { normalize_rows<T>(args, begin, end); });
  });
}

}  // namespace tilewave
