// RMS normalisation of each row, as torch.nn.functional.rms_norm with a weight; and of each head of queries and keys. The formulas stand in
// kernels/ops/rms_norm.h.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

struct RmsNormInputs {
  Variable x;      // [tokens, d]
  Variable gamma;  // [1, d]
  double epsilon = 1e-5;
};

Variable rms_norm(Context& context, const RmsNormInputs& inputs);  // [tokens, d]

// x is queries, keys and values side by side, or some of them in this order: heads of D columns each, of which queries and keys are
// normalised, each head by itself, and values are copied.
struct QueryKeyNormInputs {
  Variable x;                       // [tokens, columns]
  Variable query_gamma, key_gamma;  // [1, D]; absent where x has no queries, or no keys
  std::int64_t heads = 0, kv_heads = 0;
  double epsilon = 1e-5;
};

Variable query_key_norm(Context& context, const QueryKeyNormInputs& inputs);  // x's shape

}  // namespace tilewave
