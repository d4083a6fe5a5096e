// What the optimizer keeps of one parameter, its master or a moment, wherever it lies: as a tensor, or as the shares that ranks have of its
// layer. Files and initial values go through it a piece at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "framework/nn/parameter_layers.h"
#include "framework/tensor/context.h"

namespace tilewave {

// Rows [first_row, first_row + rows), of them columns [first_column, first_column + columns): all columns, where there are several rows.
struct ParameterBlock {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_column = 0, columns = 0;
};

class ParameterState {
 public:
  ParameterState(const Parameter& parameter, Tensor whole) : parameter_(&parameter), whole_(std::move(whole)) {}
  // `share`: this rank's, of the layer that has the parameter in this place. `compute` follows what is written; absent for a moment.
  ParameterState(const ParameterLayer& layer, const ParameterPlace& place, Tensor share, Tensor compute);

  const Parameter& parameter() const { return *parameter_; }
  Tensor whole() const;  // padding rows included; Error where ranks have shares
  DType dtype() const { return whole_ ? whole_.dtype() : share_.dtype(); }

  // Sets the block's elements to element(row, column), counted from its first ones. Each rank keeps what lies in its share.
  void write(Context& context, const ParameterBlock& block,
             const std::function<double(std::int64_t row, std::int64_t column)>& element) const;

  // Hands over the logical rows in order, some at a time. Where ranks have shares, all of them read the same parameters in the same order,
  // and each is handed everything.
  void read(Context& context, const std::function<void(const Tensor& rows)>& take) const;

 private:
  const Parameter* parameter_;
  Tensor whole_;
  Tensor share_, compute_;
  ParameterPlace place_;
};

}  // namespace tilewave
