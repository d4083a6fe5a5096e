// Rotary positions (Su et al., "RoFormer: enhanced Transformer with rotary position embedding", 2021), with a head's halves as pairs:
// column i and column i + D/2 of each head turn by the angle of their row's position.
//   forward:  y_i = x_i cos - x_(i + D/2) sin;  y_(i + D/2) = x_(i + D/2) cos + x_i sin
//   backward: the same with -sin
// The table's row p holds the D/2 cosines of position p and then its sines. Position ids are below table.rows: an Error on a CPU; a GPU
// takes the caller's word.
#pragma once

#include "kernels/core/queue.h"
#include "kernels/core/view.h"
#include "kernels/gemm/cost/operation_model.h"

namespace tilewave {

enum class Rotation : std::uint8_t { forward, backward };

struct RopeArgs {
  static constexpr std::string_view kOperation = "rope";
  static constexpr OperationTime kTime{.launches = 1, .copy_share = &OperationModel::rope_share};
  ConstMatrixView x;             // [rows, heads D]
  ConstMatrixView table;         // [positions, D], statistics_of(x's dtype)
  ConstMatrixView position_ids;  // [1, rows] i32
  MatrixView y;                  // [rows, heads D]; may be x
  Rotation rotation = Rotation::forward;
};

inline Cost cost(const RopeArgs& args) {
  return {.flops = 3 * args.y.rows * args.y.cols,
          .bytes = args.x.bytes() + args.y.bytes() + args.position_ids.bytes() + args.y.rows * args.table.cols * size_of(args.table.dtype)};
}
void check(const RopeArgs& args);
void run(CpuQueue& queue, const RopeArgs& args);
void run(CudaQueue& queue, const RopeArgs& args);

}  // namespace tilewave
