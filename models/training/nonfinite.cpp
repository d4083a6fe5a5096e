#include "models/training/nonfinite.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/tensor/host_tensor.h"

namespace tilewave {

std::string first_nonfinite(TrainStep& step, const PassBatches& batches, std::int64_t number) {
  Context& context = step.context();
  std::string found;
  context.inspect([&](const std::string& layer, std::string_view what, const Tensor& tensor) {
    if (!found.empty() || tensor.dtype() == DType::i32) return;
    const std::int64_t piece_rows = rows_of_piece(tensor, sizeof(double));
    for (std::int64_t first = 0; first < tensor.rows() && found.empty(); first += piece_rows) {
      const std::vector<double> elements = read_elements(context, tensor.slice_rows(first, std::min(piece_rows, tensor.rows() - first)));
      const auto bad = std::find_if(elements.begin(), elements.end(), [](double element) { return !std::isfinite(element); });
      if (bad == elements.end()) continue;
      const std::int64_t index = first * tensor.cols() + (bad - elements.begin());
      found = concat(what, " in ", layer.empty() ? "the model" : layer, ", row ", index / tensor.cols(), ", column ", index % tensor.cols(),
                     " (", *bad, ")");
    }
  });
  for (const Parameter& parameter : step.parameters().all()) {
    const Tensor& weight = parameter.master ? parameter.master : parameter.variable.value();  // masters may be in ranks' shares
    context.inspected(parameter.spec.name, "the weight", weight);
  }
  step.submit(batches, number, Update::no);
  context.inspect({});
  const std::vector<std::string> of_ranks = exchange(context.queue(), context.ranks(), found);
  const auto first = std::find_if(of_ranks.begin(), of_ranks.end(), [](const std::string& of_rank) { return !of_rank.empty(); });
  if (first == of_ranks.end()) return "the sum of the gradients' squares";
  return context.ranks().alone() ? *first : concat(*first, " of rank ", first - of_ranks.begin());
}

}  // namespace tilewave
