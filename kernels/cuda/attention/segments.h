// The segments of packed rows as a kernel reads them. What lies beyond the rows or is longer than was promised is the caller's
// error, which only the device can see: the launch fails.
#pragma once

#include <climits>

#include "kernels/ops/attention.h"

namespace tilewave::attention_on_gpu {

struct Segment {
  int q_begin = 0, q_length = 0, k_begin = 0, k_length = 0;

  __device__ bool used() const { return q_length != 0 || k_length != 0; }
};

struct Segments {
  const std::int32_t* data = nullptr;
  std::int64_t ld = 0, count = 0, q_rows = 0, k_rows = 0, longest = 0;
  bool whole = false;  // a line can be read at once

  template <class Args>
  explicit Segments(const Args& args)
      : data(args.segments.template row<std::int32_t>(0)),
        ld(args.segments.ld),
        count(args.segments.rows),
        q_rows(args.q.rows),
        k_rows(args.k.rows),
        longest(longest_segment(args)),
        whole(reinterpret_cast<std::uintptr_t>(data) % sizeof(int4) == 0 && ld % 4 == 0) {}

  __device__ const std::int32_t* line(std::int64_t index) const { return data + index * ld; }
  __device__ Segment read(std::int64_t index) const {
    const std::int32_t* from = line(index);
    const int4 four = whole ? *reinterpret_cast<const int4*>(from) : int4{from[0], from[1], from[2], from[3]};
    const Segment segment{.q_begin = four.x, .q_length = four.y, .k_begin = four.z, .k_length = four.w};
    if (segment.q_begin < 0 || segment.q_length < 0 || segment.q_begin + std::int64_t{segment.q_length} > q_rows || segment.k_begin < 0 ||
        segment.k_length < 0 || segment.k_begin + std::int64_t{segment.k_length} > k_rows || segment.q_length > longest ||
        segment.k_length > longest) {
      __trap();
    }
    return segment;
  }
};

}  // namespace tilewave::attention_on_gpu
