// The decoder-only Transformer; with pre-norm, GELU (tanh), learned positions and tied embeddings it is GPT-2's architecture
// (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), with RMSNorm, rotary positions, grouped queries and
// SwiGLU Llama's (Touvron et al., "LLaMA", 2023).
// Parameters: embedding.*, decoder.<layer>.{self_attention, ffn}.*, and with pre-norm decoder.norm after the last layer.
#pragma once

#include <optional>
#include <vector>

#include "models/transformer/attention.h"
#include "models/transformer/batch_tensors.h"
#include "models/transformer/feed_forward.h"
#include "models/transformer/vocabulary.h"

namespace tilewave {

class DecoderOnly {
 public:
  DecoderOnly(Parameters& parameters, const ModelConfig& config, std::int64_t padded_vocabulary);

  Variable logits(Context& context, const BatchTensors& batch, std::int64_t sequence,
                  const DropoutRates& rates) const;  // [tokens, V_padded]
  Variable decode(Context& context, const Tensor& ids, const DecodeStep& step,
                  const std::vector<KeyValueCache>& caches) const;  // [tokens, V_padded]

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::size_t decoder_layers() const { return layers_.size(); }

 private:
  struct Layer {
    SelfAttention self_attention;
    FeedForward ffn;
  };

  Vocabulary vocabulary_;
  std::vector<Layer> layers_;
  std::optional<NormLayer> norm_;
};

}  // namespace tilewave
