// Blocks that stay, with two warpgroups that take turns: one finishes its tile while the other multiplies.
#pragma once

#include "kernels/gemm/sm90/warpgroup.h"

namespace tilewave {

inline constexpr Tile kPersistentPingPongTiles[] = {{128, 128}, {256, 64}};

inline constexpr int kPingPongConsumers = 2, kPingPongStagingBuffers = 4;
inline constexpr std::int64_t kPingPongRest =
    kStagingBytesOfWarp * kPingPongStagingBuffers * 4 * kPingPongConsumers + kOnesBytes + kBarrierBytes;
constexpr int ping_pong_stages(Tile tile) { return stages_beside(kPingPongRest, tile); }
constexpr std::int64_t persistent_ping_pong_shared_bytes(Tile tile) { return shared_bytes_beside(kPingPongRest, tile); }

extern const GemmKernel kPersistentPingPongKernel;
void launch_persistent_ping_pong(CudaQueue& queue, const GemmCall& call);

}  // namespace tilewave
