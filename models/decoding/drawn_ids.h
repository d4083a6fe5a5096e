// Which ids decoding may go on with, and what begins and ends a text. Only ids that a tokenizer can mean are produced: no padding of the
// vocabulary, no id without a text but the end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "framework/data/tokenizer.h"

namespace tilewave {

// Without more, those of a tokenizer that tilewave has trained.
struct DrawnIds {
  std::function<bool(std::int32_t)> may = [](std::int32_t id) { return id >= kSpecialIds || id == kEndId; };
  std::optional<std::int32_t> begin = kBeginId;  // that an empty prompt, and every target, goes on from
  std::optional<std::int32_t> end = kEndId;      // behind which nothing is drawn, and which is no part of the text

  std::vector<std::int32_t> below(std::int64_t vocabulary) const;  // that may be drawn; at least one
};

DrawnIds drawn_ids(const Tokenizer& tokenizer);
// Of targets, which are framed as they were trained on. Error where the tokenizer frames none.
DrawnIds target_ids(const Tokenizer& tokenizer);
DrawnIds any_ids();  // of a model of token files, whose tokenizer is not known

}  // namespace tilewave
