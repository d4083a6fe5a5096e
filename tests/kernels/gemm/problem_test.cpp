// From views to problems: Table 1's roles, alignments, and sentences for what does not fit.
#include "kernels/gemm/problem.h"

#include <functional>
#include <gtest/gtest.h>
#include <string>

#include "kernels/gemm/gemm.h"

namespace tilewave {
namespace {

// A view nobody reads: problem_of looks at shapes and addresses alone.
MatrixView view(std::int64_t rows, std::int64_t cols, std::int64_t ld = 0, std::uintptr_t address = 1 << 20) {
  return {.data = reinterpret_cast<void*>(address), .rows = rows, .cols = cols, .ld = ld == 0 ? cols : ld, .dtype = DType::f32};
}

constexpr std::int64_t kTokens = 1536, kIn = 128, kOut = 512;

GemmArgs forward() { return {.role = GemmRole::forward, .a = view(kOut, kIn), .b = view(kTokens, kIn), .d = view(kTokens, kOut)}; }

std::string message_of(const std::function<void(GemmArgs&)>& spoil) {
  GemmArgs args = forward();
  spoil(args);
  try {
    problem_of(args);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// The guide's fully-connected layers, Table 1.
TEST(GemmProblem, RolesOfAFullyConnectedLayer) {
  const GemmProblem y = problem_of(forward());
  EXPECT_EQ(std::tuple(y.m, y.n, y.k), std::tuple(kOut, kTokens, kIn));
  const GemmProblem dx =
      problem_of({.role = GemmRole::dgrad, .a = view(kOut, kIn), .a_major = Major::m, .b = view(kTokens, kOut), .d = view(kTokens, kIn)});
  EXPECT_EQ(std::tuple(dx.m, dx.n, dx.k), std::tuple(kIn, kTokens, kOut));
  const GemmProblem dw = problem_of({.role = GemmRole::wgrad,
                                     .a = view(kTokens, kIn),
                                     .a_major = Major::m,
                                     .b = view(kTokens, kOut),
                                     .b_major = Major::n,
                                     .d = view(kOut, kIn)});
  EXPECT_EQ(std::tuple(dw.m, dw.n, dw.k), std::tuple(kIn, kOut, kTokens));
  for (const GemmProblem& problem : {y, dx, dw}) EXPECT_EQ(problem.flops(), 2 * kOut * kTokens * kIn);
}

TEST(GemmProblem, FeatureMajorOutput) {
  GemmArgs args = forward();
  args.d = view(kOut, kTokens);
  args.d_major = Major::n;
  EXPECT_EQ(problem_of(args).m, kOut);
  EXPECT_EQ(problem_of(args).n, kTokens);
}

TEST(GemmProblem, CountsEachPassOverTheOutput) {
  GemmArgs args = forward();
  const std::int64_t operands = 4 * (kOut * kIn + kTokens * kIn), output = 4 * kOut * kTokens;
  EXPECT_EQ(cost(args).bytes, operands + output);
  args.accumulate = true;
  EXPECT_EQ(cost(args).bytes, operands + 2 * output);
  args.saved_input = args.d;
  args.residual = args.d;
  args.derivative_of = args.d;
  args.derivative = Activation::relu;
  EXPECT_EQ(cost(args).bytes, operands + 5 * output);
}

TEST(GemmProblem, AlignmentIsTheLargestPowerOfTwoOfAddressAndPitch) {
  EXPECT_EQ(alignment_of(0, 33708 * 2), 8);
  EXPECT_EQ(alignment_of(0, 33712 * 2), 32);
  EXPECT_EQ(alignment_of(0, 33728 * 2), 128);
  EXPECT_EQ(alignment_of(0, 50257 * 2), 2);
  EXPECT_EQ(alignment_of(0, 50304 * 2), 128);
  EXPECT_EQ(alignment_of(4096, 4096), 128);
  EXPECT_EQ(alignment_of(4, 4096), 4);
  EXPECT_EQ(alignment_of(1, 4096), 1);

  GemmArgs args = forward();
  args.a = view(kOut, kIn, kIn + 4);
  args.b = view(kTokens, kIn, kIn, (1 << 20) + 8);
  const GemmProblem problem = problem_of(args);
  EXPECT_EQ(problem.a_pitch, kIn + 4);
  EXPECT_EQ(problem.a_alignment, 16);
  EXPECT_EQ(problem.b_alignment, 8);
  EXPECT_EQ(problem.d_alignment, 128);
}

TEST(GemmProblem, MismatchesNameBothShapes) {
  struct Mismatch {
    std::function<void(GemmArgs&)> spoil;
    std::vector<std::string> parts;
  };
  const std::vector<Mismatch> mismatches = {
      {[](GemmArgs& args) { args.b = view(kTokens, 64); }, {"gemm forward", "A [512, 128]", "B [1536, 64]", "K = 128", "K = 64"}},
      {[](GemmArgs& args) { args.d = view(kTokens, 511); }, {"A [512, 128]", "B [1536, 128]", "512 x 1536", "D [1536, 511]", "511 x 1536"}},
      {[](GemmArgs& args) { args.d_major = Major::n; }, {"D [1536, 512]", "n-major"}},
      {[](GemmArgs& args) { args.bias = view(1, 511); }, {"bias", "[1, 511]", "D [1536, 512]", "[1, 512]"}},
      {[](GemmArgs& args) { (args.bias = view(1, 512)).dtype = DType::f64; }, {"the bias is f64", "operands of f32"}},
      {[](GemmArgs& args) { args.bias_gradient = view(1, 512); }, {"bias gradient", "[1, 512]", "N = 1536"}},
      {[](GemmArgs& args) { args.output_sums = view(1, 1536); }, {"output sums", "[1, 1536]", "M = 512"}},
      {[](GemmArgs& args) { (args.output_sums = view(1, 512)).dtype = DType::bf16; }, {"output sums are bf16", "D is f32"}},
      {[](GemmArgs& args) { args.residual = view(kTokens, 100); }, {"residual [1536, 100]", "D [1536, 512]"}},
      {[](GemmArgs& args) { args.beta.value = 0.5; }, {"beta = 0.5", "no residual", "D itself as the residual"}},
      {[](GemmArgs& args) { args.residual = args.d, args.beta.value = 0.0; }, {"beta is 0", "leave the residual out"}},
      {[](GemmArgs& args) { args.saved_input = view(512, kTokens); }, {"saved_input [512, 1536]", "D [1536, 512]"}},
      {[](GemmArgs& args) { args.derivative = Activation::relu; }, {"derivative_of", "relu", "both or neither"}},
      {[](GemmArgs& args) { args.derivative_of = args.d; }, {"derivative_of", "none", "both or neither"}},
      {[](GemmArgs& args) { args.a = view(kOut, kIn, 127); }, {"A [512, 128]", "pitch of 127"}},
      {[](GemmArgs& args) { args.a_major = Major::n; }, {"A", "k or m, not n"}},
      {[](GemmArgs& args) { args.b_major = Major::m; }, {"B", "k or n, not m"}},
      {[](GemmArgs& args) { args.d_major = Major::k; }, {"D", "m or n, not k"}},
      {[](GemmArgs& args) { args.a.dtype = DType::bf16; }, {"A is bf16", "B is f32"}},
      {[](GemmArgs& args) { args.d.dtype = DType::i32; }, {"D is i32"}},
      {[](GemmArgs& args) { args.b = view(0, kIn), args.d = view(0, kOut); }, {"512, 0, 128", "at least 1"}},
  };
  for (const Mismatch& mismatch : mismatches) {
    const std::string message = message_of(mismatch.spoil);
    for (const std::string& part : mismatch.parts) EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
  EXPECT_EQ(message_of([](GemmArgs&) {}), "");
}

}  // namespace
}  // namespace tilewave
