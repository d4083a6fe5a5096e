// Instances of tensor_core_persistent: f16, operands with the majors of a dgrad.
#include "kernels/cuda/gemm/tensor_core_persistent.h"

namespace tilewave {

template void launch_persistent<f16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const PersistentLaunch&);

}  // namespace tilewave
