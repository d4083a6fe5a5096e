// Blocks that stay, with two warpgroups that take turns: one finishes its tile while the other multiplies.
#pragma once

#include "kernels/gemm/rows/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentPingPongTiles[] = {{128, 128}, {256, 64}};

inline constexpr int kPingPongConsumers = 2, kPingPongStrips = 4;
inline constexpr std::int64_t kPingPongStripBytes = kStripBytesOfWarp * kPingPongStrips * 4 * kPingPongConsumers;
// As many stages as fit beside the strips in a block's 227 KB.
constexpr int ping_pong_stages(Tile tile) {
  return static_cast<int>((kBlockBytes - kPingPongStripBytes - kOnesBytes - kBarrierBytes) / stage_bytes(tile));
}
constexpr std::int64_t persistent_ping_pong_shared_bytes(Tile tile) {
  return ping_pong_stages(tile) * stage_bytes(tile) + kPingPongStripBytes + kOnesBytes + kBarrierBytes;
}

extern const GemmRow kPersistentPingPongRow;
void launch_persistent_ping_pong(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan);

}  // namespace tilewave
