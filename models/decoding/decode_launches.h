// What a device does while it decodes: encodes the sources, caches keys and values, and computes the logits behind new tokens. It ranks and
// draws nothing, so that a trace of it tells what decoding takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/transformer/transformer.h"

namespace tilewave {

// What an encoder reads of one source: tokens, or a picture.
struct DecodedSource {
  std::int64_t rows = 0;                 // of the encoder
  std::span<const std::int32_t> ids;     // [rows]; of a picture none
  std::span<const std::uint8_t> pixels;  // [H W, C], a shade each; under a trace none
};

// The sources of one group under an encoder-decoder: `beams` rows a source, one after another, each a hypothesis.
class SourceGroup {
 public:
  struct Shape {
    std::int64_t capacity = 1;  // tokens of a hypothesis that are cached
    std::int64_t beams = 1;
  };

  // Encodes the sources, none of them empty, and makes room for their hypotheses.
  SourceGroup(Transformer& model, std::span<const DecodedSource> sources, Shape shape);

  std::int64_t capacity() const { return shape_.capacity; }
  // Logits of what follows each row's token at `position`.   [rows, V_padded]
  Tensor logits(const std::vector<std::int32_t>& tokens, std::int64_t position);
  // From now on row r is what row parents[r] was, and the rows are of these sources, `beams` each.
  void keep(const std::vector<std::int64_t>& parents, const std::vector<std::size_t>& sources);

 private:
  std::vector<KeyValueCache> make_caches(std::size_t sources);
  Pixels pixels_of(std::span<const DecodedSource> sources, const SeenPictures& seen);

  Context& context_;
  const EncoderDecoder& transformer_;
  std::int64_t cache_features_;
  Shape shape_;
  std::vector<std::int32_t> first_key_, keys_;  // of each source
  std::vector<Variable> keys_and_values_;
  std::vector<KeyValueCache> caches_, spare_;
  std::size_t rows_sources_;  // whose hypotheses the rows are
  DecodeStep step_;
};

// The text that a decoder-only model goes on with.
class CachedText {
 public:
  CachedText(Transformer& model, std::int64_t capacity);

  std::int64_t cached() const { return step_.position; }
  void forget() { step_.position = 0; }
  // Caches the tokens behind those that are; logits of what follows the last one.   [1, V_padded]
  Tensor logits(std::span<const std::int32_t> tokens);

 private:
  Context& context_;
  const DecoderOnly& transformer_;
  std::vector<KeyValueCache> caches_;
  DecodeStep step_;
};

}  // namespace tilewave
