// The launches of the row tensor_core_persistent: to the instance of the element type, the majors and the tile, which are compiled in
// files of their own, one for each type and role.
#include "kernels/cuda/gemm/sm80/tensor_core_persistent.h"

namespace tilewave {
namespace {

template <class T>
void launch(CudaQueue& queue, const PersistentLaunch& launch, const Contiguities& contiguous) {
  using enum Contiguous;
  if (contiguous.left == across) return launch_persistent<T, across, across>(queue, launch);
  if (contiguous.right == across) return launch_persistent<T, along_depth, across>(queue, launch);
  launch_persistent<T, along_depth, along_depth>(queue, launch);
}

}  // namespace

// The row refuses a right operand along depth beside a left one across it.
void launch_tensor_core_persistent(CudaQueue& queue, const GemmCall& call) {
  const PersistentLaunch persistent = persistent_launch(call);
  with_half(call.args.a.dtype, "gemm tensor_core_persistent", [&]<class T>(T) { launch<T>(queue, persistent, contiguous_of(call.args)); });
  reduce_tile_partials(queue, persistent);
}

}  // namespace tilewave
