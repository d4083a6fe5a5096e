// Multi-head scaled dot-product attention over packed rows; formulas and segments stand in kernels/ops/attention.h.
#pragma once

#include "framework/autograd/variable.h"
#include "kernels/ops/attention.h"

namespace tilewave {

struct AttentionOptions {
  Tensor segments;  // [at most, 4] i32
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;        // of keys and of values, each shared by heads / kv_heads of queries; 0: heads
  double scale = 0.0;               // of the scores; 0: 1 / sqrt(the columns of a head)
  std::int64_t sequence = 0;        // no segment is longer on either side; 0: not known
  std::optional<SegmentSums> sums;  // of the segments, where they are known
  Mask mask = Mask::none;
  double dropout = 0.0;  // of the attention probabilities
};

// qkv: queries, keys and values side by side, heads, kv_heads and kv_heads heads of D columns: [tokens, 3 d] where both numbers are one.
Variable self_attention(Context& context, const Variable& qkv, const AttentionOptions& options);  // -> [tokens, heads D]

// kv: keys and values side by side, of the source.
Variable cross_attention(Context& context, const Variable& q, const Variable& kv,
                         const AttentionOptions& options);  // [tokens, heads D], [source tokens, 2 kv_heads D] -> [tokens, heads D]

}  // namespace tilewave
