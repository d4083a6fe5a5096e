// Instances of persistent_late_store: f16, an activation.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

template void launch_deferred_form<f16, DeferredForm::activation>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);

}  // namespace tilewave
