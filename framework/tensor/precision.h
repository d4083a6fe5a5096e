// One table: which type each kind of number of a training step has under each precision a recipe can ask for.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/core/dtype.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16, fp64 };

constexpr std::string_view name_of(Precision precision) {
  constexpr std::string_view names[] = {"fp32", "tf32", "bf16", "fp16", "fp64"};
  return names[static_cast<int>(precision)];
}

struct PrecisionTable {
  Precision precision = Precision::fp32;
  DType master = DType::f32;      // weights the optimizer updates, and its moments
  DType compute = DType::f32;     // the copy of the weights that forward and backward read
  DType activation = DType::f32;  // what layers hand to each other, the residual stream included
  DType logits = DType::f32;
  DType gradient = DType::f32;    // of parameters
  DType statistics = DType::f32;  // means, reciprocal deviations, log-sum-exps, losses
  MathMode math = MathMode::ieee;
};

constexpr PrecisionTable precision_table(Precision precision) {
  PrecisionTable table{.precision = precision};
  switch (precision) {
    case Precision::fp32:
      break;
    case Precision::tf32:
      table.math = MathMode::tf32;
      break;
    case Precision::bf16:
      table.compute = table.activation = table.logits = DType::bf16;
      break;
    case Precision::fp16:
      table.compute = table.activation = table.logits = DType::f16;
      break;
    case Precision::fp64:
      table.master = table.compute = table.activation = table.logits = table.gradient = table.statistics = DType::f64;
      break;
  }
  return table;
}

}  // namespace tilewave
