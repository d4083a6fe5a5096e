// persistent.h with consumers that take turns: one finishes its accumulators (activations, side inputs, stores) while the other keeps the
// Tensor Cores busy.
#include "kernels/cuda/gemm/sm90/persistent.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/persistent_ping_pong.h"

namespace tilewave {

void launch_persistent_ping_pong(CudaQueue& queue, const GemmCall& call) {
  with_tile<kPersistentPingPongTiles>("persistent_ping_pong", call.plan.tile, [&]<int kM, int kN>() {
    using C = PersistentConfig<kM, kN, kPingPongConsumers, ping_pong_stages({kM, kN}), kPingPongStagingBuffers, PingPong>;
    static_assert(sizeof(typename C::SharedStorage) == persistent_ping_pong_shared_bytes(C::kTile), "the plan knows what a CTA needs");
    const WarpgroupGemm gemm = warpgroup_gemm(call);
    with_wgrad_mma_form(gemm,
                        [&]<class P>(P) { launch_kernel<C>(queue, "persistent_ping_pong", persistent<C, P>, gemm, call.plan.blocks); });
  });
}

}  // namespace tilewave
