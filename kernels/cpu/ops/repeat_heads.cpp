// The repetition of heads on a CPU; the definition stands in kernels/ops/repeat_heads.h.
#include "kernels/ops/repeat_heads.h"

#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {

void run(CpuQueue& queue, const RepeatHeadsArgs& args) {
  check(args);
  const std::int64_t d = args.head_size, heads = args.x.cols / d;
  with_cpu_float(args.x.dtype, "repeat_heads", [&]<class T>(T) {
    for_row_ranges(queue, args.y.rows, args.y.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        for (std::int64_t head = 0; head < heads * args.times; ++head)
          std::copy_n(args.x.row<T>(r) + head / args.times * d, d, args.y.row<T>(r) + head * d);
      }
    });
  });
}

void run(CpuQueue& queue, const RepeatHeadsBackwardArgs& args) {
  check(args);
  const std::int64_t d = args.head_size, heads = args.dx.cols / d;
  with_cpu_float(args.dx.dtype, "repeat_heads_backward", [&]<class T>(T) {
    for_row_ranges(queue, args.dy.rows, args.dy.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        for (std::int64_t head = 0; head < heads; ++head) {
          T* dx = args.dx.row<T>(r) + head * d;
          const T* dy = args.dy.row<T>(r) + head * args.times * d;
          std::copy_n(dy, d, dx);
          for (std::int64_t time = 1; time < args.times; ++time) {
#pragma GCC ivdep
            for (std::int64_t c = 0; c < d; ++c) dx[c] += dy[time * d + c];
          }
        }
      }
    });
  });
}

}  // namespace tilewave
