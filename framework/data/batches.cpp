#include "framework/data/batches.h"

#include <limits>
#include <numeric>
#include <utility>

#include "framework/tensor/random.h"
#include "kernels/core/error.h"

namespace tilewave {

BatchStream::BatchStream(const BatchShape& shape, BatchFiller fill, std::int64_t skipped)
    : shape_(shape),
      make_([shape, fill = std::move(fill)](DataPosition& position) -> std::optional<Batch> {
        Packer packer(shape);
        fill(packer, position);
        if (packer.empty()) return std::nullopt;
        return std::move(packer).take();
      }),
      skipped_(skipped) {}

BatchStream::BatchStream(const BatchShape& shape, BatchMaker make) : shape_(shape), make_(std::move(make)) {}

std::optional<Batch> BatchStream::next() { return make_(position_); }

std::size_t EpochOrder::at(std::uint64_t epoch, std::size_t count, std::uint64_t next) {
  if (pass_.kind == Pass::Kind::once_in_order) return static_cast<std::size_t>(next);
  if (epoch_ != epoch || order_.size() != count) {
    TW_CHECK(count <= std::numeric_limits<std::uint32_t>::max(), "an epoch of ", count,
             " examples is more than can be shuffled; raise batch.sequence.");
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), 0u);
    Random random(random_key(pass_.seed, 'e', epoch));
    shuffle(std::span(order_), random);
    epoch_ = epoch;
  }
  return order_[next];
}

}  // namespace tilewave
