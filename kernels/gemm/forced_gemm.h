// What forces a plan, as words: "persistent/128x192/ping_pong/swap_ab".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/gemm/tiling.h"

namespace tilewave {

struct ForcedGemm {
  std::string kernel;  // its name in the catalog, where it has one
  std::optional<Tile> tile;
  int split = 0;  // parts of K; 0: none are named
};
// A kernel's words, a tile <M>x<N> and parts k<parts>, between slashes and in any order; what is neither tile nor parts is the kernel's.
ForcedGemm parse_forced_gemm(std::string_view text);

// "256x128", or nothing.
std::optional<Tile> parse_tile(std::string_view text);

}  // namespace tilewave
