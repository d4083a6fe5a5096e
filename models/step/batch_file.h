// Batches of sequences as somebody else's framework holds them, padded to [sequences, longest], in a safetensors file
// (docs/use/formats.md). What is wrong with one is an InputError of one sentence that names file, tensor and position.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "framework/data/packing.h"
#include "framework/io/safetensors_reader.h"
#include "framework/io/safetensors_writer.h"
#include "models/recipe/config.h"

namespace tilewave {

// Every id is below the vocabulary, every length between 1 and the width; what lies behind a length is never looked at.
struct BatchFile {
  Int32Matrix source;                        // [sequences, longest source]; empty without an encoder
  Int32Matrix target_in, target_out;         // [sequences, longest target]; a negative target_out counts nothing
  std::vector<std::int32_t> source_lengths;  // [sequences]
  std::vector<std::int32_t> target_lengths;  // [sequences]
};

// Of a file that holds one.
BatchFile read_batch_file(const std::filesystem::path& path, const ModelConfig& model);

// Whether a file's tensors stand alone, or are those of several batches, each under batch_prefix(index).
enum class BatchNames : std::uint8_t { alone, numbered };
std::string batch_prefix(std::size_t index);  // "batch/3/"

struct StoredBatches {
  BatchNames names = BatchNames::alone;
  std::vector<BatchFile> batches;
};
StoredBatches read_batch_files(const std::filesystem::path& path, const ModelConfig& model);

// The recipe of steps on these batches: as many rows as the largest of them has tokens, and no fewer than its longest sequence on either
// side (then, and where guidelines round up, the rest are padding rows); no dropout. A batch that stands alone makes an update by itself;
// of numbered ones an update takes as many as the recipe accumulates.
Recipe recipe_of_step(const Recipe& recipe, const StoredBatches& files);
Recipe recipe_of_step(const Recipe& recipe, const BatchFile& file);

// The sequences one after another, in the file's order.
Batch pack(const BatchFile& file, const BatchShape& shape);

// Packed batches as such a file, numbered: behind a length stand zeros, in target_out kIgnoredLabel, as for every label that counts
// nothing.
inline constexpr std::int32_t kIgnoredLabel = -100;  // torch.nn.functional.cross_entropy's ignore_index
SafetensorsContents batch_contents(const std::vector<Batch>& batches);

}  // namespace tilewave
