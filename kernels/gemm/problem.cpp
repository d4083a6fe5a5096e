// From views to a problem: which dimension is which follows from the majors, and what does not fit is said with both shapes.
#include "kernels/gemm/problem.h"

#include <algorithm>
#include <string>

#include "kernels/gemm/gemm.h"

namespace tilewave {
namespace {

std::string shape(const ConstMatrixView& view) { return concat("[", view.rows, ", ", view.cols, "]"); }

bool is_float(DType dtype) { return dtype != DType::i32; }

void check_view(const char* name, const ConstMatrixView& view, GemmRole role) {
  TW_CHECK(view.ld >= view.cols, "gemm ", name_of(role), ": ", name, " ", shape(view), " has a row pitch of ", view.ld,
           " elements, less than its ", view.cols, " columns.");
  TW_CHECK(is_float(view.dtype), "gemm ", name_of(role), ": ", name, " is ", name_of(view.dtype), "; it must be f64, f32, bf16 or f16.");
}

}  // namespace

GemmProblem problem_of(const GemmArgs& args) {
  const ConstMatrixView &a = args.a, &b = args.b, d = args.d;
  const std::string_view role = name_of(args.role);
  TW_CHECK(args.a_major != Major::n, "gemm ", role, ": A is K x M in memory; its major is k or m, not n.");
  TW_CHECK(args.b_major != Major::m, "gemm ", role, ": B is N x K in memory; its major is k or n, not m.");
  TW_CHECK(args.d_major != Major::k, "gemm ", role, ": D is M x N; its major is m or n, not k.");
  check_view("A", a, args.role);
  check_view("B", b, args.role);
  check_view("D", d, args.role);

  const std::int64_t m = args.a_major == Major::k ? a.rows : a.cols, k = args.a_major == Major::k ? a.cols : a.rows;
  const std::int64_t n = args.b_major == Major::k ? b.rows : b.cols, b_k = args.b_major == Major::k ? b.cols : b.rows;
  const std::int64_t d_m = args.d_major == Major::m ? d.cols : d.rows, d_n = args.d_major == Major::m ? d.rows : d.cols;
  TW_CHECK(k == b_k, "gemm ", role, ": A ", shape(a), " (", name_of(args.a_major), "-major) has K = ", k, ", but B ", shape(b), " (",
           name_of(args.b_major), "-major) has K = ", b_k, ".");
  TW_CHECK(d_m == m && d_n == n, "gemm ", role, ": A ", shape(a), " (", name_of(args.a_major), "-major) times B ", shape(b), " (",
           name_of(args.b_major), "-major) is M x N = ", m, " x ", n, ", but D ", shape(d), " (", name_of(args.d_major), "-major) is ", d_m,
           " x ", d_n, ".");
  TW_CHECK(m > 0 && n > 0 && k > 0, "gemm ", role, ": M, N, K = ", m, ", ", n, ", ", k, "; each must be at least 1.");
  TW_CHECK(a.dtype == b.dtype, "gemm ", role, ": A is ", name_of(a.dtype), " and B is ", name_of(b.dtype), "; both must have one type.");

  const auto check_vector = [&](const char* name, const ConstMatrixView& view, char dimension, std::int64_t size) {
    if (!view) return;
    check_view(name, view, args.role);
    TW_CHECK(view.rows == 1 && view.cols == size, "gemm ", role, ": the ", name, " is ", shape(view), ", but D ", shape(d), " has ",
             dimension, " = ", size, ": it must be [1, ", size, "].");
    TW_CHECK(view.dtype != DType::f64 || a.dtype == DType::f64 || d.dtype == DType::f64, "gemm ", role, ": the ", name,
             " is f64 beside operands of ", name_of(a.dtype), " and D of ", name_of(d.dtype), "; give it one of their types.");
  };
  const auto check_like_d = [&](const char* name, const ConstMatrixView& view) {
    if (!view) return;
    check_view(name, view, args.role);
    TW_CHECK(view.rows == d.rows && view.cols == d.cols, "gemm ", role, ": ", name, " ", shape(view), " must have the shape of D ",
             shape(d), ".");
    TW_CHECK(view.dtype == d.dtype || view.dtype == a.dtype, "gemm ", role, ": ", name, " is ", name_of(view.dtype),
             "; it must have D's type, ", name_of(d.dtype), ", or the operands', ", name_of(a.dtype), ".");
  };
  check_vector("bias", args.bias, 'M', m);
  check_vector("bias gradient", args.bias_gradient, 'N', n);
  check_vector("output sums", args.output_sums, 'M', m);
  TW_CHECK(!args.output_sums || args.output_sums.dtype == d.dtype, "gemm ", role, ": the output sums are ", name_of(args.output_sums.dtype),
           " and D is ", name_of(d.dtype), "; they must have D's type.");
  check_like_d("saved_input", args.saved_input);
  check_like_d("derivative_of", args.derivative_of);
  check_like_d("residual", args.residual);
  TW_CHECK(args.residual || args.beta.is_one(), "gemm ", role, ": beta = ", args.beta.value,
           " has no residual to multiply; give D itself as the residual to compute alpha A B + beta D.");
  TW_CHECK(args.beta.value != 0.0, "gemm ", role, ": beta is 0; leave the residual out, so that it is not read.");
  TW_CHECK(static_cast<bool>(args.derivative_of) == (args.derivative != Activation::none), "gemm ", role,
           ": derivative_of and the name of the derivative (here ", name_of(args.derivative), ") go together; give both or neither.");

  const auto alignment = [](const ConstMatrixView& view) {
    return alignment_of(reinterpret_cast<std::uintptr_t>(view.data), view.ld * size_of(view.dtype));
  };
  std::int64_t d_alignment = alignment(d);
  for (const ConstMatrixView& beside : {ConstMatrixView(args.saved_input), args.derivative_of, args.residual}) {
    if (beside) d_alignment = std::min(d_alignment, alignment(beside));
  }
  return {.role = args.role,
          .m = m,
          .n = n,
          .k = k,
          .a_major = args.a_major,
          .b_major = args.b_major,
          .d_major = args.d_major,
          .operand_dtype = a.dtype,
          .output_dtype = d.dtype,
          .math = args.math,
          .epilogue = {.bias = static_cast<bool>(args.bias),
                       .activation = args.activation,
                       .saved_input = static_cast<bool>(args.saved_input),
                       .derivative = args.derivative,
                       .residual = static_cast<bool>(args.residual),
                       .bias_gradient = static_cast<bool>(args.bias_gradient),
                       .output_sums = static_cast<bool>(args.output_sums),
                       .accumulate = args.accumulate},
          .a_pitch = a.ld,
          .b_pitch = b.ld,
          .d_pitch = d.ld,
          .a_alignment = alignment(a),
          .b_alignment = alignment(b),
          .d_alignment = d_alignment};
}

}  // namespace tilewave
