// The encoder-decoder Transformer (Vaswani et al., "Attention Is All You Need", 2017), pre- or post-norm, over packed rows. With a stem the
// encoder reads pictures in the place of tokens, and the decoder writes what they show. Parameters: the stem's, embedding.*,
// encoder.<layer>.{self_attention, ffn}.*, decoder.<layer>.{self_attention, cross_attention, ffn}.*, and with pre-norm encoder.norm and
// decoder.norm after the last layers.
#pragma once

#include <optional>
#include <vector>

#include "models/pictures/picture_stem.h"
#include "models/transformer/attention.h"
#include "models/transformer/batch_tensors.h"
#include "models/transformer/feed_forward.h"
#include "models/transformer/vocabulary.h"

namespace tilewave {

// What a model's parameters are counted from, beside its config.
struct ModelData {
  std::int64_t padded_vocabulary = 0;
  std::optional<SeenPictures> picture = {};  // of an encoder that sees
};

struct ForwardOptions {
  DropoutRates rates = {};
  BatchNormMode mode = BatchNormMode::evaluation;  // of a stem
};

class EncoderDecoder {
 public:
  EncoderDecoder(Parameters& parameters, const ModelConfig& config, const ModelData& data);

  Variable logits(Context& context, const BatchTensors& batch, std::int64_t sequence,
                  const ForwardOptions& options) const;  // [target tokens, V_padded]

  // Decoding: the encoder once, then new target tokens against its keys and values.
  Variable encode(Context& context, const BatchTensors& batch, std::int64_t sequence,
                  const ForwardOptions& options) const;                                         // [source tokens, d_model]
  std::vector<Variable> cross_keys_and_values(Context& context, const Variable& memory) const;  // one a layer
  Variable decode(Context& context, const Tensor& ids, const DecodeStep& step, const std::vector<KeyValueCache>& caches,
                  const std::vector<Variable>& cross) const;  // [tokens, V_padded]

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::size_t decoder_layers() const { return decoder_.size(); }

 private:
  struct EncoderLayer {
    SelfAttention self_attention;
    FeedForward ffn;
  };
  struct DecoderLayer {
    SelfAttention self_attention;
    CrossAttention cross_attention;
    FeedForward ffn;
  };

  Vocabulary vocabulary_;
  std::optional<PictureEmbedding> pictures_;  // in the place of source tokens
  std::vector<EncoderLayer> encoder_;
  std::optional<NormLayer> encoder_norm_;
  std::vector<DecoderLayer> decoder_;
  std::optional<NormLayer> decoder_norm_;
};

}  // namespace tilewave
