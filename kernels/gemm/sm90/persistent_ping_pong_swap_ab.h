// Blocks that stay, whose two warpgroups take turns at swap-AB tiles.
#pragma once

#include <algorithm>

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentPingPongSwapAbTiles[] = {{128, 160}, {128, 192}};

// What a kernel is compiled for: sums with a bias at most; an activation, whose input may be stored; sums that a derivative multiplies, or
// to which, with a bias at most, something of D's shape is added; all of these in rows of whole 16 bytes, which TMA brings and
// stores. Or any of what the row takes.
enum class SwapAbForm : std::uint8_t { plain, activated, sided, any };
SwapAbForm swap_ab_form(const GemmProblem& problem);

// What is computed of sums leaves through slots that the warpgroups fill in turn, as many as fit beside five stages; other sums through two
// buffers of each warpgroup's own.
constexpr bool has_store_warp(SwapAbForm form) { return form == SwapAbForm::activated || form == SwapAbForm::sided; }
constexpr int buffers_of_block(Tile tile, SwapAbForm form) {
  if (!has_store_warp(form)) return 4;
  return tile.n == 192 ? 6 : 10;
}
// Columns of N in a buffer. Small ones make room for a fifth stage of the wider tile.
constexpr std::int64_t columns_at_once(Tile tile, SwapAbForm form) {
  if (has_store_warp(form)) return 32;
  return form == SwapAbForm::plain && tile.n == 192 ? tile.n / 4 : tile.n / 2;
}
constexpr std::int64_t persistent_ping_pong_swap_ab_rest(Tile tile, SwapAbForm form) {
  return buffers_of_block(tile, form) * columns_at_once(tile, form) * 128 + kBarrierBytes;
}
constexpr int persistent_ping_pong_swap_ab_stages(Tile tile, SwapAbForm form) {
  return stages_beside(persistent_ping_pong_swap_ab_rest(tile, form), tile);
}
constexpr std::int64_t persistent_ping_pong_swap_ab_bytes(Tile tile, SwapAbForm form) {
  return shared_bytes_beside(persistent_ping_pong_swap_ab_rest(tile, form), tile);
}
constexpr std::int64_t persistent_ping_pong_swap_ab_shared_bytes(Tile tile) {
  return std::max({persistent_ping_pong_swap_ab_bytes(tile, SwapAbForm::plain),
                   persistent_ping_pong_swap_ab_bytes(tile, SwapAbForm::activated),
                   persistent_ping_pong_swap_ab_bytes(tile, SwapAbForm::sided), persistent_ping_pong_swap_ab_bytes(tile, SwapAbForm::any)});
}

extern const GemmKernel kPersistentPingPongSwapAbKernel;
void launch_persistent_ping_pong_swap_ab(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
