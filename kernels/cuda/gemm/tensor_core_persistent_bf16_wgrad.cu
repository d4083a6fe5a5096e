// Instances of tensor_core_persistent: bf16, operands with the majors of a wgrad.
#include "kernels/cuda/gemm/tensor_core_persistent.h"

namespace tilewave {

template void launch_persistent<bf16, Contiguous::across, Contiguous::across>(CudaQueue&, const PersistentLaunch&);

}  // namespace tilewave
