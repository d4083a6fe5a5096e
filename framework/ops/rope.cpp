// rope: forward and backward, and the table of its rotations.
#include "framework/ops/rope.h"

#include <cmath>
#include <numbers>

#include "framework/tensor/host_tensor.h"
#include "kernels/ops/rope.h"

namespace tilewave {

double rotation_frequency(const RotationTable& table, std::int64_t pair) {
  const double frequency = std::pow(table.base, -2.0 * static_cast<double>(pair) / static_cast<double>(table.head_size));
  const RotationStretch& stretch = table.stretch;
  if (stretch.factor == 1.0) return frequency;
  const double waves = static_cast<double>(stretch.original_positions) * frequency / (2.0 * std::numbers::pi);  // in the original length
  if (waves < stretch.low) return frequency / stretch.factor;
  if (waves > stretch.high) return frequency;
  const double share = (waves - stretch.low) / (stretch.high - stretch.low);
  return (1.0 - share) * frequency / stretch.factor + share * frequency;
}

Tensor rotation_table(Context& context, const RotationTable& table) {
  const std::int64_t half = table.head_size / 2;
  const Tensor rotations = context.persistent({table.positions, table.head_size}, context.precision().statistics);  // [positions, D]
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < half; ++pair) frequencies.push_back(rotation_frequency(table, pair));
  write_elements(context, rotations, [&](std::int64_t position, std::int64_t column) {
    const double angle = static_cast<double>(position) * frequencies[static_cast<std::size_t>(column % half)];
    return column < half ? std::cos(angle) : std::sin(angle);
  });
  return rotations;
}

Variable rope(Context& context, const RopeInputs& inputs) {
  const Tensor x = inputs.x.value();  // [tokens, at least columns]
  const auto rotate = [table = inputs.table, ids = inputs.position_ids, columns = inputs.columns](Context& ctx, const Tensor& matrix,
                                                                                                  Rotation rotation) {
    const Tensor heads = matrix.columns(0, columns);
    ctx.launch(RopeArgs{.x = heads.view(), .table = table.view(), .position_ids = ids.view(), .y = heads.view(), .rotation = rotation});
  };
  overwrite(inputs.x, x, "rope");
  rotate(context, x, Rotation::forward);
  return make_variable(context, x, "rope", {inputs.x}, [rotate](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    rotate(ctx, dy, Rotation::backward);
    slots[0].adopt(ctx, dy);
  });
}

}  // namespace tilewave
