// What a size costs the GEMMs that it is a dimension of, by the guide's three effects: the bytes that rows of so many elements start on
// (Matrix Multiplication Background, 2.2), the padding of tiles (3.1) and SMs that idle in a last wave (3.2). Each is a part of the
// GEMMs' predicted time by itself; kernels and tiles differ from size to size as well, so that they add up to no more than nearly it all.
#pragma once

#include <cstdint>
#include <span>

#include "models/planning/plan.h"

namespace tilewave {

struct SizeEffects {
  std::int64_t alignment_bytes = 0;  // the largest power of two, 128 at most, that so many elements are a multiple of
  double alignment_cost = 0.0;       // of the time, that rows from 128 bytes on and a K of as many bytes as Tensor Cores want would save
  double useful_fraction = 1.0;      // of the tiles' area, the mean by time
  double wave_fraction = 1.0;        // of the waves' slots, likewise
};

// `lines` are the GEMMs that have `size` elements as a dimension; at least one.
SizeEffects effects_of(std::int64_t size, std::span<const GemmLine> lines, const DeviceInfo& device);

}  // namespace tilewave
