// The launch of the row persistent_deferred_store.
#include "kernels/cuda/gemm/sm90/last_columns.h"
#include "kernels/cuda/gemm/sm90/persistent_deferred_store.h"

namespace tilewave {
namespace {

DeferredForm form_of(const WarpgroupEpilogue& e) {
  if (e.activation != Activation::none) return DeferredForm::activation;
  return e.d.mapped_cols == e.cols && e.cols % 8 == 0 ? DeferredForm::accumulators : DeferredForm::elements;
}

}  // namespace

void launch_persistent_deferred_store(CudaQueue& queue, const GemmCall& call) {
  const std::int64_t last_columns = deferred_store_last_columns(call.problem);
  GemmArgs args = call.args;
  args.a.rows -= last_columns;
  args.d.cols -= last_columns;
  WarpgroupGemm gemm = warpgroup_gemm({.args = args, .problem = problem_of(args), .plan = call.plan, .kernel = call.kernel});
  if (column_order(form_of(gemm.epilogue), gemm.cols_fastest) == Columns::dealt) {
    gemm.cols = make_tensor_map_3d(args.d_major == Major::m ? args.a : args.b, 2, static_cast<int>(call.plan.tile.m / 8));
  }
  const auto with_form = [&]<class T>(T) {
    switch (form_of(gemm.epilogue)) {
      case DeferredForm::accumulators:
        return launch_deferred_form<T, DeferredForm::accumulators>(queue, gemm, call.plan);
      case DeferredForm::activation:
        return launch_deferred_form<T, DeferredForm::activation>(queue, gemm, call.plan);
      case DeferredForm::elements:
        return launch_deferred_form<T, DeferredForm::elements>(queue, gemm, call.plan);
    }
  };
  with_half(gemm.operand_dtype, "persistent_deferred_store", with_form);
  if (last_columns > 0) launch_last_columns(queue, call.args, last_columns);
}

void launch_persistent_deferred(CudaQueue& queue, const GemmCall& call) {
  const bool derives = call.problem.epilogue.derivative != Activation::none;
  (derives ? launch_persistent_deferred_derivative : launch_persistent_deferred_store)(queue, call);
}

}  // namespace tilewave
