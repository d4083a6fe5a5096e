#include "framework/data/pairs.h"

#include <algorithm>
#include <utility>

#include "kernels/core/error.h"

namespace tilewave {

void PairTable::add(std::span<const std::int32_t> source, std::span<const std::int32_t> target) {
  for (const std::span<const std::int32_t> side : {source, target}) {
    ids_.insert(ids_.end(), side.begin(), side.end());
    ends_.push_back(ids_.size());
  }
}

std::span<const std::int32_t> PairTable::side(std::size_t index) const {
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::span(ids_).subspan(begin, ends_[index] - begin);
}

bool fits(const BatchShape& shape, std::span<const std::int32_t> source, std::span<const std::int32_t> target) {
  return static_cast<std::int64_t>(source.size()) <= std::min(shape.sequence, shape.source_rows) &&
         static_cast<std::int64_t>(target.size()) + 1 <= std::min(shape.sequence, shape.target_rows);
}

BatchStream pair_batches(std::shared_ptr<const PairTable> pairs, const BatchShape& shape, Pass pass) {
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < pairs->size(); ++i) {
    if (fits(shape, pairs->source(i), pairs->target(i))) usable.push_back(i);
  }
  TW_CHECK_INPUT(!usable.empty(), "each of the ", pairs->size(), " pairs is longer than batch.sequence = ", shape.sequence, " (in ",
                 shape.source_rows, " source and ", shape.target_rows, " target rows) allows; raise it.");
  const auto skipped = static_cast<std::int64_t>(pairs->size() - usable.size());
  return BatchStream(
      shape,
      [pairs = std::move(pairs), usable = std::move(usable), order = EpochOrder(pass), pass](Packer& packer,
                                                                                             DataPosition& position) mutable {
        for (;;) {
          if (position.next >= usable.size()) {
            if (pass.kind == Pass::Kind::once_in_order) return;
            position = {.epoch = position.epoch + 1, .next = 0, .rows_before = position.rows_before};
          }
          const std::size_t pair = usable[order.at(position.epoch, usable.size(), position.next)];
          if (!packer.add_pair(pairs->source(pair), pairs->target(pair), pairs->frame())) return;
          ++position.next;
        }
      },
      skipped);
}

}  // namespace tilewave
