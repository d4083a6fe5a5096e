// The launch of the row persistent_late_store, and its instances for sums and a bias alone.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

void launch_persistent_late_store(CudaQueue& queue, const GemmArgs& args, const GemmPlan& plan) {
  const WarpgroupGemm gemm = warpgroup_gemm(args, plan);
  if (args.derivative_of) return launch_late_derivative(queue, gemm, plan);
  if (args.saved_input || args.activation != Activation::none) return launch_late_activation(queue, gemm, plan);
  with_product_of(gemm, [&]<class P>(P) { launch_late_store<LateForm::sums, Activation::none, P>(queue, gemm, plan); });
}

}  // namespace tilewave
