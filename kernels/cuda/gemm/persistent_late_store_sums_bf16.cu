// Instances of persistent_late_store: bf16, sums and a bias alone.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

template void launch_deferred_form<bf16, DeferredForm::accumulators>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);

}  // namespace tilewave
