// The launch of the row persistent_late_store.
#include "kernels/cuda/gemm/last_columns.h"
#include "kernels/cuda/gemm/persistent_late_store.h"

namespace tilewave {
namespace {

LateForm form_of(const WarpgroupEpilogue& e) {
  if (e.activation != Activation::none) return LateForm::activation;
  return e.d.mapped_cols == e.cols && e.cols % 8 == 0 ? LateForm::sums : LateForm::elements;
}

}  // namespace

void launch_persistent_late_store(CudaQueue& queue, const GemmArgs& whole_args, const GemmPlan& plan) {
  const std::int64_t last_columns = late_store_last_columns(problem_of(whole_args));
  GemmArgs args = whole_args;
  args.a.rows -= last_columns;
  args.d.cols -= last_columns;
  WarpgroupGemm gemm = warpgroup_gemm(args, plan);
  if (column_order(form_of(gemm.epilogue), gemm.cols_fastest) == Columns::dealt) {
    gemm.cols = make_map_of_eights(args.d_major == Major::m ? args.a : args.b, 2, static_cast<int>(plan.tile.m / 8));
  }
  const auto with_form = [&]<class T>(T) {
    switch (form_of(gemm.epilogue)) {
      case LateForm::sums:
        return launch_late_form<T, LateForm::sums>(queue, gemm, plan);
      case LateForm::activation:
        return launch_late_form<T, LateForm::activation>(queue, gemm, plan);
      case LateForm::elements:
        return launch_late_form<T, LateForm::elements>(queue, gemm, plan);
    }
  };
  with_half(gemm.operand_dtype, "persistent_late_store", with_form);
  if (last_columns > 0) launch_last_columns(queue, whole_args, last_columns);
}

}  // namespace tilewave
