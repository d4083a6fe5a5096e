// A stream of batches that can be resumed: what comes next is a function of the corpus, the batch's shape, the seed and a
// position of few numbers. Where the position points is the business of each kind of data, which fills batches:
//   pairs    whole pairs, shuffled anew each epoch      windows    pieces of a token stream, cut and shuffled anew each epoch
//   numbers, synthetic    draws without end: the epoch stays 0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "framework/data/packing.h"

namespace tilewave {

struct DataPosition {
  std::uint64_t epoch = 0;
  std::uint64_t next = 0;  // the example or piece of this epoch's order, the draw or the batch that comes next
  // windows: rows that the batch at hand held when this epoch began. Absent in a run that an earlier tilewave began: its epochs leave
  // out what a full batch cuts off, and go on doing so, so that its steps stay the ones that would have followed.
  std::optional<std::uint64_t> rows_before = 0;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

// Packs examples from the position on, until the next one does not fit or none is left, and moves the position behind them.
using BatchFiller = std::function<void(Packer&, DataPosition&)>;

// The batch at the position, which moves behind it; nothing where none is left.
using BatchMaker = std::function<std::optional<Batch>(DataPosition&)>;

class BatchStream {
 public:
  BatchStream(const BatchShape& shape, BatchFiller fill, std::int64_t skipped = 0);
  BatchStream(const BatchShape& shape, BatchMaker make);  // of data that is not packed

  // The next batch. Training data never ends; validation data ends after one pass.
  std::optional<Batch> next();

  DataPosition position() const { return position_; }
  void restore(DataPosition position) { position_ = position; }

  const BatchShape& shape() const { return shape_; }
  std::int64_t skipped() const { return skipped_; }  // examples left out because they are longer than the shape allows

 private:
  BatchShape shape_;
  BatchMaker make_;
  std::int64_t skipped_ = 0;
  DataPosition position_;
};

// Whether examples come once, in order (validation), or for ever, each epoch in an order of its own (training).
struct Pass {
  enum class Kind : std::uint8_t { once_in_order, shuffled_epochs } kind = Kind::once_in_order;
  std::uint64_t seed = 0;
};

// The order of `count` examples in an epoch; remembers that of the epoch it was last asked about.
class EpochOrder {
 public:
  explicit EpochOrder(Pass pass) : pass_(pass) {}
  std::size_t at(std::uint64_t epoch, std::size_t count, std::uint64_t next);

 private:
  Pass pass_;
  std::optional<std::uint64_t> epoch_;
  std::vector<std::uint32_t> order_;
};

}  // namespace tilewave
