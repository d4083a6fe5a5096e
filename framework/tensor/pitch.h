// How rows of a matrix follow one another in memory: packed, or each from a multiple of 128 bytes on, which is what TMA, wide loads and the
// memory system of a GPU want, whatever the logical width.
#pragma once

#include <cstdint>

#include "kernels/core/dtype.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

enum class PitchPolicy : std::uint8_t { aligned, packed };

inline constexpr std::int64_t kPitchBytes = 128;

// Elements from one row of `cols` elements to the next.
constexpr std::int64_t pitch_of(std::int64_t cols, DType dtype, PitchPolicy policy) {
  return policy == PitchPolicy::aligned ? round_up(cols, kPitchBytes / size_of(dtype)) : cols;
}

}  // namespace tilewave
