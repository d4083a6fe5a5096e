// persistent.h with consumers that share a tile. A CTA's last tile has no next: its consumers take the last k_tiles in turn, so that one
// finishes under the other's MMAs.
#include "kernels/cuda/gemm/sm90/persistent.h"
#include "kernels/gemm/facts/with_tile.h"
#include "kernels/gemm/sm90/persistent_data_parallel.h"

namespace tilewave {
namespace {

// kGradient: what is_cooperative_gradient says.
template <int kM, int kN, bool kGradient, Tile kTile = Tile{kM, kN}, int kConsumers = cooperative_consumers(kTile),
          int kStages = cooperative_stages(kTile, kGradient)>
using Config = PersistentConfig<kM, kN, kConsumers, kStages, cooperative_staging_buffers(kTile, kGradient),
                                DataParallel<kConsumers, kN / kBox / kConsumers, kStages - 1>>;

}  // namespace

void launch_persistent_data_parallel(CudaQueue& queue, const GemmCall& call) {
  with_tile<kPersistentDataParallelTiles>("persistent_data_parallel", call.plan.tile, [&]<int kM, int kN>() {
    const WarpgroupGemm gemm = warpgroup_gemm(call);
    const auto launch = [&]<class P>(P) {
      constexpr bool kGradient = !std::is_same_v<P, AnyMmaForm>;
      using C = Config<kM, kN, kGradient>;
      static_assert(sizeof(typename C::SharedStorage) == cooperative_bytes(C::kTile, kGradient), "the plan knows what a CTA needs");
      launch_kernel<C>(queue, "persistent_data_parallel", persistent<C, P>, gemm, call.plan.blocks);
    };
    if (is_cooperative_gradient(call.problem, call.plan.tile)) {
      with_wgrad_mma_form(gemm, launch);
    } else {
      launch(AnyMmaForm{});
    }
  });
}

}  // namespace tilewave
