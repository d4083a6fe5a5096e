#include "framework/data/windows.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "framework/tensor/random.h"
#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

// One epoch's cuts through `rows` predictions: a first window of `offset` rows, then whole ones, then what is left.
struct Cuts {
  std::int64_t rows = 0, length = 0, offset = 0;

  std::int64_t count() const { return (offset > 0 ? 1 : 0) + ceil_div(rows - offset, length); }
  std::int64_t begin(std::int64_t window) const {
    return offset > 0 ? std::max<std::int64_t>(0, offset + (window - 1) * length) : window * length;
  }
  std::int64_t end(std::int64_t window) const { return std::min(rows, offset > 0 ? offset + window * length : (window + 1) * length); }
};

Cuts cuts_of(std::int64_t rows, std::int64_t length, Pass pass, std::uint64_t epoch) {
  Random random(random_key(pass.seed, 'o', epoch));
  return {.rows = rows, .length = length, .offset = random.below(static_cast<std::uint32_t>(std::min(length, rows)))};
}

struct Piece {
  std::int64_t first = 0, rows = 0;  // of the stream's predictions
};

// An epoch of training piece by piece: its windows in their order, cut where a batch is full, then what that cut off them, cut alike.
class EpochPieces {
 public:
  EpochPieces(const TokenStream& stream, std::int64_t length, std::int64_t batch_rows, Pass pass)
      : stream_rows_(stream.size - 1), length_(length), batch_rows_(batch_rows), pass_(pass), order_(pass) {}

  // The pieces behind the position come next.
  void go_to(const DataPosition& position) {
    if (epoch_ == position.epoch && taken_ == position.next && rows_before_ == position.rows_before) return;
    epoch_ = position.epoch;
    rows_before_ = position.rows_before;
    cuts_ = cuts_of(stream_rows_, length_, pass_, position.epoch);
    rests_.clear();
    taken_ = 0;
    std::int64_t rows_left = batch_rows_ - static_cast<std::int64_t>(rows_before_.value_or(0) % static_cast<std::uint64_t>(batch_rows_));
    while (taken_ < position.next) {
      const std::optional<Piece> piece = take(rows_left);
      if (!piece) return;
      rows_left = rows_left == piece->rows ? batch_rows_ : rows_left - piece->rows;
    }
  }

  // The next piece, of so many rows at most; none at the epoch's end.
  std::optional<Piece> take(std::int64_t rows_left) {
    const auto windows = static_cast<std::uint64_t>(cuts_.count());
    if (taken_ >= windows + rests_.size()) return std::nullopt;
    Piece piece;
    if (taken_ < windows) {
      const auto window = static_cast<std::int64_t>(order_.at(*epoch_, windows, taken_));
      piece = {.first = cuts_.begin(window), .rows = cuts_.end(window) - cuts_.begin(window)};
    } else {
      piece = rests_[taken_ - windows];
    }
    ++taken_;
    if (piece.rows > rows_left) {
      if (rows_before_) rests_.push_back({.first = piece.first + rows_left, .rows = piece.rows - rows_left});
      piece.rows = rows_left;
    }
    return piece;
  }

 private:
  std::int64_t stream_rows_, length_, batch_rows_;
  Pass pass_;
  EpochOrder order_;
  std::optional<std::uint64_t> epoch_;  // that `cuts_`, `rests_` and `taken_` are of
  std::optional<std::uint64_t> rows_before_;
  Cuts cuts_;
  std::vector<Piece> rests_;
  std::uint64_t taken_ = 0;  // pieces
};

// Reads pieces of a stream into batches.
class PieceReader {
 public:
  explicit PieceReader(TokenStream stream) : stream_(std::move(stream)) {}

  void add(const Piece& piece, Packer& packer) {
    ids_.resize(static_cast<std::size_t>(piece.rows) + 1);
    stream_.read(piece.first, ids_);
    const std::span<const std::int32_t> tokens = ids_;
    packer.add({.source = {}, .target_in = tokens.first(tokens.size() - 1), .target_out = tokens.subspan(1)});
  }

 private:
  TokenStream stream_;
  std::vector<std::int32_t> ids_;
};

BatchStream training_batches(const TokenStream& stream, std::int64_t length, const BatchShape& shape, Pass pass) {
  return BatchStream(shape, [reader = PieceReader(stream), pieces = EpochPieces(stream, length, shape.target_rows, pass),
                             rows = shape.target_rows](Packer& packer, DataPosition& position) mutable {
    while (packer.target_rows_left() > 0) {
      pieces.go_to(position);
      if (const std::optional<Piece> piece = pieces.take(packer.target_rows_left())) {
        reader.add(*piece, packer);
        ++position.next;
        continue;
      }
      const auto taken = static_cast<std::uint64_t>(rows - packer.target_rows_left());
      position = {.epoch = position.epoch + 1, .next = 0, .rows_before = position.rows_before ? std::optional(taken) : std::nullopt};
    }
  });
}

BatchStream validation_batches(const TokenStream& stream, std::int64_t length, const BatchShape& shape) {
  const Cuts cuts{.rows = stream.size - 1, .length = length, .offset = 0};
  return BatchStream(shape, [reader = PieceReader(stream), cuts](Packer& packer, DataPosition& position) mutable {
    for (; position.next < static_cast<std::uint64_t>(cuts.count()); ++position.next) {
      const auto window = static_cast<std::int64_t>(position.next);
      const Piece piece{.first = cuts.begin(window), .rows = cuts.end(window) - cuts.begin(window)};
      if (piece.rows > packer.target_rows_left()) return;
      reader.add(piece, packer);
    }
  });
}

}  // namespace

BatchStream window_batches(const TokenStream& stream, const BatchShape& shape, Pass pass) {
  TW_CHECK_INPUT(stream.size >= 2, "a stream of ", stream.size, " tokens holds nothing to predict; two are needed.");
  const std::int64_t length = std::min(shape.sequence, shape.target_rows);
  return pass.kind == Pass::Kind::shuffled_epochs ? training_batches(stream, length, shape, pass)
                                                  : validation_batches(stream, length, shape);
}

}  // namespace tilewave
