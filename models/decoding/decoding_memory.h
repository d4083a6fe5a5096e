// What decoding takes beside the weights, from a trace of it: before a model is there to decode with, and before a group of sources is
// decoded together.
#pragma once

#include <cstdint>
#include <memory>

#include "models/recipe/recipe.h"
#include "models/transformer/transformer.h"

namespace tilewave {

struct DecodedModel {
  ModelConfig config;
  ModelData data;
  DeviceInfo device;
  ContextOptions options;
};
DecodedModel decoded_model(Transformer& model);

class DecodingMemory {
 public:
  explicit DecodingMemory(DecodedModel model);
  ~DecodingMemory();
  DecodingMemory(const DecodingMemory&) = delete;
  DecodingMemory& operator=(const DecodingMemory&) = delete;

  struct Group {
    std::int64_t sources = 1, source_tokens = 1;  // so many tokens each, or rows of a picture
    std::int64_t capacity = 1;                    // tokens of a target
    std::int64_t beams = 1;
  };
  // Of a group of sources, translated together.
  std::int64_t bytes(const Group& group);

  struct Text {
    std::int64_t capacity = 1;    // tokens that are cached
    std::int64_t new_tokens = 1;  // that are read at once
  };
  // Of a decoder-only model that goes on with a text.
  std::int64_t bytes(const Text& text);

 private:
  std::int64_t host_bytes(std::int64_t rows, std::int64_t rows_at_a_time) const;

  DecodedModel model_;
  std::unique_ptr<Context> context_;  // of a trace
  std::unique_ptr<Transformer> transformer_;
};

// The longest a target may become: twice its source and 16 tokens more, or all positions.
std::int64_t longest_target(std::int64_t source_tokens, std::int64_t positions);

// What the translation of a source takes at least, by itself and greedily.
std::int64_t least_decoding_bytes(const ResolvedRecipe& resolved, const DeviceInfo& device, std::int64_t source_tokens);

}  // namespace tilewave
