// What the sweeps of the catalog share: one case of a GEMM as data, its operands with guards and gaps on the host, how two
// results are compared, and all pairs of whatever a row accepts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/kernel.h"
#include "tests/all_pairs.h"

namespace tilewave::gemm_sweep {

inline constexpr std::byte kPoison{0xff};  // in every byte: a NaN of each type

// A matrix with a guard on both sides and gaps between its rows; elements are set and read in double.
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t gap, DType dtype, std::int64_t skip = 0)
      : bytes_(static_cast<std::size_t>(2 * kGuard + (rows * (cols + gap) + skip) * size_of(dtype)), kPoison),
        first_(kGuard + skip * size_of(dtype)),
        rows_(rows),
        cols_(cols),
        ld_(cols + gap),
        dtype_(dtype) {}

  MatrixView view() {
    if (bytes_.empty()) return {};
    return {.data = bytes_.data() + first_, .rows = rows_, .cols = cols_, .ld = ld_, .dtype = dtype_};
  }
  double get(std::int64_t row, std::int64_t col) const {
    const std::byte* at = address(row, col);
    if (dtype_ == DType::f64) return read<double>(at);
    if (dtype_ == DType::f32) return read<float>(at);
    return dtype_ == DType::bf16 ? static_cast<float>(read<bf16>(at)) : static_cast<float>(read<f16>(at));
  }
  void set(std::int64_t row, std::int64_t col, double value) {
    std::byte* at = const_cast<std::byte*>(address(row, col));
    if (dtype_ == DType::f64) return write(at, value);
    if (dtype_ == DType::f32) return write(at, static_cast<float>(value));
    if (dtype_ == DType::bf16) return write(at, bf16(static_cast<float>(value)));
    write(at, f16(static_cast<float>(value)));
  }
  template <class Fn>
  void fill(Fn&& value) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t col = 0; col < cols_; ++col) set(row, col, value());
    }
  }
  // Bytes outside the elements that are no longer poisoned.
  std::int64_t touched() const {
    std::vector<std::byte> rest = bytes_;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto first = rest.begin() + first_ + row * ld_ * size_of(dtype_);
      std::fill(first, first + cols_ * size_of(dtype_), kPoison);
    }
    return std::count_if(rest.begin(), rest.end(), [](std::byte byte) { return byte != kPoison; });
  }
  bool empty() const { return bytes_.empty(); }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  DType dtype() const { return dtype_; }
  friend bool operator==(const Matrix& a, const Matrix& b) { return a.bytes_ == b.bytes_; }

 private:
  static constexpr std::int64_t kGuard = 192;

  const std::byte* address(std::int64_t row, std::int64_t col) const {
    return bytes_.data() + first_ + (row * ld_ + col) * size_of(dtype_);
  }
  template <class T>
  static T read(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
  }
  template <class T>
  static void write(std::byte* at, T value) {
    std::memcpy(at, &value, sizeof(T));
  }

  std::vector<std::byte> bytes_;
  std::int64_t first_ = 0;  // byte of the first element
  std::int64_t rows_ = 0, cols_ = 0, ld_ = 0;
  DType dtype_ = DType::f32;
};

enum class Values { small_integers, random };
enum class Residual { none, beside, in_place };
enum class BiasGradient { none, stored, accumulated };
enum class Scale { none, host, device };
inline constexpr double kScale = -0.5;  // alpha or beta where there is one: sums of small integers stay exact

struct Case {
  Major a_major = Major::k, b_major = Major::k, d_major = Major::m;
  DType operand_dtype = DType::f32, output_dtype = DType::f32;
  DType side_dtype = DType::f32;  // of the bias and of what has D's shape
  MathMode math = MathMode::ieee;
  Tile tile;
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_gap = 0, b_gap = 0, d_gap = 0, saved_gap = 3;
  std::int64_t a_skip = 0, b_skip = 0, d_skip = 0;  // elements from 64 aligned bytes to the first
  bool bias = false;
  Activation activation = Activation::none;
  bool saved_input = false;
  Activation derivative = Activation::none;
  Residual residual = Residual::none;
  Scale alpha = Scale::none, beta = Scale::none;  // beta: where there is a residual
  bool accumulate = false;
  BiasGradient bias_gradient = BiasGradient::none;
  bool output_sums = false;
  Values values = Values::small_integers;

  // Whether fp32 sums and what follows them are exact.
  bool exact() const {
    const auto gelu = [](Activation which) { return which == Activation::gelu_tanh || which == Activation::gelu_erf; };
    return values == Values::small_integers && !gelu(activation) && !gelu(derivative);
  }
};

inline std::string text(const Case& c) {
  return concat(c.tile.m, "x", c.tile.n, " M,N,K=", c.m, ",", c.n, ",", c.k, " majors ", name_of(c.a_major), name_of(c.b_major),
                name_of(c.d_major), " ", name_of(c.operand_dtype), "->", name_of(c.output_dtype), " ", name_of(c.math), " sides ",
                name_of(c.side_dtype), " gaps ", c.a_gap, ",", c.b_gap, ",", c.d_gap, ",", c.saved_gap, " skips ", c.a_skip, ",", c.b_skip,
                ",", c.d_skip, " bias ", c.bias, " ", name_of(c.activation), " saved ", c.saved_input, " derivative ",
                name_of(c.derivative), " residual ", static_cast<int>(c.residual), " alpha ", static_cast<int>(c.alpha), " beta ",
                static_cast<int>(c.beta), " accumulate ", c.accumulate, " bias gradient ", static_cast<int>(c.bias_gradient),
                " output sums ", c.output_sums, c.exact() ? " exact" : " inexact");
}

// Matrices of one case, with fresh inputs and poisoned outputs.
struct Operands {
  Matrix a, b, d, bias, saved_input, derivative_of, residual, bias_gradient, output_sums, scalar;

  Operands(const Case& c, std::mt19937& random)
      : a(c.a_major == Major::k ? Matrix(c.m, c.k, c.a_gap, c.operand_dtype, c.a_skip)
                                : Matrix(c.k, c.m, c.a_gap, c.operand_dtype, c.a_skip)),
        b(c.b_major == Major::k ? Matrix(c.n, c.k, c.b_gap, c.operand_dtype, c.b_skip)
                                : Matrix(c.k, c.n, c.b_gap, c.operand_dtype, c.b_skip)),
        d(like_d(c, c.d_gap, c.output_dtype, c.d_skip)) {
    const auto draw = [&] {
      return c.values == Values::small_integers ? static_cast<double>(random() % 7) - 3.0
                                                : static_cast<double>(random()) / 2147483648.0 - 1.0;
    };
    a.fill(draw);
    b.fill(draw);
    for (Matrix* const factor : {&a, &b}) {  // a few small integers may all be zero by chance
      if (factor->get(0, 0) == 0.0) factor->set(0, 0, 1.0);
    }
    if (c.accumulate || c.residual == Residual::in_place) d.fill(draw);
    if (c.bias) (bias = Matrix(1, c.m, 0, c.side_dtype)).fill(draw);
    if (c.saved_input) saved_input = like_d(c, c.saved_gap, c.side_dtype);
    if (c.derivative != Activation::none) (derivative_of = like_d(c, c.saved_gap + 16, c.side_dtype)).fill(draw);
    if (c.residual == Residual::beside) (residual = like_d(c, c.b_gap, c.side_dtype)).fill(draw);
    if (c.bias_gradient != BiasGradient::none) bias_gradient = Matrix(1, c.n, 0, c.output_dtype);
    if (c.bias_gradient == BiasGradient::accumulated) bias_gradient.fill(draw);
    if (c.output_sums) output_sums = Matrix(1, c.m, 0, c.output_dtype);
    if (c.alpha == Scale::device || c.beta == Scale::device) {
      (scalar = Matrix(1, 1, 0, c.operand_dtype == DType::f64 ? DType::f64 : DType::f32)).set(0, 0, kScale / 2);
    }
  }

  GemmArgs args(const Case& c) {
    return {.a = a.view(),
            .a_major = c.a_major,
            .b = b.view(),
            .b_major = c.b_major,
            .d = d.view(),
            .d_major = c.d_major,
            .math = c.math,
            .alpha = scale(c.alpha),
            .beta = scale(c.beta),
            .bias = bias.view(),
            .activation = c.activation,
            .saved_input = saved_input.view(),
            .derivative_of = derivative_of.view(),
            .derivative = c.derivative,
            .residual = c.residual == Residual::in_place ? d.view() : residual.view(),
            .accumulate = c.accumulate,
            .bias_gradient = bias_gradient.view(),
            .accumulate_bias_gradient = c.bias_gradient == BiasGradient::accumulated,
            .output_sums = output_sums.view()};
  }

 private:
  GemmScalar scale(Scale which) {
    if (which == Scale::none) return {};
    return which == Scale::host ? GemmScalar{.value = kScale} : GemmScalar{.value = 2.0, .at = scalar.view().data};
  }
  static Matrix like_d(const Case& c, std::int64_t gap, DType dtype, std::int64_t skip = 0) {
    return c.d_major == Major::m ? Matrix(c.n, c.m, gap, dtype, skip) : Matrix(c.m, c.n, gap, dtype, skip);
  }
};

inline double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11;
    default:
      return 0x1p-8;
  }
}

// What the operands' products and sums are rounded to.
inline DType sums_of(const Case& c) {
  if (c.operand_dtype == DType::f64) return DType::f64;
  return c.math == MathMode::tf32 ? DType::f16 : DType::f32;  // tf32 keeps as many bits of a fraction as f16
}

// Of a sum of k products in `sums`, stored as `output`: errors of a random walk, and a few roundings of the epilogue.
inline double tolerance(DType output, DType sums, std::int64_t k) {
  return 2.0 * unit_roundoff(output) + unit_roundoff(sums) * (8.0 + 2.0 * std::sqrt(static_cast<double>(k)));
}

// The norm of the difference over the reference's, or over what sums of k products come to where they happen to cancel.
inline void expect_close(const Matrix& result, const Matrix& reference, std::int64_t k, double limit, const char* name) {
  double difference = 0.0, norm = 0.0;
  for (std::int64_t row = 0; row < reference.rows(); ++row) {
    for (std::int64_t col = 0; col < reference.cols(); ++col) {
      difference += std::pow(result.get(row, col) - reference.get(row, col), 2.0);
      norm += std::pow(reference.get(row, col), 2.0);
    }
  }
  const double elements = static_cast<double>(reference.rows() * reference.cols());
  if (elements >= 16.0) {
    EXPECT_GT(norm, 0.0) << name;
  }
  const double error = std::sqrt(difference / std::max(norm, 0.1 * elements * static_cast<double>(k)));
  EXPECT_LE(error, limit) << name << " (a NaN: not written, or read where nothing was)";
}

inline void compare(const Operands& result, const Operands& reference, const Case& c, DType sums) {
  const auto one = [&](const char* name, const Matrix& ours, const Matrix& theirs, std::int64_t products) {
    if (ours.empty()) return;
    EXPECT_EQ(ours.touched(), 0) << name << ": bytes outside the matrix were written";
    expect_close(ours, theirs, products, c.exact() ? 0.0 : tolerance(ours.dtype(), sums, products), name);
  };
  one("D", result.d, reference.d, c.k);
  one("saved_input", result.saved_input, reference.saved_input, c.k);
  one("bias gradient", result.bias_gradient, reference.bias_gradient, c.k);
  one("output sums", result.output_sums, reference.output_sums, c.k * c.n);
}

// How a matrix's rows follow one another.
enum class Pitch { packed, one_more, two_more, four_more, to_16_bytes, to_128_bytes };

inline std::int64_t gap_of(Pitch pitch, std::int64_t cols, DType dtype) {
  switch (pitch) {
    case Pitch::packed:
      return 0;
    case Pitch::one_more:
      return 1;
    case Pitch::two_more:
      return 2;
    case Pitch::four_more:
      return 4;
    case Pitch::to_16_bytes:
      return round_up(cols, 16 / size_of(dtype)) - cols;
    case Pitch::to_128_bytes:
      return round_up(cols, 128 / size_of(dtype)) - cols;
  }
  return 0;
}

// The same problem with all rows on `bytes`, and with those of one matrix on 2 bytes, for a row that has nothing to do elsewhere.
inline std::vector<GemmProblem> with_alignments(const GemmProblem& problem, std::int64_t bytes, std::int64_t d_bytes) {
  std::vector<GemmProblem> some(4, problem);
  for (GemmProblem& one : some) one.a_alignment = one.b_alignment = bytes, one.d_alignment = d_bytes;
  some[1].a_alignment = some[2].b_alignment = some[3].d_alignment = 2;
  return some;
}

inline constexpr std::int64_t kLongK = 512;  // for a row that has work to do under products

// What a row accepts of all majors and all types, on a problem that has nothing else to refuse, with some majors of its operands.
template <class T, class Set>
std::vector<T> accepted(const GemmKernel& row, const DeviceInfo& device, const std::vector<T>& all, Set&& set) {
  std::vector<GemmProblem> plain;
  for (const Major a : {Major::k, Major::m}) {
    for (const Major b : {Major::k, Major::n}) {
      GemmProblem problem = {.m = 8, .n = 8, .k = 8, .a_major = a, .b_major = b, .a_pitch = 8, .b_pitch = 8, .d_pitch = 8};
      const auto find = [&] {
        for (const GemmProblem& one : with_alignments(problem, 16, 16)) {
          if (!row.refuse(one, device).empty()) continue;
          plain.push_back(one);
          return true;
        }
        return false;
      };
      const auto find_in_types = [&] {
        problem.operand_dtype = problem.output_dtype = DType::f32;
        if (find()) return true;
        problem.operand_dtype = problem.output_dtype = DType::bf16;
        return find();
      };
      if (find_in_types()) continue;
      problem.n = 1;  // for one that multiplies a matrix by a vector
      if (find_in_types()) continue;
      problem.n = 8;
      problem.k = kLongK;  // for a row that is there for derivatives
      problem.epilogue.derivative = Activation::relu;
      find();
    }
  }
  std::vector<T> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const T& one) {
    return std::any_of(plain.begin(), plain.end(), [&](GemmProblem problem) {
      set(problem, one);
      return row.refuse(problem, device).empty();
    });
  });
  return some;
}

// What a case asks for, its rows on so many bytes, and those of what lies like D.
inline GemmProblem problem_of(const Case& c, std::int64_t alignment, std::int64_t d_alignment) {
  return {.m = c.m,
          .n = c.n,
          .k = c.k,
          .a_major = c.a_major,
          .b_major = c.b_major,
          .d_major = c.d_major,
          .operand_dtype = c.operand_dtype,
          .output_dtype = c.output_dtype,
          .math = c.math,
          .epilogue = {.bias = c.bias,
                       .activation = c.activation,
                       .saved_input = c.saved_input,
                       .derivative = c.derivative,
                       .residual = c.residual != Residual::none,
                       .bias_gradient = c.bias_gradient != BiasGradient::none,
                       .output_sums = c.output_sums,
                       .accumulate = c.accumulate},
          .a_pitch = (c.a_major == Major::k ? c.k : c.m) + c.a_gap,
          .b_pitch = (c.b_major == Major::k ? c.k : c.n) + c.b_gap,
          .d_pitch = (c.d_major == Major::m ? c.m : c.n) + c.d_gap,
          .a_alignment = alignment,
          .b_alignment = alignment,
          .d_alignment = d_alignment};
}
// Whether the row takes the case, were the operands' pitches aligned, and those of what lies like D to so many bytes.
inline bool takes(const GemmKernel& row, const DeviceInfo& device, const Case& c, std::int64_t d_alignment = 128) {
  const std::vector<GemmProblem> some = with_alignments(problem_of(c, 128, d_alignment), 128, d_alignment);
  return std::any_of(some.begin(), some.end(), [&](const GemmProblem& one) { return row.refuse(one, device).empty(); });
}

struct Majors {
  Major a, b, d;
};
struct Types {
  DType operand, output;
  MathMode math = MathMode::ieee;
};

// The lengths of K that reach every loop of a row, and the most multiply-adds of one case: the longest sums meet smaller outputs.
struct Lengths {
  std::vector<std::int64_t> ks;
  std::int64_t most_work = 3 << 20;
};

inline std::vector<Case> cases_of(const GemmKernel& row, const DeviceInfo& device, std::span<const Tile> tiles, const Lengths& lengths) {
  using enum DType;
  std::vector<Majors> all_majors;
  for (const Major a : {Major::k, Major::m}) {
    for (const Major b : {Major::k, Major::n}) {
      for (const Major d : {Major::m, Major::n}) all_majors.push_back({a, b, d});
    }
  }
  std::vector<Types> all_types = {{.operand = f32, .output = f32, .math = MathMode::tf32}};
  for (const DType operand : {f32, f64, bf16, f16}) {
    for (const DType output : {f32, f64, bf16, f16}) all_types.push_back({.operand = operand, .output = output});
  }
  const std::vector<Majors> majors = accepted(row, device, all_majors, [](GemmProblem& problem, Majors one) {
    problem.a_major = one.a, problem.b_major = one.b, problem.d_major = one.d;
  });
  const std::vector<Types> types = accepted(row, device, all_types, [](GemmProblem& problem, Types one) {
    problem.operand_dtype = one.operand, problem.output_dtype = one.output, problem.math = one.math;
  });
  const auto of_epilogue = [&]<class T>(const std::vector<T>& all, auto&& set) {
    return accepted(row, device, all, [&](GemmProblem& problem, T one) { set(problem.epilogue, one); });
  };
  const std::vector<int> off_and_on = {0, 1};
  const std::vector<Activation> all_activations = {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf};
  const std::vector<int> biases = of_epilogue(off_and_on, [](Epilogue& e, int one) { e.bias = one == 1; });
  const std::vector<Activation> activations = of_epilogue(all_activations, [](Epilogue& e, Activation one) { e.activation = one; });
  const std::vector<int> saved_inputs = of_epilogue(off_and_on, [](Epilogue& e, int one) { e.saved_input = one == 1; });
  const std::vector<Activation> derivatives = of_epilogue(all_activations, [](Epilogue& e, Activation one) { e.derivative = one; });
  const std::vector<Residual> residuals = of_epilogue(std::vector<Residual>{Residual::none, Residual::beside, Residual::in_place},
                                                      [](Epilogue& e, Residual one) { e.residual = one != Residual::none; });
  const std::vector<int> accumulates = of_epilogue(off_and_on, [](Epilogue& e, int one) { e.accumulate = one == 1; });
  const std::vector<BiasGradient> bias_gradients =
      of_epilogue(std::vector<BiasGradient>{BiasGradient::none, BiasGradient::stored, BiasGradient::accumulated},
                  [](Epilogue& e, BiasGradient one) { e.bias_gradient = one != BiasGradient::none; });
  const std::vector<int> output_sums = of_epilogue(off_and_on, [](Epilogue& e, int one) { e.output_sums = one == 1; });
  const std::vector<Major> majors_with_gradient =
      accepted(row, device, std::vector<Major>{Major::m, Major::n}, [](GemmProblem& problem, Major one) {
        problem.d_major = one;
        problem.epilogue.bias_gradient = true;
      });
  // The aligned pitches first; the others where the row takes that matrix's rows on any element beside these majors.
  const std::vector<Pitch> pitches = {Pitch::to_16_bytes, Pitch::to_128_bytes, Pitch::packed,
                                      Pitch::one_more,    Pitch::two_more,     Pitch::four_more};
  const auto narrow = [&](Majors major, Types type, bool a, bool b, bool d) {
    return !accepted(row, device, std::vector<int>{2}, [&](GemmProblem& problem, int bytes) {
              problem.a_major = major.a, problem.b_major = major.b, problem.d_major = major.d;
              problem.operand_dtype = type.operand, problem.output_dtype = type.output, problem.math = type.math;
              if (a) problem.a_alignment = bytes;
              if (b) problem.b_alignment = bytes;
              if (d) problem.d_alignment = bytes;
            }).empty();
  };
  const auto edges = [](std::int64_t tile) {
    return std::vector<std::int64_t>{1, std::max<std::int64_t>(1, tile - 1), tile, tile + 1, 37, 2 * tile + 24};
  };

  // A kernel that is there for a few rows or columns alone: where a tile has fewer rows than columns, rows are few.
  const bool few_alone = accepted(row, device, std::vector<std::int64_t>{64}, [](GemmProblem& problem, std::int64_t size) {
                           problem.m = problem.n = size;
                           problem.k = kLongK;
                         }).empty();
  const auto make_few = [&](Case& c) {
    for (const std::int64_t most : {16, 8, 1}) {
      const auto refused = [&] { return !row.refuse(problem_of(c, 128, 128), device, {&c.tile, 1}).empty(); };
      std::int64_t& few = c.tile.m < c.tile.n ? c.m : c.n;
      if (few_alone && refused()) few = 1 + (few - 1) % most;
    }
  };

  const bool on_gpu = device.backend == Backend::cuda;
  const bool library = row.composition.kernel.starts_with("cublas");  // alpha lies on the host
  std::mt19937 random(20240607);
  const std::vector<std::size_t> epilogues = {biases.size(),    activations.size(), saved_inputs.size(),  derivatives.size(),
                                              residuals.size(), accumulates.size(), bias_gradients.size()};
  const auto pairs = [&](bool with_epilogues) {
    std::vector<std::size_t> levels = {majors.size(),  types.size(),   tiles.size(),  6, 6, lengths.ks.size(),
                                       pitches.size(), pitches.size(), pitches.size()};
    for (const std::size_t size : epilogues) levels.push_back(with_epilogues ? size : 1);
    levels.insert(levels.end(), {2u, on_gpu ? 2u : 1u, with_epilogues ? output_sums.size() : 1, library ? 2u : 3u, 3u});
    return all_pairs(levels, random);
  };
  // On a GPU sums alone have code of their own, and an epilogue that a row takes beside some majors and pitches alone would hide it.
  std::vector<std::vector<std::size_t>> all = pairs(true);
  if (on_gpu) {
    for (auto& levels : pairs(false)) all.push_back(std::move(levels));
  }
  std::vector<Case> cases;
  for (const auto& level : all) {
    const Tile tile = tiles[level[2]];
    const Types type = types[level[1]];
    Case c = {.a_major = majors[level[0]].a,
              .b_major = majors[level[0]].b,
              .d_major = majors[level[0]].d,
              .operand_dtype = type.operand,
              .output_dtype = type.output,
              .side_dtype = level[17] == 0 ? type.output : type.operand,
              .math = type.math,
              .tile = tile,
              .m = edges(tile.m)[level[3]],
              .n = edges(tile.n)[level[4]],
              .k = lengths.ks[level[5]],
              .bias = biases[level[9]] == 1,
              .activation = activations[level[10]],
              .saved_input = saved_inputs[level[11]] == 1,
              .derivative = derivatives[level[12]],
              .residual = residuals[level[13]],
              .alpha = static_cast<Scale>(level[19]),
              .beta = residuals[level[13]] == Residual::none ? Scale::none : static_cast<Scale>(level[20]),
              .accumulate = accumulates[level[14]] == 1,
              .bias_gradient = bias_gradients[level[15]],
              .output_sums = output_sums[level[18]] == 1,
              .values = static_cast<Values>(level[16])};
    if (std::find(majors_with_gradient.begin(), majors_with_gradient.end(), c.d_major) == majors_with_gradient.end()) {
      c.bias_gradient = BiasGradient::none;
    }
    // What a row takes one by one it may refuse together: then a derivative has nothing beside it, the majors follow the epilogue, D's
    // rows are whole 16 bytes, and K is long.
    const auto settle = [&] {
      if (!takes(row, device, c) && c.derivative != Activation::none) {
        c.bias = c.saved_input = false;
        c.activation = Activation::none;
      }
      if (takes(row, device, c)) return;
      for (const Majors& other : majors) {
        Case turned = c;
        turned.a_major = other.a, turned.b_major = other.b, turned.d_major = other.d;
        if (takes(row, device, turned)) c = turned;
      }
    };
    make_few(c);
    settle();
    make_few(c);
    if (!takes(row, device, c)) {
      c.m = round_up(c.m, 8);
      settle();
    }
    if (!takes(row, device, c)) {
      c.k += kLongK;
      settle();
    }
    const Majors lie = {c.a_major, c.b_major, c.d_major};
    c.k = std::min(c.k, std::max<std::int64_t>(1, lengths.most_work / (c.m * c.n)));
    const auto narrow_here = [&](bool a, bool b, bool d) { return narrow(lie, type, a, b, d); };
    const std::int64_t a_cols = c.a_major == Major::k ? c.k : c.m;
    const std::int64_t b_cols = c.b_major == Major::k ? c.k : c.n;
    const std::int64_t d_cols = c.d_major == Major::m ? c.m : c.n;
    std::size_t a_pitch = 0, b_pitch = 0, d_pitch = 0;
    const auto settle_pitches = [&](std::size_t least) {
      const auto of = [&](std::size_t drawn, bool anywhere, std::int64_t cols, DType dtype) {
        if (!anywhere) return drawn % 2;
        const std::size_t pitch = least + drawn % (pitches.size() - least);
        const bool whole = (cols + gap_of(pitches[pitch], cols, dtype)) * size_of(dtype) % 16 == 0;
        return least >= 2 && whole ? (pitch + 1 < pitches.size() ? pitch + 1 : least) : pitch;
      };
      a_pitch = of(level[6], narrow_here(true, false, false), a_cols, c.operand_dtype);
      b_pitch = of(level[7], narrow_here(a_pitch >= 2, true, false), b_cols, c.operand_dtype);
      d_pitch = of(level[8], takes(row, device, c, 2) && narrow_here(a_pitch >= 2, b_pitch >= 2, true), d_cols, c.output_dtype);
    };
    settle_pitches(0);
    GemmProblem drawn = problem_of(c, 16, d_pitch >= 2 ? 2 : 16);
    if (a_pitch >= 2) drawn.a_alignment = 2;
    if (b_pitch >= 2) drawn.b_alignment = 2;
    if (!row.refuse(drawn, device).empty()) settle_pitches(2);  // it may have nothing to do on aligned rows
    c.a_gap = gap_of(pitches[a_pitch], a_cols, c.operand_dtype);
    c.b_gap = gap_of(pitches[b_pitch], b_cols, c.operand_dtype);
    c.d_gap = gap_of(pitches[d_pitch], d_cols, c.output_dtype);
    // As wide as D's where a TMA can have both, or odd.
    c.saved_gap = d_pitch < 2 ? gap_of(pitches[d_pitch], d_cols, c.side_dtype) : c.d_gap + 3;
    cases.push_back(c);
  }
  // Logits of a vocabulary that is no multiple of eight: rows that start on 16 bytes and end on other ones, which pairs of choices miss.
  for (std::size_t i = 0; on_gpu && i < types.size() * tiles.size() * lengths.ks.size(); ++i) {
    const Types type = types[i % types.size()];
    const Tile tile = tiles[i / types.size() % tiles.size()];
    Case c = {.a_major = Major::k, .b_major = Major::k, .d_major = Major::m, .operand_dtype = type.operand, .output_dtype = type.output};
    c.side_dtype = type.output, c.math = type.math, c.tile = tile, c.values = i % 2 == 0 ? Values::small_integers : Values::random;
    c.m = tile.m + 1 + static_cast<std::int64_t>(i % 7), c.n = tile.n + 3;
    c.k = std::min(lengths.ks[i / (types.size() * tiles.size())], std::max<std::int64_t>(1, lengths.most_work / (c.m * c.n)));
    c.a_gap = gap_of(Pitch::to_16_bytes, c.k, c.operand_dtype);
    c.b_gap = c.a_gap;
    c.d_gap = gap_of(Pitch::to_16_bytes, c.m, c.output_dtype);
    if (row.refuse(problem_of(c, 16, 16), device).empty()) cases.push_back(c);
  }
  return cases;
}

}  // namespace tilewave::gemm_sweep
