// Checks, and each call to its queue's back end.
#include "kernels/core/beside_steps.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

void expect_numbers(std::string_view operation, const ConstMatrixView& view) {
  TW_CHECK(view.dtype != DType::i32, operation, ": it takes floating-point matrices, not ", name_of(view.dtype), ".");
}

template <class Result, class Fn>
Result on_device(std::string_view operation, Queue& queue, const Fn& fn) {
  return std::visit(
      [&]<class Q>(Q& q) -> Result {
        if constexpr (std::is_same_v<Q, TraceQueue>) {
          throw Error(concat(operation, ": a trace has no numbers."));
        } else {
          return fn(q);
        }
      },
      queue);
}

}  // namespace

void fill_normal(Queue& queue, const MatrixView& y, std::uint64_t seed) {
  expect_numbers("fill_normal", y);
  if (std::holds_alternative<TraceQueue>(queue) || y.rows * y.cols == 0) return;
  on_device<void>("fill_normal", queue, [&](auto& q) { fill_normal(q, y, seed); });
}

ErrorNorms error_norms(Queue& queue, const ConstMatrixView& actual, const ConstMatrixView& expected) {
  expect_numbers("error_norms", actual);
  expect_numbers("error_norms", expected);
  TW_CHECK(actual.rows == expected.rows && actual.cols == expected.cols, "error_norms: a matrix is ", shape_of(actual),
           " and what it must be ", shape_of(expected), "; they must be of one shape.");
  return on_device<ErrorNorms>("error_norms", queue, [&](auto& q) { return error_norms(q, actual, expected); });
}

std::vector<RankedColumn> largest_of(Queue& queue, const RankedRow& row, std::int64_t count) {
  expect_numbers("largest_of", row.row);
  const Contract contract("largest_of");
  contract.expect("row", row.row, {.rows = 1, .cols = row.row.cols, .dtype = row.row.dtype});
  contract.expect("columns", row.columns, {.rows = 1, .cols = row.columns.cols, .dtype = DType::i32});
  TW_CHECK(count >= 0 && count <= row.columns.cols, "largest_of: asked for ", count, " of ", row.columns.cols, " columns.");
  if (count == 0) return {};
  return on_device<std::vector<RankedColumn>>("largest_of", queue, [&](auto& q) { return largest_of(q, row, count); });
}

}  // namespace tilewave
