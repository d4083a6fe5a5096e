// Instances of persistent_late_store: bf16, an activation.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

template void launch_deferred_form<bf16, DeferredForm::activation>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);

}  // namespace tilewave
