#include "framework/data/windows.h"

#include <algorithm>
#include <utility>

#include "framework/random.h"
#include "kernels/error.h"
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

Cuts cuts_of(const TokenStream& stream, std::int64_t length, Pass pass, std::uint64_t epoch) {
  const std::int64_t rows = stream.size - 1;
  if (pass.kind == Pass::Kind::once_in_order) return {.rows = rows, .length = length, .offset = 0};
  Random random(random_key(pass.seed, 'o', epoch));
  return {.rows = rows, .length = length, .offset = random.below(static_cast<std::uint32_t>(std::min(length, rows)))};
}

}  // namespace

BatchStream window_batches(TokenStream stream, const BatchShape& shape, Pass pass) {
  TW_CHECK_INPUT(stream.size >= 2, "a stream of ", stream.size, " tokens holds nothing to predict; two are needed.");
  const std::int64_t length = std::min(shape.sequence, shape.target_rows);
  return BatchStream(shape, [stream = std::move(stream), length, pass, order = EpochOrder(pass), ids = std::vector<std::int32_t>()](
                                Packer& packer, DataPosition& position) mutable {
    const bool training = pass.kind == Pass::Kind::shuffled_epochs;
    Cuts cuts = cuts_of(stream, length, pass, position.epoch);
    while (packer.target_rows_left() > 0) {
      if (position.next >= static_cast<std::uint64_t>(cuts.count())) {
        if (!training) return;
        position = {.epoch = position.epoch + 1, .next = 0};
        cuts = cuts_of(stream, length, pass, position.epoch);
      }
      const auto window = static_cast<std::int64_t>(order.at(position.epoch, static_cast<std::size_t>(cuts.count()), position.next));
      const std::int64_t whole = cuts.end(window) - cuts.begin(window);
      if (whole > packer.target_rows_left() && !training) return;
      const std::int64_t rows = std::min(whole, packer.target_rows_left());
      ids.resize(static_cast<std::size_t>(rows) + 1);
      stream.read(cuts.begin(window), ids);
      const std::span<const std::int32_t> tokens = ids;
      packer.add({.source = {}, .target_in = tokens.first(tokens.size() - 1), .target_out = tokens.subspan(1)});
      ++position.next;
    }
  });
}

}  // namespace tilewave
