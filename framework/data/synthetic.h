// Made-up text of any vocabulary and any batch shape without a padding row, for measuring and for tests.
//   P(id) ~ 1 / (id - 3) over the ids from 4 on (Zipf's law); with probability 1/2 a token is the successor of the one before it
// successor() is a rotation of the ids, the same for every seed: the rule that a model can learn. A target sentence is its source,
// each token replaced by its successor, so that it obeys the rule too and the encoder is worth listening to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/data/batches.h"
#include "framework/tensor/random.h"

namespace tilewave {

class ZipfChain {
 public:
  explicit ZipfChain(std::int64_t vocabulary);  // special ids included

  std::int32_t draw(Random& random) const;
  std::int32_t successor(std::int32_t id) const;
  std::int32_t follow(std::int32_t id, Random& random) const;  // the successor or a draw

 private:
  std::uint32_t ids_;                 // that are drawn from: the vocabulary without the special ones
  std::vector<std::uint32_t> keep_;   // Walker's alias method: of 2^32 coins so many keep the column's own id,
  std::vector<std::uint32_t> alias_;  // the others take this one
};

// Batch i is a function of (seed, i), of WholeSequences. `batches` of them, or without end for 0.
BatchStream synthetic_batches(std::int64_t vocabulary, std::uint64_t seed, const BatchShape& shape, std::uint64_t batches = 0);

}  // namespace tilewave
