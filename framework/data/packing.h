// Sequences packed into rows, one after another. A batch has a fixed number of rows a side, any number; rows that are left over
// are padding rows: id -1, position 0, label -1, in no segment, counted by nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/data/special_ids.h"

namespace tilewave {

inline constexpr std::int32_t kPaddingId = -1;  // the id and the label of a row that holds no token

struct BatchShape {
  std::int64_t source_rows = 0;  // 0: the model has no encoder
  std::int64_t target_rows = 0;
  std::int64_t sequence = 0;  // the longest sequence, in rows of either side

  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

// Rows of tokens; or pictures of one shape, whose pixels are all that is read beside their labels, target_out. Of pictures with captions a
// source is a picture's rows, whose ids mean nothing, and its pixels are read in their place. Behind the pixels that are there a batch's
// pictures are padding, whose values are zero once they are normalised.
struct Batch {
  std::vector<std::int32_t> source_ids, source_positions;             // [source_rows]
  std::vector<std::int32_t> source_lengths;                           // [sequences]; empty without an encoder
  std::vector<std::int32_t> target_in, target_positions, target_out;  // [target_rows]
  std::vector<std::int32_t> target_lengths;                           // [sequences]
  std::int64_t first_source = 0, first_target = 0;                    // padding rows before the first sequence
  std::int64_t real_tokens = 0;                                       // labels that count: target_out >= 0
  std::vector<std::uint8_t> pixels;                                   // [pictures x height x width, channels], a shade each

  friend bool operator==(const Batch&, const Batch&) = default;
};

// target_in is what the decoder reads, target_out what it is to say, row by row; a negative label counts nothing.
struct Sequence {
  std::span<const std::int32_t> source;
  std::span<const std::int32_t> target_in, target_out;
};

class Packer {
 public:
  explicit Packer(const BatchShape& shape);

  std::int64_t source_rows_left() const { return shape_.source_rows - source_rows_; }
  std::int64_t target_rows_left() const { return shape_.target_rows - target_rows_; }
  bool empty() const { return batch_.target_lengths.empty(); }

  // False, and nothing done, where a side has too few rows left. Error for a sequence longer than the shape's: attention relies on it.
  bool add(const Sequence& sequence);
  // The same for a pair as it is trained on: target_in is begin, target; target_out is target, end.
  bool add_pair(std::span<const std::int32_t> source, std::span<const std::int32_t> target, PairFrame frame = {});

  Batch take() &&;

 private:
  BatchShape shape_;
  Batch batch_;
  std::int64_t source_rows_ = 0, target_rows_ = 0;
};

// Sequences that lie one behind another from a row on.
struct PackedSequences {
  std::span<const std::int32_t> lengths;
  std::int64_t first_row = 0;
};
inline PackedSequences source_sequences(const Batch& batch) { return {batch.source_lengths, batch.first_source}; }
inline PackedSequences target_sequences(const Batch& batch) { return {batch.target_lengths, batch.first_target}; }

// Rows {q_begin, q_length, k_begin, k_length} for kernels/ops/attention.h, [capacity, 4], zeros behind the last segment.
// Self-attention: both the same; cross-attention: queries of the target, keys of the source.
std::vector<std::int32_t> attention_segments(const PackedSequences& queries, const PackedSequences& keys, std::int64_t capacity);

// Sequences that fill every row and are as long as the shape allows: of shape.sequence rows on the side that has more, the last one cut.
// The side that needs fewer of them spreads its rows evenly.
class WholeSequences {
 public:
  explicit WholeSequences(const BatchShape& shape);

  std::int64_t count() const { return count_; }
  std::int64_t source_rows(std::int64_t sequence) const { return rows_of(shape_.source_rows, sequence); }
  std::int64_t target_rows(std::int64_t sequence) const { return rows_of(shape_.target_rows, sequence); }

 private:
  std::int64_t rows_of(std::int64_t rows, std::int64_t sequence) const;

  BatchShape shape_;
  std::int64_t count_ = 0;
};

// Sequences that a batch of this shape can have at most: each takes a row of every side.
std::int64_t max_sequences(const BatchShape& shape);

}  // namespace tilewave
