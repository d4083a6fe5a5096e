// The two attention sublayers of a Transformer's layer: norm, projections, attention over packed rows, output projection, residual.
// Parameters: self_attention.{norm, qkv, out} and cross_attention.{norm, q, kv, out}; qkv and kv are fused in that order.
#pragma once

#include <optional>
#include <string>

#include "framework/nn/layer_norm.h"
#include "framework/nn/linear.h"
#include "framework/ops/attention.h"
#include "models/recipe/config.h"
#include "models/transformer/sublayer.h"

namespace tilewave {

// Keys and values of the tokens a decoder has seen: sequence s owns rows s * capacity to s * capacity + length - 1.
struct KeyValueCache {
  Tensor kv;                  // [sequences * capacity, 2 d_model]
  std::int64_t capacity = 0;  // tokens a sequence
};

// New tokens of each cached sequence: one each, or several of a single sequence.
struct DecodeStep {
  std::int64_t position = 0;  // of the first new token: so many are cached already
  std::int64_t tokens = 1;    // new ones a sequence
  Tensor self_segments;       // [sequences, 4]: the new tokens see the cached ones and themselves
  Tensor cross_segments;      // [sources, 4]: all queries of a source see its keys
};

// The segments of a batch, and what is known of them before they are there.
struct Segments {
  Tensor rows;               // [at most, 4] i32
  std::int64_t longest = 0;  // 0: not known
  std::optional<SegmentSums> sums;
};

class SelfAttention {
 public:
  SelfAttention(Parameters& parameters, const std::string& name, const ModelConfig& config);

  Variable forward(Context& context, const Variable& x, const Segments& segments, Mask mask,
                   const DropoutRates& rates) const;  // [tokens, d_model]
  // The same for new tokens alone, whose keys and values go into the cache.
  Variable decode(Context& context, const Variable& x, const DecodeStep& step, const KeyValueCache& cache) const;

 private:
  LayerNorm norm_;
  Linear qkv_, out_;
  std::int64_t heads_;
  Norm placement_;
};

class CrossAttention {
 public:
  CrossAttention(Parameters& parameters, const std::string& name, const ModelConfig& config);

  Variable forward(Context& context, const Variable& x, const Variable& memory, const Segments& segments,
                   const DropoutRates& rates) const;  // [tokens, d_model]
  // Keys and values of the encoder's output, once for a whole decoding.
  Variable keys_and_values(Context& context, const Variable& memory) const;  // [source tokens, 2 d_model]
  Variable attend(Context& context, const Variable& x, const Variable& kv, const Segments& segments, const DropoutRates& rates) const;

 private:
  LayerNorm norm_;
  Linear q_, kv_, out_;
  std::int64_t heads_;
  Norm placement_;
};

}  // namespace tilewave
