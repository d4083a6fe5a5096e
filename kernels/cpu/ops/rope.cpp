// Rotary positions on a CPU; the formulas stand in kernels/ops/rope.h.
#include "kernels/ops/rope.h"

#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {
namespace {

template <class T>
void rotate_row(const RopeArgs& args, std::int64_t r) {
  const std::int64_t d = args.table.cols, half = d / 2;
  const T* cosines = args.table.row<T>(args.position_ids.row<std::int32_t>(0)[r]);
  const T* sines = cosines + half;
  const T sign = args.rotation == Rotation::forward ? T(1) : T(-1);
  for (std::int64_t head = 0; head < args.x.cols; head += d) {
    const T* x = args.x.row<T>(r) + head;
    T* y = args.y.row<T>(r) + head;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < half; ++i) {
      const T first = x[i], second = x[i + half], cosine = cosines[i], sine = sign * sines[i];
      y[i] = first * cosine - second * sine;
      y[i + half] = second * cosine + first * sine;
    }
  }
}

}  // namespace

void run(CpuQueue& queue, const RopeArgs& args) {
  check(args);
  for (std::int64_t r = 0; r < args.x.rows; ++r) {
    const std::int32_t position = args.position_ids.row<std::int32_t>(0)[r];
    TW_CHECK(position >= 0 && position < args.table.rows, "rope: row ", r, " has position ", position, ", and the table of rotations has ",
             args.table.rows, " rows.");
  }
  with_cpu_float(args.x.dtype, "rope", [&]<class T>(T) {
    for_row_ranges(queue, args.x.rows, args.x.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) rotate_row<T>(args, r);
    });
  });
}

}  // namespace tilewave
