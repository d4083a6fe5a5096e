#include "framework/data/synthetic.h"

#include <algorithm>
#include <utility>

#include "framework/data/tokenizer.h"
#include "kernels/core/error.h"

namespace tilewave {

// Vose's construction of the alias table: columns with less than the mean weight are filled up by one with more.
ZipfChain::ZipfChain(std::int64_t vocabulary) {
  TW_CHECK_INPUT(vocabulary > kSpecialIds && vocabulary <= INT32_MAX, "synthetic data needs model.vocabulary, more than ", kSpecialIds,
                 " and less than 2^31, not ", vocabulary, ".");
  ids_ = static_cast<std::uint32_t>(vocabulary - kSpecialIds);
  std::vector<double> share(ids_);  // in mean weights
  double sum = 0.0;
  for (std::uint32_t i = 0; i < ids_; ++i) sum += 1.0 / (i + 1.0);
  for (std::uint32_t i = 0; i < ids_; ++i) share[i] = ids_ / (i + 1.0) / sum;

  keep_.assign(ids_, UINT32_MAX);
  alias_.resize(ids_);
  std::vector<std::uint32_t> small, large;
  for (std::uint32_t i = 0; i < ids_; ++i) {
    alias_[i] = i;
    (share[i] < 1.0 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t poor = small.back(), rich = large.back();
    small.pop_back();
    keep_[poor] = static_cast<std::uint32_t>(share[poor] * 4294967296.0);
    alias_[poor] = rich;
    share[rich] -= 1.0 - share[poor];
    if (share[rich] < 1.0) {
      large.pop_back();
      small.push_back(rich);
    }
  }
}

std::int32_t ZipfChain::draw(Random& random) const {
  const std::uint32_t column = random.below(ids_);
  const auto coin = static_cast<std::uint32_t>(random.next());
  return kSpecialIds + static_cast<std::int32_t>(coin < keep_[column] ? column : alias_[column]);
}

std::int32_t ZipfChain::successor(std::int32_t id) const {
  const auto rotated = (std::uint64_t{static_cast<std::uint32_t>(id - kSpecialIds)} + 1 + ids_ / 3) % ids_;
  return kSpecialIds + static_cast<std::int32_t>(rotated);
}

std::int32_t ZipfChain::follow(std::int32_t id, Random& random) const { return (random.next() >> 63) != 0 ? successor(id) : draw(random); }

BatchStream synthetic_batches(std::int64_t vocabulary, std::uint64_t seed, const BatchShape& shape, std::uint64_t batches) {
  const std::int64_t longer = std::max(shape.source_rows, shape.target_rows);
  const std::int64_t shorter = shape.source_rows > 0 ? std::min(shape.source_rows, shape.target_rows) : longer;
  const WholeSequences sequences(shape);
  TW_CHECK_INPUT(shorter >= sequences.count(), "batch.sequence = ", shape.sequence, " cuts ", longer, " rows into ", sequences.count(),
                 " sequences, more than the other side's ", shorter, " rows; raise it.");
  return BatchStream(shape, [chain = ZipfChain(vocabulary), seed, sequences, batches](Packer& packer, DataPosition& position) {
    if (batches > 0 && position.next >= batches) return;
    Random random(random_key(seed, position.next++));
    for (std::int64_t i = 0; i < sequences.count(); ++i) {
      const auto target_rows = static_cast<std::size_t>(sequences.target_rows(i)),
                 source_rows = static_cast<std::size_t>(sequences.source_rows(i));
      std::vector<std::int32_t> tokens(std::max(source_rows, target_rows + 1));
      tokens[0] = chain.draw(random);
      for (std::size_t t = 1; t < tokens.size(); ++t) tokens[t] = chain.follow(tokens[t - 1], random);
      const std::span<const std::int32_t> text = tokens;
      if (source_rows == 0) {
        packer.add({.source = {}, .target_in = text.first(target_rows), .target_out = text.subspan(1, target_rows)});
      } else {
        std::vector<std::int32_t> target(target_rows - 1);
        std::transform(tokens.begin(), tokens.begin() + static_cast<std::int64_t>(target.size()), target.begin(),
                       [&](std::int32_t id) { return chain.successor(id); });
        packer.add_pair(text.first(source_rows), target);
      }
    }
  });
}

}  // namespace tilewave
