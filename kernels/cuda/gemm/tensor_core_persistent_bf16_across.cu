// Instances of tensor_core_persistent: bf16, the left operand contiguous across it.
#include "kernels/cuda/gemm/tensor_core_persistent.h"

namespace tilewave {

template void launch_persistent<bf16, Contiguous::across>(CudaQueue&, const PersistentLaunch&);

}  // namespace tilewave
