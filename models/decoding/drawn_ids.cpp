#include "models/decoding/drawn_ids.h"

#include "kernels/core/error.h"

namespace tilewave {

std::vector<std::int32_t> DrawnIds::below(std::int64_t vocabulary) const {
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < vocabulary; ++id) {
    if (may(id)) ids.push_back(id);
  }
  TW_CHECK(!ids.empty(), "none of ", vocabulary, " ids may be drawn.");
  return ids;
}

DrawnIds drawn_ids(const Tokenizer& tokenizer) {
  return {.may = [tokenizer](std::int32_t id) { return tokenizer.may_be_drawn(id); }, .begin = tokenizer.begin(), .end = tokenizer.end()};
}

DrawnIds target_ids(const Tokenizer& tokenizer) {
  const std::optional<PairFrame> frame = tokenizer.frame();
  TW_CHECK(frame, "the tokenizer has no token that ends a target; take one that has.");
  return {
      .may = [tokenizer, frame = *frame](std::int32_t id) { return id == frame.end || (id != frame.begin && tokenizer.may_be_drawn(id)); },
      .begin = frame->begin,
      .end = frame->end};
}

DrawnIds any_ids() {
  return {.may = [](std::int32_t) { return true; }, .begin = std::nullopt, .end = std::nullopt};
}

}  // namespace tilewave
