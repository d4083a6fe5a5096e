// What the segments of one forward and backward pass hold, known before it runs: attention's work is counted by it, where batch.sequence
// is only what no segment is longer than. The numbers are means over batches.
//   packed    pairs of the corpus, packed as training packs them
//   windows   pieces of a token stream: batch.sequence rows each, the last one of a batch cut
//   made_up   synthetic sequences, which fill every row
//   pictures  each picture's patches, as many of each
//   assumed   pairs of a corpus that nobody has read: as synthetic ones
#pragma once

#include <cstdint>
#include <string>

#include "framework/data/packing.h"
#include "kernels/ops/attention.h"

namespace tilewave {

struct PassSegments {
  enum class Origin : std::uint8_t { packed, windows, made_up, pictures, assumed };

  Origin origin = Origin::assumed;
  SegmentSums source, target, cross;  // the encoder's, the decoder's, decoder to encoder

  friend bool operator==(const PassSegments&, const PassSegments&) = default;
};

// Adds one sequence of either side; 0 source rows without an encoder.
void add_sequence(PassSegments& segments, std::int64_t source_rows, std::int64_t target_rows);

// Of a batch as it is.
PassSegments segments_of(const Batch& batch);
// Of sequences that fill every row and are as long as the shape allows, as WholeSequences has them.
PassSegments whole_segments(const BatchShape& shape, PassSegments::Origin origin);

// Of one of `ranks` that share such a pass.
PassSegments part_of(const PassSegments& segments, std::int64_t ranks);

// One sentence for a person: what attention is counted for.
std::string text_of(const PassSegments& segments, const BatchShape& shape);

}  // namespace tilewave
