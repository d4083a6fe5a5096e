// The launches of the row bulk_copy_mma: to the instance of the element type, the majors and the tile, which are compiled in files of
// their own, one for each type and role.
#include "kernels/cuda/gemm/sm80/bulk_copy_mma.h"

namespace tilewave {
namespace {

template <class T>
void launch(CudaQueue& queue, const BulkCopyLaunch& launch, const Contiguities& contiguous) {
  using enum Contiguous;
  if (contiguous.left == across) return launch_bulk_copy_mma<T, across, across>(queue, launch);
  if (contiguous.right == across) return launch_bulk_copy_mma<T, along_depth, across>(queue, launch);
  launch_bulk_copy_mma<T, along_depth, along_depth>(queue, launch);
}

// The engine would write the whole of a row's last 16 bytes.
ConstMatrixView stored_accumulators(const GemmArgs& args) {
  ConstMatrixView d = args.d;
  const auto alignment = alignment_of(reinterpret_cast<std::uintptr_t>(d.data), d.ld * size_of(d.dtype));
  if (alignment < 16 || !stores_accumulators(problem_of(args)) || !args.alpha.is_one()) return {};
  if (!args.owns_gaps) d.cols -= d.cols % (16 / size_of(d.dtype));
  return d.cols > 0 ? d : ConstMatrixView{};
}

}  // namespace

// The row refuses a right operand along depth beside a left one across it.
void launch_bulk_copy_mma(CudaQueue& queue, const GemmCall& call) {
  const GemmArgs& args = call.args;
  const bool along_m = args.d_major == Major::m;
  BulkCopyLaunch bulk_copy = {.tiles = persistent_launch(call),
                              .left = along_m ? args.b : args.a,
                              .right = along_m ? args.a : args.b,
                              .accumulators = stored_accumulators(args)};
  const PersistentProblem& problem = bulk_copy.tiles.problem;
  if (problem.split > 1) {
    bulk_copy.parts = {problem.parts.parts, (problem.items - problem.whole_tiles) * bulk_copy.tiles.rows, bulk_copy.tiles.cols,
                       problem.parts.pitch, DType::f32};
  }
  with_half(args.a.dtype, "gemm bulk_copy_mma", [&]<class T>(T) { launch<T>(queue, bulk_copy, contiguous_of(args)); });
  reduce_tile_partials(queue, bulk_copy.tiles);
}

}  // namespace tilewave
