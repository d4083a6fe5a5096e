// A batch of sequences as somebody else's framework holds them, padded to [sequences, longest], in a safetensors file
// (docs/use/formats.md). What is wrong with it is an InputError of one sentence that names file, tensor and position.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "framework/data/packing.h"
#include "framework/io/safetensors_reader.h"
#include "models/recipe/config.h"

namespace tilewave {

// Every id is below the vocabulary, every length between 1 and the width; what lies behind a length is never looked at.
struct BatchFile {
  Int32Matrix source;                        // [sequences, longest source]; empty without an encoder
  Int32Matrix target_in, target_out;         // [sequences, longest target]; a negative target_out counts nothing
  std::vector<std::int32_t> source_lengths;  // [sequences]
  std::vector<std::int32_t> target_lengths;  // [sequences]
};

BatchFile read_batch_file(const std::filesystem::path& path, const ModelConfig& model);

// The recipe of one step on this batch: as many rows as it has tokens, and no fewer than its longest sequence on either side (then,
// and where guidelines round up, the rest are padding rows); one batch an update; no dropout.
Recipe recipe_of_step(const Recipe& recipe, const BatchFile& file);

// The sequences one after another, in the file's order.
Batch pack(const BatchFile& file, const BatchShape& shape);

}  // namespace tilewave
