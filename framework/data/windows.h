// Batches of a decoder-only model: windows of a token stream, each row predicting the token after it.
//   training    an epoch cuts the stream into windows of `sequence` rows from an offset of its own and takes them in an order of
//               its own; the last window of a batch is cut to the rows that are left, so that no row is a padding row. What is cut off
//               comes behind the epoch's last window, so that an epoch sees every row once and most windows stay whole
//   validation  windows from the start, in order, none cut: the loss does not depend on how many rows a batch has
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "framework/data/batches.h"

namespace tilewave {

// Tokens in memory or in a file; read fills the span with the tokens from `first` on.
struct TokenStream {
  std::int64_t size = 0;
  std::function<void(std::int64_t first, std::span<std::int32_t> ids)> read;
};

BatchStream window_batches(const TokenStream& stream, const BatchShape& shape, Pass pass);

}  // namespace tilewave
