// Instances of persistent_late_store: f16, sums and a bias alone.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

template void launch_deferred_form<f16, DeferredForm::accumulators>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);

}  // namespace tilewave
