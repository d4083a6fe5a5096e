// A batch shared out over ranks: whole sequences, in order, each rank as many as its rows hold. What a step trains on is decided before, by
// packing the whole batch, so that any number of ranks sees what one would. A batch whose sequences the ranks' rows do not hold at once
// takes another round, a pass more.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/data/packing.h"

namespace tilewave {

// Some of a batch's sequences, as a batch of fewer rows. Row r of it is row first_row + r of the whole; both first rows are multiples of 4,
// which random numbers are drawn by, so up to three padding rows come first.
struct BatchShare {
  Batch batch;
  std::int64_t first_source_row = 0, first_target_row = 0;

  friend bool operator==(const BatchShare&, const BatchShare&) = default;
};

// How long sequences are: as long as the shape allows but for the last ones (a stream that is cut), or of any length (sentences).
enum class SequenceLengths : std::uint8_t { whole, any };

// The rows of one of `ranks`: its part of either side, and room for the sequences that lie across. A rank alone has the whole.
BatchShape share_shape(const BatchShape& whole, std::int64_t ranks, SequenceLengths lengths);

// By round, then by rank. Each rank has a share in every round, an empty one where nothing is left for it.
std::vector<std::vector<BatchShare>> shares_of(const Batch& whole, const BatchShape& share, std::int64_t ranks);

}  // namespace tilewave
