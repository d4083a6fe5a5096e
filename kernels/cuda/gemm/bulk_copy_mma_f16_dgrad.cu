// Instances of bulk_copy_mma: f16, operands with the majors of a dgrad.
#include "kernels/cuda/gemm/bulk_copy_mma.h"

namespace tilewave {

template void launch_bulk_copy_mma<f16, Contiguous::along_depth, Contiguous::across>(CudaQueue&, const BulkCopyLaunch&);

}  // namespace tilewave
