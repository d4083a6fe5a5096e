// Sentence pairs as token ids, and batches of them: pairs in order, packed until one side has too few rows left for the next.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/data/batches.h"

namespace tilewave {

class PairTable {
 public:
  explicit PairTable(PairFrame frame = {}) : frame_(frame) {}  // of every target
  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target);

  PairFrame frame() const { return frame_; }
  std::size_t size() const { return ends_.size() / 2; }
  std::span<const std::int32_t> source(std::size_t pair) const { return side(2 * pair); }
  std::span<const std::int32_t> target(std::size_t pair) const { return side(2 * pair + 1); }

 private:
  std::span<const std::int32_t> side(std::size_t index) const;
  PairFrame frame_;
  std::vector<std::int32_t> ids_;
  std::vector<std::size_t> ends_;  // of source and target by turns
};

// Whether a pair is no longer than the shape allows; a target takes one row more than it has tokens.
bool fits(const BatchShape& shape, std::span<const std::int32_t> source, std::span<const std::int32_t> target);

// Longer pairs are left out and counted as skipped; InputError where none is left.
BatchStream pair_batches(std::shared_ptr<const PairTable> pairs, const BatchShape& shape, Pass pass);

}  // namespace tilewave
