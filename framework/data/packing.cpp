#include "framework/data/packing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

void place(std::vector<std::int32_t>& rows, std::int64_t first, std::span<const std::int32_t> values) {
  std::copy(values.begin(), values.end(), rows.begin() + first);
}

void number(std::vector<std::int32_t>& positions, std::int64_t first, std::size_t length) {
  std::iota(positions.begin() + first, positions.begin() + first + static_cast<std::int64_t>(length), 0);
}

}  // namespace

Packer::Packer(const BatchShape& shape) : shape_(shape) {
  TW_CHECK(shape.source_rows >= 0 && shape.target_rows > 0 && shape.sequence > 0, "a batch of ", shape.source_rows, " source rows and ",
           shape.target_rows, " target rows in sequences of ", shape.sequence, " cannot be packed; rows and sequence must be positive.");
  batch_.source_ids.assign(static_cast<std::size_t>(shape.source_rows), kPaddingId);
  batch_.source_positions.assign(static_cast<std::size_t>(shape.source_rows), 0);
  batch_.target_in.assign(static_cast<std::size_t>(shape.target_rows), kPaddingId);
  batch_.target_out.assign(static_cast<std::size_t>(shape.target_rows), kPaddingId);
  batch_.target_positions.assign(static_cast<std::size_t>(shape.target_rows), 0);
}

bool Packer::add(const Sequence& sequence) {
  const auto [source, target_in, target_out] = sequence;
  const auto source_length = static_cast<std::int64_t>(source.size()), target_length = static_cast<std::int64_t>(target_in.size());
  const bool encoder = shape_.source_rows > 0;
  TW_CHECK(target_length > 0 && target_out.size() == target_in.size() && (source_length > 0) == encoder, "a sequence of ", source_length,
           " source tokens, ", target_length, " target tokens and ", target_out.size(), " labels does not fit a model ",
           encoder ? "with" : "without", " an encoder; each side needs a token, and each target token a label.");
  TW_CHECK(std::max(source_length, target_length) <= shape_.sequence, "a sequence of ", source_length, " source and ", target_length,
           " target tokens is longer than the ", shape_.sequence, " that a batch's sequences have at most.");
  if (source_length > source_rows_left() || target_length > target_rows_left()) return false;

  if (encoder) {
    place(batch_.source_ids, source_rows_, source);
    number(batch_.source_positions, source_rows_, source.size());
    batch_.source_lengths.push_back(static_cast<std::int32_t>(source_length));
  }
  place(batch_.target_in, target_rows_, target_in);
  place(batch_.target_out, target_rows_, target_out);
  number(batch_.target_positions, target_rows_, target_in.size());
  batch_.target_lengths.push_back(static_cast<std::int32_t>(target_length));
  batch_.real_tokens += std::count_if(target_out.begin(), target_out.end(), [](std::int32_t label) { return label >= 0; });
  source_rows_ += source_length;
  target_rows_ += target_length;
  return true;
}

bool Packer::add_pair(std::span<const std::int32_t> source, std::span<const std::int32_t> target, PairFrame frame) {
  std::vector<std::int32_t> framed = {frame.begin};
  framed.insert(framed.end(), target.begin(), target.end());
  framed.push_back(frame.end);
  const std::span<const std::int32_t> rows = framed;
  return add({.source = source, .target_in = rows.first(rows.size() - 1), .target_out = rows.subspan(1)});
}

Batch Packer::take() && { return std::move(batch_); }

std::vector<std::int32_t> attention_segments(const PackedSequences& queries, const PackedSequences& keys, std::int64_t capacity) {
  const std::span<const std::int32_t> query_lengths = queries.lengths, key_lengths = keys.lengths;
  TW_CHECK(query_lengths.size() == key_lengths.size(), "attention needs as many key sequences as query sequences, not ", key_lengths.size(),
           " and ", query_lengths.size(), ".");
  TW_CHECK(static_cast<std::int64_t>(query_lengths.size()) <= capacity, query_lengths.size(), " sequences do not fit ", capacity,
           " segments.");
  std::vector<std::int32_t> segments(static_cast<std::size_t>(capacity) * 4, 0);
  auto q_begin = static_cast<std::int32_t>(queries.first_row), k_begin = static_cast<std::int32_t>(keys.first_row);
  for (std::size_t i = 0; i < query_lengths.size(); ++i) {
    const std::int32_t segment[] = {q_begin, query_lengths[i], k_begin, key_lengths[i]};
    std::copy(std::begin(segment), std::end(segment), segments.begin() + static_cast<std::int64_t>(4 * i));
    q_begin += query_lengths[i];
    k_begin += key_lengths[i];
  }
  return segments;
}

WholeSequences::WholeSequences(const BatchShape& shape)
    : shape_(shape), count_(ceil_div(std::max(shape.source_rows, shape.target_rows), shape.sequence)) {}

std::int64_t WholeSequences::rows_of(std::int64_t rows, std::int64_t sequence) const {
  if (ceil_div(rows, shape_.sequence) == count_) return std::min(shape_.sequence, rows - sequence * shape_.sequence);
  return rows / count_ + (sequence < rows % count_ ? 1 : 0);
}

std::int64_t max_sequences(const BatchShape& shape) {
  return shape.source_rows > 0 ? std::min(shape.source_rows, shape.target_rows) : shape.target_rows;
}

}  // namespace tilewave
