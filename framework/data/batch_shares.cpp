#include "framework/data/batch_shares.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

constexpr std::int64_t kQuad = 4;  // rows of keys that share their random numbers (kernels/math/random.h)

std::int64_t down_to_quad(std::int64_t row) { return row - row % kQuad; }

// Rows of one side of a batch that some sequences take.
struct Rows {
  std::int64_t first = 0, end = 0;

  std::int64_t from_quad() const { return end - down_to_quad(first); }
};

// Sequences [first, end) of a batch.
struct SequenceRange {
  std::int64_t first = 0, end = 0;
  Rows source, target;
};

std::int64_t length(const std::vector<std::int32_t>& lengths, std::int64_t sequence) {
  return lengths.empty() ? 0 : lengths[static_cast<std::size_t>(sequence)];
}

// As many sequences from the first one on as the share's rows hold.
SequenceRange fill(const Batch& whole, const BatchShape& share, const SequenceRange& before) {
  SequenceRange range{.first = before.end,
                      .end = before.end,
                      .source = {.first = before.source.end, .end = before.source.end},
                      .target = {.first = before.target.end, .end = before.target.end}};
  for (; range.end < std::ssize(whole.target_lengths); ++range.end) {
    Rows source = range.source, target = range.target;
    source.end += length(whole.source_lengths, range.end);
    target.end += length(whole.target_lengths, range.end);
    if (source.from_quad() > share.source_rows || target.from_quad() > share.target_rows) break;
    range.source = source;
    range.target = target;
  }
  return range;
}

std::vector<std::int32_t> part(const std::vector<std::int32_t>& whole, const SequenceRange& range) {
  return whole.empty() ? whole : std::vector<std::int32_t>(whole.begin() + range.first, whole.begin() + range.end);
}

// `rows` of them, those of the range where they lie among the whole's, the others padding.
std::vector<std::int32_t> part(const std::vector<std::int32_t>& whole, const Rows& range, std::int64_t rows, std::int32_t padding) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(rows), padding);
  std::copy(whole.begin() + range.first, whole.begin() + range.end, result.begin() + range.first % kQuad);
  return result;
}

BatchShare share_of(const Batch& whole, const BatchShape& shape, const SequenceRange& range) {
  BatchShare share{.batch = {}, .first_source_row = down_to_quad(range.source.first), .first_target_row = down_to_quad(range.target.first)};
  Batch& batch = share.batch;
  batch.first_source = range.source.first % kQuad;
  batch.first_target = range.target.first % kQuad;
  batch.source_ids = part(whole.source_ids, range.source, shape.source_rows, kPaddingId);
  batch.source_positions = part(whole.source_positions, range.source, shape.source_rows, 0);
  batch.source_lengths = part(whole.source_lengths, range);
  batch.target_in = part(whole.target_in, range.target, shape.target_rows, kPaddingId);
  batch.target_positions = part(whole.target_positions, range.target, shape.target_rows, 0);
  batch.target_out = part(whole.target_out, range.target, shape.target_rows, kPaddingId);
  batch.target_lengths = part(whole.target_lengths, range);
  batch.real_tokens = std::count_if(batch.target_out.begin(), batch.target_out.end(), [](std::int32_t label) { return label >= 0; });
  return share;
}

}  // namespace

BatchShape share_shape(const BatchShape& whole, std::int64_t ranks, SequenceLengths lengths) {
  TW_CHECK(ranks > 0, "a batch cannot be shared out over ", ranks, " ranks.");
  if (ranks == 1) return whole;
  const WholeSequences sequences(whole);
  const auto rows_of_whole = [&](std::int64_t side) {
    const bool longest = ceil_div(side, whole.sequence) == sequences.count();  // the other side's are as many, and shorter
    const std::int64_t length = longest ? std::min(whole.sequence, side) : ceil_div(side, sequences.count());
    return ceil_div(sequences.count(), ranks) * length + (length % kQuad == 0 ? 0 : kQuad - 1);
  };
  const auto rows_of_any = [&](std::int64_t side) {
    return std::max(ceil_div(side, ranks) + whole.sequence / 2, whole.sequence + kQuad - 1);
  };
  const auto rows = [&](std::int64_t side) {
    return std::min(side, lengths == SequenceLengths::whole ? rows_of_whole(side) : rows_of_any(side));
  };
  return {.source_rows = rows(whole.source_rows), .target_rows = rows(whole.target_rows), .sequence = whole.sequence};
}

std::vector<std::vector<BatchShare>> shares_of(const Batch& whole, const BatchShape& share, std::int64_t ranks) {
  std::vector<std::vector<BatchShare>> rounds;
  SequenceRange range{
      .first = 0, .end = 0, .source = {.first = 0, .end = whole.first_source}, .target = {.first = 0, .end = whole.first_target}};
  while (rounds.empty() || range.end < std::ssize(whole.target_lengths)) {
    std::vector<BatchShare>& round = rounds.emplace_back();
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t before = range.end;
      range = fill(whole, share, range);
      TW_CHECK(rank > 0 || range.end > before || whole.target_lengths.empty(), "a sequence of ", length(whole.source_lengths, before),
               " source and ", length(whole.target_lengths, before), " target rows does not fit a rank's share of ", share.source_rows,
               " and ", share.target_rows, " rows.");
      round.push_back(share_of(whole, share, range));
    }
  }
  return rounds;
}

}  // namespace tilewave
