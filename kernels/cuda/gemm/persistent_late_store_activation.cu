// Instances of persistent_late_store: an activation, its input stored beside it where asked for, and the majors of a forward.
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {

void launch_late_activation(CudaQueue& queue, const WarpgroupGemm& gemm, const GemmPlan& plan) {
  const auto with_type = [&]<class T>(T) {
    using P = Product<T, Fastest::k, Fastest::k, false>;
    if (gemm.epilogue.activation == Activation::none) launch_late_store<LateForm::activation, Activation::none, P>(queue, gemm, plan);
    if (gemm.epilogue.activation == Activation::relu) launch_late_store<LateForm::activation, Activation::relu, P>(queue, gemm, plan);
    if (gemm.epilogue.activation == Activation::gelu_tanh) {
      launch_late_store<LateForm::activation, Activation::gelu_tanh, P>(queue, gemm, plan);
    }
  };
  if (gemm.operand_dtype == DType::bf16) {
    with_type(bf16{});
  } else {
    with_type(f16{});
  }
}

}  // namespace tilewave
