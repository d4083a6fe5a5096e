// Instances of persistent_late_store: f16, an activation's derivative.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

template void launch_late_form<f16, LateForm::derivative>(CudaQueue&, const WarpgroupGemm&, const GemmPlan&);

}  // namespace tilewave
