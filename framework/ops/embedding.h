// y[r] = scale * table[ids[r]] + positions[position_ids[r]]; rows with a negative id (padding rows) are zero.
// positions is a learned table, or a constant one (sinusoidal_positions) that gets no gradient, or absent: then the first term stands
// alone.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

struct EmbeddingInputs {
  Variable table;       // [vocabulary, d]
  Variable positions;   // [max_positions, d], or absent
  Tensor ids;           // [1, tokens] i32
  Tensor position_ids;  // [1, tokens] i32
  double scale = 1.0;
};

Variable embedding(Context& context, const EmbeddingInputs& inputs);  // [tokens, d]

// The table of "Attention Is All You Need", section 3.5: sin and cos of position / 10000^(2i/d) in columns 2i and 2i + 1.
Tensor sinusoidal_positions(Context& context, std::int64_t max_positions, std::int64_t d, DType dtype);  // [max_positions, d]

}  // namespace tilewave
