// tw_multiply, tw_activate and tw_activate_gradient: C's structs as the ground floor's arguments.
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "interface/guard.h"
#include "interface/lanes.h"
#include "kernels/core/error.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/tiling.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/add.h"
#include "kernels/ops/silu.h"

namespace tilewave {
namespace {

DType dtype_of(std::string_view name, int32_t dtype) {
  constexpr DType types[] = {DType::f64, DType::f32, DType::bf16, DType::f16};
  TW_CHECK_INPUT(dtype >= 0 && dtype < std::ssize(types), name, ".dtype is ", dtype, "; it is TW_F64, TW_F32, TW_BF16 or TW_F16.");
  return types[dtype];
}

MatrixView view_of(std::string_view name, const tw_matrix& matrix) {
  if (matrix.data == nullptr) return {};
  const DType dtype = dtype_of(name, matrix.dtype);
  TW_CHECK_INPUT(matrix.rows > 0 && matrix.columns > 0, name, " is [", matrix.rows, ", ", matrix.columns, "]; each must be at least 1.");
  const std::int64_t stride = matrix.rows == 1 ? matrix.columns : matrix.stride;
  TW_CHECK_INPUT(stride >= matrix.columns, name, " has rows ", matrix.stride, " elements apart, fewer than its ", matrix.columns,
                 " columns.");
  TW_CHECK_INPUT(reinterpret_cast<std::uintptr_t>(matrix.data) % static_cast<std::uintptr_t>(size_of(dtype)) == 0, name,
                 " begins within an element of ", size_of(dtype), " bytes.");
  return {.data = matrix.data, .rows = matrix.rows, .cols = matrix.columns, .ld = stride, .dtype = dtype};
}

MatrixView required(std::string_view name, const tw_matrix& matrix) {
  TW_CHECK_INPUT(matrix.data != nullptr, name, " is absent; this takes it.");
  return view_of(name, matrix);
}

Activation activation_of(std::string_view name, int32_t activation) {
  constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf};
  TW_CHECK_INPUT(activation >= 0 && activation < std::ssize(activations), name, " is ", activation,
                 "; it is TW_NONE, TW_RELU, TW_GELU_TANH or TW_GELU_ERF.");
  return activations[activation];
}

GemmArgs args_of(const tw_gemm& gemm) {
  constexpr GemmRole roles[] = {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad};
  TW_CHECK_INPUT(gemm.role >= 0 && gemm.role < std::ssize(roles), "role is ", gemm.role, "; it is TW_FORWARD, TW_DGRAD or TW_WGRAD.");
  const GemmRole role = roles[gemm.role];
  return {.role = role,
          .a = required("weight", gemm.weight),
          .a_major = role == GemmRole::forward ? Major::k : Major::m,
          .b = required("tokens", gemm.tokens),
          .b_major = role == GemmRole::wgrad ? Major::n : Major::k,
          .d = required("result", gemm.result),
          .math = gemm.tf32 != 0 ? MathMode::tf32 : MathMode::ieee,
          .bias = view_of("bias", gemm.bias),
          .activation = activation_of("activation", gemm.activation),
          .saved_input = view_of("saved_input", gemm.saved_input),
          .derivative_of = view_of("derivative_of", gemm.derivative_of),
          .derivative = activation_of("derivative", gemm.derivative),
          .residual = view_of("residual", gemm.residual),
          .accumulate = gemm.accumulate != 0,
          .bias_gradient = view_of("bias_gradient", gemm.bias_gradient)};
}

// Math of TF32 is of F32 operands alone.
void settle_math(GemmArgs& args) {
  if (args.a.dtype != DType::f32) args.math = MathMode::ieee;
}

void launch_gemm(Lane& lane, GemmArgs args, const std::string& kernel) {
  const GemmPlan& plan = plan_on(lane, problem_of(args), kernel);
  args.plan = &plan;
  args.workspace = lane.workspace(plan.workspace_bytes);
  run(lane.queue(), args);
}

// What the ground floor finds wrong with arguments is the caller's mistake.
template <class Fn>
auto of_the_caller(const Fn& look) {
  try {
    return look();
  } catch (const Error& error) {
    throw InputError(error.what());
  }
}

template <class Args>
void launch(Lane& lane, const Args& args) {
  of_the_caller([&] { check(args); });
  run(lane.queue(), args);
}

// A CPU's kernels add up all of K in one sum, whose rounding grows with it. Here K is taken in slices whose sums are added, as BLAS
// libraries do: an error of their size, whatever K is. Training keeps the bits that it always had.
constexpr std::int64_t kSlice = 256;

ConstMatrixView slice(const ConstMatrixView& view, bool k_in_columns, std::int64_t first, std::int64_t count) {
  const std::int64_t offset = (k_in_columns ? first : first * view.ld) * size_of(view.dtype);
  const void* const data = static_cast<const std::byte*>(view.data) + offset;
  return k_in_columns ? ConstMatrixView(data, view.rows, count, view.ld, view.dtype)
                      : ConstMatrixView(data, count, view.cols, view.ld, view.dtype);
}

// The sums into `into`, of the product's shape, the bias's first.
void launch_slices(Lane& lane, const GemmArgs& args, const MatrixView& into, std::int64_t k) {
  const std::int64_t slices = ceil_div(k, kSlice);
  for (std::int64_t i = 0; i < slices; ++i) {
    const std::int64_t first = k * i / slices, count = k * (i + 1) / slices - first;
    GemmArgs part{.role = args.role,
                  .a = slice(args.a, args.a_major == Major::k, first, count),
                  .a_major = args.a_major,
                  .b = slice(args.b, args.b_major == Major::k, first, count),
                  .b_major = args.b_major,
                  .d = into,
                  .math = args.math,
                  .accumulate = i > 0 || args.accumulate,
                  .bias_gradient = args.bias_gradient,
                  .accumulate_bias_gradient = i > 0};
    if (i == 0) part.bias = args.bias;
    launch_gemm(lane, part, {});
  }
}

// The same result with K in slices. What an epilogue would have done to the whole sum is done behind the last.
void launch_sliced(Lane& lane, GemmArgs args, std::int64_t k) {
  const MatrixView d = args.d;
  const GemmPlan& whole = plan_on(lane, problem_of(args), {});
  args.plan = &whole;
  args.workspace = lane.workspace(whole.workspace_bytes);
  of_the_caller([&] { return check(args, lane.device()); });  // overlaps, which the slices do not see
  launch_slices(lane, args, args.saved_input ? args.saved_input : d, k);
  const ConstMatrixView z = args.saved_input ? args.saved_input : d;
  if (args.activation != Activation::none) {
    run(lane.queue(), ActivationArgs{.x = z, .y = d, .activation = args.activation});
  } else if (args.saved_input) {
    run(lane.queue(), AddArgs{.a = z, .b = {}, .y = d});
  }
  if (args.derivative_of)
    run(lane.queue(), ActivationBackwardArgs{.x = args.derivative_of, .dy = d, .dx = d, .activation = args.derivative});
  if (args.residual) run(lane.queue(), AddArgs{.a = d, .b = args.residual, .y = d});
}

// Whether such slices can be: sums that lie in the result need its old values for nothing but to be added to.
bool can_be_sliced(const GemmArgs& args) {
  const bool only_adds = args.activation == Activation::none && !args.derivative_of && !args.saved_input;
  const bool in_place = args.residual.data == args.d.data;
  const DType dtype = args.d.dtype;
  const auto suits = [&](const ConstMatrixView& view) { return !view || view.dtype == dtype; };
  return (dtype == DType::f32 || dtype == DType::f64) && args.a.dtype == dtype && (!args.accumulate || only_adds) && !in_place &&
         suits(args.saved_input) && suits(args.derivative_of) && suits(args.residual);
}

}  // namespace
}  // namespace tilewave

using namespace tilewave;

tw_status tw_multiply(const tw_gemm* gemm) {
  return guarded([&] {
    TW_CHECK_INPUT(gemm != nullptr, "tw_multiply was given no struct.");
    GemmArgs args = args_of(*gemm);
    settle_math(args);
    const GemmProblem problem = of_the_caller([&] { return problem_of(args); });
    with_lane(gemm->place, [&](Lane& lane) {
      const bool sliced = gemm->place.backend == TW_CPU && gemm->kernel == nullptr && problem.k > kSlice && can_be_sliced(args);
      sliced ? launch_sliced(lane, args, problem.k) : launch_gemm(lane, args, text_of(gemm->kernel));
    });
    return TW_OK;
  });
}

tw_status tw_activate(const tw_elementwise* given) {
  return guarded([&] {
    TW_CHECK_INPUT(given != nullptr, "tw_activate was given no struct.");
    const MatrixView x = required("x", given->x), up = view_of("up", given->up), y = required("y", given->y);
    const bool silu = given->activation == TW_SILU;
    TW_CHECK_INPUT(silu || !up, "up goes with TW_SILU alone.");
    const Activation activation = silu ? Activation::none : activation_of("activation", given->activation);
    TW_CHECK_INPUT(silu || activation != Activation::none, "activation is TW_NONE, and there is nothing to do.");
    with_lane(given->place, [&](Lane& lane) {
      silu ? launch(lane, SiluArgs{.x = x, .up = up, .y = y}) : launch(lane, ActivationArgs{.x = x, .y = y, .activation = activation});
    });
    return TW_OK;
  });
}

tw_status tw_activate_gradient(const tw_elementwise* given) {
  return guarded([&] {
    TW_CHECK_INPUT(given != nullptr, "tw_activate_gradient was given no struct.");
    const MatrixView x = required("x", given->x), up = view_of("up", given->up), dy = required("dy", given->dy);
    const MatrixView dx = required("dx", given->dx), dup = view_of("dup", given->dup);
    const bool silu = given->activation == TW_SILU;
    TW_CHECK_INPUT(silu || (!up && !dup), "up and dup go with TW_SILU alone.");
    TW_CHECK_INPUT(static_cast<bool>(up) == static_cast<bool>(dup), "up and dup go together; give both or neither.");
    const Activation activation = silu ? Activation::none : activation_of("activation", given->activation);
    TW_CHECK_INPUT(silu || activation != Activation::none, "activation is TW_NONE, and there is nothing to do.");
    with_lane(given->place, [&](Lane& lane) {
      silu ? launch(lane, SiluBackwardArgs{.x = x, .up = up, .dy = dy, .dx = dx, .dup = dup})
           : launch(lane, ActivationBackwardArgs{.x = x, .dy = dy, .dx = dx, .activation = activation});
    });
    return TW_OK;
  });
}
