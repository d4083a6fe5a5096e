// Sums over sequences.
#include "models/recipe/pass_segments.h"

#include <cmath>
#include <utility>

#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

void add(SegmentSums& sums, std::int64_t queries, std::int64_t keys) {
  sums.queries += queries;
  sums.pairs += queries * keys;
}

// Keys of a query's segment, on average over the queries.
std::string keys_text(const SegmentSums& sums) {
  const double keys = static_cast<double>(sums.pairs) / static_cast<double>(sums.queries);
  return concat(std::round(10.0 * keys) / 10.0);
}

}  // namespace

void add_sequence(PassSegments& segments, std::int64_t source_rows, std::int64_t target_rows) {
  add(segments.source, source_rows, source_rows);
  add(segments.target, target_rows, target_rows);
  if (source_rows > 0) add(segments.cross, target_rows, source_rows);
}

PassSegments segments_of(const Batch& batch) {
  PassSegments segments{.origin = PassSegments::Origin::packed, .source = {}, .target = {}, .cross = {}};
  for (std::size_t i = 0; i < batch.target_lengths.size(); ++i) {
    add_sequence(segments, batch.source_lengths.empty() ? 0 : batch.source_lengths[i], batch.target_lengths[i]);
  }
  return segments;
}

PassSegments whole_segments(const BatchShape& shape, PassSegments::Origin origin) {
  PassSegments segments{.origin = origin, .source = {}, .target = {}, .cross = {}};
  const WholeSequences sequences(shape);
  for (std::int64_t i = 0; i < sequences.count(); ++i) add_sequence(segments, sequences.source_rows(i), sequences.target_rows(i));
  return segments;
}

PassSegments part_of(const PassSegments& segments, std::int64_t ranks) {
  PassSegments part = segments;
  for (SegmentSums* const sums : {&part.source, &part.target, &part.cross}) {
    sums->queries = ceil_div(sums->queries, ranks);
    sums->pairs = ceil_div(sums->pairs, ranks);
  }
  return part;
}

std::string text_of(const PassSegments& segments, const BatchShape& shape) {
  const std::string longest = concat("batch.sequence = ", shape.sequence);
  switch (segments.origin) {
    case PassSegments::Origin::packed:
      if (shape.source_rows == 0) {
        return concat("attention is counted for the sequences of the corpus: a token's has ", keys_text(segments.target),
                      " tokens on average.");
      }
      return concat("attention is counted for the pairs of the corpus, as training packs them: a source token's sentence has ",
                    keys_text(segments.source), " tokens on average, a target token's ", keys_text(segments.target), ".");
    case PassSegments::Origin::windows:
      return concat("attention is counted for windows of ", longest, " tokens, the last one of a batch cut.");
    case PassSegments::Origin::made_up:
      return concat("attention is counted for made-up sequences of ", longest, " tokens, the last one of a batch cut.");
    case PassSegments::Origin::pictures:
      return concat("attention is counted for pictures of ", shape.sequence, shape.sequence == 1 ? " patch each." : " patches each.");
    case PassSegments::Origin::assumed:
      break;
  }
  return concat("attention is counted as if sentences had ", longest,
                " tokens on the side with more rows: how long they are is not known without the corpus, and shorter ones take less.");
}

}  // namespace tilewave
