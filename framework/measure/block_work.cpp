#include "framework/measure/block_work.h"

#include "framework/measure/work_of.h"
#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"
#include "kernels/ops/repeat_heads.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/silu.h"

namespace tilewave {
namespace {

constexpr std::int64_t kHeadSize = 64, kSharedBy = 4;  // heads of queries that share one of keys

OperationWork prepare_rms_norm(Context& context, Shape shape, bool backward) {
  const PrecisionTable& types = context.precision();
  const Tensor x = random_tensor(context, shape, types.activation, 1), y = context.tensor(shape, types.activation);
  const Tensor gamma = random_tensor(context, {1, shape.cols}, types.compute, 2), rstd = context.tensor({shape.rows, 1}, types.statistics);
  const RmsNormArgs forward{.x = x.view(), .gamma = gamma.view(), .y = y.view(), .rstd = rstd.view()};
  if (!backward) return work_of(context, forward, {x, gamma, y, rstd});
  context.launch(forward);
  const Tensor dy = random_tensor(context, shape, types.activation, 3), dgamma = context.tensor({1, shape.cols}, types.gradient),
               partial = context.tensor({rms_norm_partial_rows(shape.rows), shape.cols}, types.statistics);
  const RmsNormBackwardArgs args{.x = x.view(),
                                 .gamma = gamma.view(),
                                 .rstd = rstd.view(),
                                 .dy = dy.view(),
                                 .dx = y.view(),
                                 .dgamma = dgamma.view(),
                                 .partial = partial.view()};
  return work_of(context, args, {x, gamma, rstd, dy, y, dgamma, partial});
}

// Gate and up projection lie side by side, as one GEMM leaves them.
OperationWork prepare_gate(Context& context, Shape shape, bool backward) {
  const DType dtype = context.precision().activation;
  const Shape both{shape.rows, 2 * shape.cols};
  const Tensor z = random_tensor(context, both, dtype, 1), h = random_tensor(context, shape, dtype, 2);
  const Tensor gate = z.columns(0, shape.cols), up = z.columns(shape.cols, shape.cols);
  if (!backward) return work_of(context, SiluArgs{.x = gate.view(), .up = up.view(), .y = h.view()}, {z, h});
  const Tensor dz = context.tensor(both, dtype);
  const SiluBackwardArgs args{.x = gate.view(),
                              .up = up.view(),
                              .dy = h.view(),
                              .dx = dz.columns(0, shape.cols).view(),
                              .dup = dz.columns(shape.cols, shape.cols).view()};
  return work_of(context, args, {z, h, dz});
}

OperationWork prepare_silu(Context& context, Shape shape, bool backward) {
  const DType dtype = context.precision().activation;
  const Tensor x = random_tensor(context, shape, dtype, 1), y = context.tensor(shape, dtype);
  if (!backward) return work_of(context, SiluArgs{.x = x.view(), .up = {}, .y = y.view()}, {x, y});
  const Tensor dy = random_tensor(context, shape, dtype, 2);
  return work_of(context, SiluBackwardArgs{.x = x.view(), .up = {}, .dy = dy.view(), .dx = y.view(), .dup = {}}, {x, dy, y});
}

std::int64_t head_size_of(Shape shape, std::int64_t heads) {
  return shape.cols % (kHeadSize * heads) == 0 ? kHeadSize : shape.cols / heads;
}

OperationWork prepare_rope(Context& context, Shape shape) {
  const PrecisionTable& types = context.precision();
  const std::int64_t head_size = head_size_of(shape, 1);
  TW_CHECK_INPUT(head_size % 2 == 0, "rope ", shape.rows, "x", shape.cols, ": a head's columns turn in pairs; ask for an even number.");
  constexpr std::int64_t kPositions = 1024;
  const Tensor x = random_tensor(context, shape, types.activation, 1), y = context.tensor(shape, types.activation),
               table = random_tensor(context, {kPositions, head_size}, types.statistics, 2),
               ids = context.tensor({1, shape.rows}, DType::i32);
  std::vector<std::int32_t> positions(static_cast<std::size_t>(shape.rows));
  for (std::size_t row = 0; row < positions.size(); ++row) positions[row] = static_cast<std::int32_t>(row % kPositions);
  write_ids(context, ids, positions);
  return work_of(context, RopeArgs{.x = x.view(), .table = table.view(), .position_ids = ids.view(), .y = y.view()}, {x, y, table, ids});
}

// The shape is that of the heads of queries.
OperationWork prepare_repeat_heads(Context& context, Shape shape, bool backward) {
  const DType dtype = context.precision().activation;
  TW_CHECK_INPUT(shape.cols % kSharedBy == 0, "repeat_heads ", shape.rows, "x", shape.cols, ": ", kSharedBy,
                 " heads share one; ask for a multiple of ", kSharedBy, " columns.");
  const Shape shared{shape.rows, shape.cols / kSharedBy};
  const std::int64_t head_size = head_size_of(shape, kSharedBy);
  if (!backward) {
    const Tensor x = random_tensor(context, shared, dtype, 1), y = context.tensor(shape, dtype);
    return work_of(context, RepeatHeadsArgs{.x = x.view(), .y = y.view(), .head_size = head_size, .times = kSharedBy}, {x, y});
  }
  const Tensor dy = random_tensor(context, shape, dtype, 1), dx = context.tensor(shared, dtype);
  return work_of(context, RepeatHeadsBackwardArgs{.dy = dy.view(), .dx = dx.view(), .head_size = head_size, .times = kSharedBy}, {dy, dx});
}

}  // namespace

OperationWork prepare_block(Context& context, Shape shape, std::string_view name) {
  const bool backward = name.ends_with("_backward");
  if (name.starts_with("rms_norm")) return prepare_rms_norm(context, shape, backward);
  if (name.starts_with("silu")) return prepare_silu(context, shape, backward);
  if (name.starts_with("swiglu")) return prepare_gate(context, shape, backward);
  if (name.starts_with("repeat_heads")) return prepare_repeat_heads(context, shape, backward);
  TW_CHECK(name == "rope", "no block has an operation called ", name, ".");
  return prepare_rope(context, shape);
}

}  // namespace tilewave
