// Instances of persistent_late_store: the derivative of an activation, and the majors of a dgrad.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

void launch_late_derivative(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan) {
  const auto with_type = [&]<class T>(T) {
    using P = Product<T, Fastest::k, Fastest::other, false>;
    if (gemm.epilogue.derivative == Activation::relu) launch_late_store<LateForm::derivative, Activation::relu, P>(queue, gemm, plan);
    if (gemm.epilogue.derivative == Activation::gelu_tanh) {
      launch_late_store<LateForm::derivative, Activation::gelu_tanh, P>(queue, gemm, plan);
    }
  };
  if (gemm.operand_dtype == DType::bf16) {
    with_type(bf16{});
  } else {
    with_type(f16{});
  }
}

}  // namespace tilewave
