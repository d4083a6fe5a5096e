// Rotary positions of the first `columns` columns, heads of queries and of keys side by side, in place: the input's memory is the result's,
// so that nobody else may read it. Backward turns the gradient back, in place too. The formulas stand in kernels/ops/rope.h.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

// How frequencies of long waves are stretched (Llama 3.1): those whose wave is longer than original_positions / low by `factor`, those
// shorter than original_positions / high not at all, and between them in proportion.
struct RotationStretch {
  double factor = 1.0, low = 1.0, high = 4.0;
  std::int64_t original_positions = 8192;
};

struct RotationTable {
  std::int64_t positions = 0, head_size = 0;
  double base = 10000.0;
  RotationStretch stretch;  // a factor of 1: none
};

// The frequency of pair i of a head: base^(-2 i / D), stretched.
double rotation_frequency(const RotationTable& table, std::int64_t pair);

// Row p: the D/2 cosines of p times each frequency, then the sines.
Tensor rotation_table(Context& context, const RotationTable& table);  // [positions, D]

struct RopeInputs {
  Variable x;                // [tokens, at least columns]
  Tensor table;              // [positions, D]
  Tensor position_ids;       // [1, tokens] i32
  std::int64_t columns = 0;  // of whole heads
};

Variable rope(Context& context, const RopeInputs& inputs);  // x's shape

}  // namespace tilewave
