// Instances of tensor_core_persistent: bf16, the left operand contiguous along depth.
#include "kernels/cuda/gemm/tensor_core_persistent.h"

namespace tilewave {

template void launch_persistent<bf16, Contiguous::along_depth>(CudaQueue&, const PersistentLaunch&);

}  // namespace tilewave
