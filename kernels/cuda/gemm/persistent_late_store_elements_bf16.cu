// Instances of persistent_late_store: bf16, sums and a bias alone, into rows that do not both begin and end on 16 bytes.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

template void launch_deferred_form<bf16, DeferredForm::elements>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);

}  // namespace tilewave
