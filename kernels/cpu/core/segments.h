// The segments of packed rows that attention works on, read from the caller's matrix; what lies outside them is zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/core/view.h"

namespace tilewave {

struct Segment {
  std::int64_t q_begin = 0, q_length = 0, k_begin = 0, k_length = 0;
};

// The segments in use, which must lie within the rows and be no longer than `sequence`, where that is above 0.
inline std::vector<Segment> used_segments(const ConstMatrixView& view, std::int64_t q_rows, std::int64_t k_rows, std::int64_t sequence) {
  std::vector<Segment> segments;
  for (std::int64_t s = 0; s < view.rows; ++s) {
    const std::int32_t* row = view.row<std::int32_t>(s);
    const Segment segment{.q_begin = row[0], .q_length = row[1], .k_begin = row[2], .k_length = row[3]};
    TW_CHECK(segment.q_begin >= 0 && segment.q_length >= 0 && segment.q_begin + segment.q_length <= q_rows && segment.k_begin >= 0 &&
                 segment.k_length >= 0 && segment.k_begin + segment.k_length <= k_rows,
             "attention: segment ", s, " has queries ", segment.q_begin, " + ", segment.q_length, " and keys ", segment.k_begin, " + ",
             segment.k_length, "; there are ", q_rows, " rows of queries and ", k_rows, " of keys.");
    TW_CHECK(sequence == 0 || std::max(segment.q_length, segment.k_length) <= sequence, "attention: segment ", s, " has ", segment.q_length,
             " queries and ", segment.k_length, " keys, more than the ", sequence, " that `sequence` promises.");
    if (segment.q_length + segment.k_length > 0) segments.push_back(segment);
  }
  return segments;
}

// Writes zeros where no segment does.
template <class T>
void zero_rows_outside(const MatrixView& view, const std::vector<Segment>& segments, std::int64_t Segment::*begin,
                       std::int64_t Segment::*length) {
  std::vector<bool> inside(static_cast<std::size_t>(view.rows));
  for (const Segment& segment : segments) std::fill_n(inside.begin() + segment.*begin, segment.*length, true);
  for (std::int64_t r = 0; r < view.rows; ++r) {
    if (!inside[static_cast<std::size_t>(r)]) std::fill_n(view.row<T>(r), view.cols, T(0));
  }
}

}  // namespace tilewave
