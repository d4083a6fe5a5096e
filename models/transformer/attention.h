// The two attention sublayers of a Transformer's layer: norm, projections, attention over packed rows, output projection, residual.
// Parameters: self_attention.{norm, qkv, out} and cross_attention.{norm, q, kv, out}; qkv and kv are fused in that order; with
// query_key_norm both have {query_norm, key_norm} too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/nn/linear.h"
#include "framework/nn/norm.h"
#include "framework/ops/attention.h"
#include "framework/ops/rope.h"
#include "models/recipe/config.h"
#include "models/transformer/sublayer.h"

namespace tilewave {

// Keys and values of the tokens a decoder has seen: sequence s owns rows s * capacity to s * capacity + length - 1.
struct KeyValueCache {
  Tensor kv;                  // [sequences * capacity, 2 kv_heads D]
  std::int64_t capacity = 0;  // tokens a sequence
};

// Rows of the matrices that a self-attention's qkv is: queries', keys' and values'.
std::vector<std::int64_t> qkv_parts(const ModelConfig& config);

// Columns of a cache's rows.
inline std::int64_t cache_features(const ModelConfig& config) { return 2 * kv_heads_of(config) * head_size_of(config); }

// New tokens of each cached sequence: one each, or several of a single sequence.
struct DecodeStep {
  std::int64_t position = 0;  // of the first new token: so many are cached already
  std::int64_t tokens = 1;    // new ones a sequence
  Tensor position_ids;        // [1, new tokens] i32
  Tensor self_segments;       // [sequences, 4]: the new tokens see the cached ones and themselves
  Tensor cross_segments;      // [sources, 4]: all queries of a source see its keys
};

// The segments of a batch, and what is known of them before they are there.
struct Segments {
  Tensor rows;               // [at most, 4] i32
  std::int64_t longest = 0;  // 0: not known
  std::optional<SegmentSums> sums;
  Tensor position_ids;  // [1, tokens] i32, of rows that are queries and keys
};

// The table of rotary positions, which all layers share; absent where positions are of another kind.
Tensor rotations_of(Context& context, const ModelConfig& config);  // [max_positions, D]

// Heads, and the norms of queries and of keys.
class Heads {
 public:
  Heads(Parameters& parameters, const std::string& name, const ModelConfig& config);

  std::int64_t query_features() const { return heads_ * size_; }
  std::int64_t key_value_features() const { return 2 * kv_heads_ * size_; }
  // Columns of heads of queries and of keys, side by side.
  std::int64_t turned_features() const { return (heads_ + kv_heads_) * size_; }
  AttentionOptions options(const Segments& segments, Mask mask, double dropout) const;

  // Queries, keys and values side by side, or a part of them in this order, with queries and keys normalised where the recipe asks for it.
  enum class Part : std::uint8_t { queries_keys_values, queries, keys_values };
  Variable normalised(Context& context, const Variable& x, Part part) const;

 private:
  std::int64_t heads_, kv_heads_, size_;
  double scale_, epsilon_;
  Variable query_gamma_, key_gamma_;  // [1, D], or absent
};

class SelfAttention {
 public:
  SelfAttention(Parameters& parameters, const std::string& name, const ModelConfig& config, Tensor rotations);

  Variable forward(Context& context, const Variable& x, const Segments& segments, Mask mask,
                   const DropoutRates& rates) const;  // [tokens, d_model]
  // The same for new tokens alone, whose keys and values go into the cache.
  Variable decode(Context& context, const Variable& x, const DecodeStep& step, const KeyValueCache& cache) const;

 private:
  // Normalised and turned.
  Variable queries_keys_values(Context& context, const Variable& input, const Tensor& position_ids) const;

  NormLayer norm_;
  Heads heads_;
  Linear qkv_, out_;
  Tensor rotations_;
  Norm placement_;
};

class CrossAttention {
 public:
  CrossAttention(Parameters& parameters, const std::string& name, const ModelConfig& config);

  Variable forward(Context& context, const Variable& x, const Variable& memory, const Segments& segments,
                   const DropoutRates& rates) const;  // [tokens, d_model]
  // Keys and values of the encoder's output, once for a whole decoding.
  Variable keys_and_values(Context& context, const Variable& memory) const;  // [source tokens, 2 kv_heads D]
  Variable attend(Context& context, const Variable& x, const Variable& kv, const Segments& segments, const DropoutRates& rates) const;

 private:
  NormLayer norm_;
  Heads heads_;
  Linear q_, kv_, out_;
  Norm placement_;
};

}  // namespace tilewave
