// Shares go over in pieces of about a MiB: every rank copies what it has of a piece, and tells the others.
#include "framework/nn/parameter_state.h"

#include <algorithm>
#include <utility>

#include "framework/tensor/host_tensor.h"
#include "kernels/ops/add.h"
#include "kernels/ops/collective.h"
#include "kernels/ops/convert.h"
#include "kernels/ops/fill.h"

namespace tilewave {
namespace {

// Elements of a layer that lie in a share, counted from the layer's begin.
struct Overlap {
  std::int64_t begin = 0, end = 0;

  std::int64_t count() const { return end - begin; }
};
Overlap overlap(std::int64_t first, std::int64_t count, std::int64_t share, std::int64_t share_elements) {
  return {.begin = std::max(first, share * share_elements), .end = std::min(first + count, (share + 1) * share_elements)};
}

}  // namespace

ParameterState::ParameterState(const ParameterLayer& layer, const ParameterPlace& place, Tensor share, Tensor compute)
    : parameter_(place.parameter), share_(std::move(share)), compute_(std::move(compute)), place_(place) {
  TW_CHECK(layer.elements % share_.cols() == 0, layer.name, ": shares of ", share_.cols(), " elements do not make the layer's ",
           layer.elements, ".");
}

Tensor ParameterState::whole() const {
  TW_CHECK(whole_, parameter_->spec.name, " lies in the shares of ranks here; read() tells all of it.");
  return whole_;
}

void ParameterState::write(Context& context, const ParameterBlock& block,
                           const std::function<double(std::int64_t, std::int64_t)>& element) const {
  if (context.tracing()) return;
  const auto part_of = [&](const Tensor& rows) {
    return rows.slice_rows(block.first_row, block.rows).columns(block.first_column, block.columns);
  };
  if (whole_) return write_elements(context, part_of(whole_), element);
  const std::int64_t count = block.rows == 1 ? block.columns : block.rows * place_.pitch;
  const Tensor flat = context.tensor({1, count}, share_.dtype());
  context.launch(FillArgs{.y = flat.view(), .value = 0.0});
  const Tensor rows = flat.as_rows(0, {block.rows, block.columns}, std::min(count, place_.pitch));
  write_elements(context, rows, element);
  const std::int64_t first = place_.first + block.first_row * place_.pitch + block.first_column;
  const int rank = context.ranks().rank;
  const Overlap own = overlap(first, count, rank, share_.cols());
  if (own.count() > 0) {
    context.launch(AddArgs{.a = flat.columns(own.begin - first, own.count()).view(),
                           .b = {},
                           .y = share_.columns(own.begin - rank * share_.cols(), own.count()).view()});
  }
  if (compute_) context.launch(ConvertArgs{.x = rows.view(), .y = part_of(compute_).view()});
}

void ParameterState::read(Context& context, const std::function<void(const Tensor&)>& take) const {
  const Shape shape = parameter_->shape();
  const Communicator& ranks = context.ranks();
  const std::int64_t share = share_.cols();
  const std::int64_t piece_rows = rows_of_piece(shape, size_of(dtype()));
  for (std::int64_t row = 0; row < shape.rows; row += piece_rows) {
    const std::int64_t rows = std::min(piece_rows, shape.rows - row);
    if (whole_) {
      take(whole_.slice_rows(row, rows));
      continue;
    }
    const std::int64_t first = place_.first + row * place_.pitch, count = rows * place_.pitch;
    const Tensor flat = context.tensor({1, count}, share_.dtype());
    for (std::int64_t rank = first / share; rank * share < first + count; ++rank) {
      const Overlap part = overlap(first, count, rank, share);
      const Tensor told = flat.columns(part.begin - first, part.count());
      if (rank == ranks.rank) {
        context.launch(AddArgs{.a = share_.columns(part.begin - rank * share, part.count()).view(), .b = {}, .y = told.view()});
      }
      context.launch(BroadcastArgs{.x = told.view(), .root = static_cast<int>(rank), .ranks = ranks});
    }
    take(flat.as_rows(0, {rows, shape.cols}, place_.pitch));
  }
}

}  // namespace tilewave
