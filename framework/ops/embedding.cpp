// embedding: forward and backward, and the constant position table.
#include "framework/ops/embedding.h"

#include <cmath>

#include "framework/tensor/host_tensor.h"
#include "kernels/ops/embedding.h"

namespace tilewave {

Variable embedding(Context& context, const EmbeddingInputs& inputs) {
  const Tensor table = inputs.table.value();                                        // [vocabulary, d]
  const Tensor positions = inputs.positions ? inputs.positions.value() : Tensor();  // [max_positions, d], or absent
  const Tensor ids = inputs.ids, position_ids = inputs.position_ids;                // [1, tokens]
  TW_CHECK(!positions || table.cols() == positions.cols(), "embedding: the token table has shape ", table.shape(),
           " and the position table ", positions.shape(), "; they must have the same columns.");
  check_same_shape("embedding", "the ids", ids.shape(), "the position ids", position_ids.shape());

  const double scale = inputs.scale;
  const Tensor y = context.tensor({ids.cols(), table.cols()}, context.precision().activation);  // [tokens, d]
  context.launch(EmbeddingArgs{.table = table.view(),
                               .positions = positions ? ConstMatrixView(positions.view()) : ConstMatrixView(),
                               .ids = ids.view(),
                               .position_ids = position_ids.view(),
                               .scale = scale,
                               .y = y.view()});

  // dtable[v] = scale * sum of dy over the rows of token v;  dpositions[p] = sum of dy over the rows at p
  return make_variable(
      context, y, "embedding", {inputs.table, inputs.positions},
      [ids, position_ids, scale, table_shape = table.shape(), positions_shape = positions.shape()](Context& ctx, const Tensor& dy,
                                                                                                   std::span<GradientSlot> slots) {
        if (!slots[0].needed() && !slots[1].needed()) return;
        TW_CHECK(slots[0].needed(), "embedding: positions want a gradient and the token table does not; make both leaves.");
        const GradientSlot::Target dtable = slots[0].open(ctx);
        const GradientSlot::Target dpositions = slots[1].needed() ? slots[1].open(ctx) : GradientSlot::Target{};
        const Tensor order = ctx.tensor({2, embedding_order_cols(dy.rows(), table_shape.rows, positions_shape.rows)}, DType::i32);
        const Tensor sort = ctx.device().backend == Backend::cuda ? ctx.tensor({1, embedding_sort_cols(dy.rows())}, DType::i32) : Tensor();
        ctx.launch(EmbeddingBackwardArgs{.dy = dy.view(),
                                         .ids = ids.view(),
                                         .position_ids = position_ids.view(),
                                         .scale = scale,
                                         .dtable = dtable.view(),
                                         .accumulate_table = dtable.accumulate,
                                         .dpositions = dpositions.view(),
                                         .accumulate_positions = dpositions.accumulate,
                                         .order = order.view(),
                                         .sort = sort.view()});
      });
}

Tensor sinusoidal_positions(Context& context, std::int64_t max_positions, std::int64_t d, DType dtype) {
  const Tensor table = context.persistent({max_positions, d}, dtype);  // [max_positions, d]
  write_elements(context, table, [d](std::int64_t position, std::int64_t column) {
    const double frequency = std::pow(10000.0, -static_cast<double>(column - column % 2) / static_cast<double>(d));
    const double angle = static_cast<double>(position) * frequency;
    return column % 2 == 0 ? std::sin(angle) : std::cos(angle);
  });
  return table;
}

}  // namespace tilewave
