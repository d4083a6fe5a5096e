// A parameter of a model. It may have padding rows behind its logical ones (a padded vocabulary): they are zero, stay zero, and are in no
// file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/autograd/variable.h"
#include "kernels/ops/adamw.h"

namespace tilewave {

enum class ParameterKind : std::uint8_t { weight, bias, norm };  // biases and norms are vectors and do not decay

// Normal values of mean `mean` and deviation `deviation` (0: constant), each a function of (seed, name, row, column) alone.
struct Initialization {
  double mean = 0.0;
  double deviation = 0.0;
};

struct ParameterSpec {
  std::string name;
  Shape shape;                   // logical
  std::int64_t padded_rows = 0;  // at least shape.rows; 0: no padding
  ParameterKind kind = ParameterKind::weight;
  Initialization initialization;
  std::vector<std::int64_t> parts;  // of rows, or of a vector's columns: matrices below each other that are one; empty: it is one by itself
};

struct Parameter {
  ParameterSpec spec;
  Variable variable;  // the compute copy and its gradient, padding rows included; absent of a buffer
  Tensor master;      // what the optimizer updates; the compute copy itself where both have one type; absent where ranks have shares of it

  const Shape& shape() const { return spec.shape; }
  Tensor logical_master() const { return master.slice_rows(0, spec.shape.rows); }
  Tensor logical_gradient() const { return variable.gradient().slice_rows(0, spec.shape.rows); }
  WeightDecay decay() const { return spec.kind == ParameterKind::weight ? WeightDecay::yes : WeightDecay::no; }
};

}  // namespace tilewave
