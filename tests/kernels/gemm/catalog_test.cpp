// Every CPU row of the catalog over all pairs of {majors, types, tile, M, N, K, pitches, epilogue, values}: against naive,
// bit for bit where sums of small integers are exact, else by relative error; on 1, 2, 3 and 5 threads with equal bits.
// Whatever must not be touched (pitch gaps, guards, the memory behind the workspace) holds NaN before and after.
// naive itself is compared with a literal triple loop.
#include "kernels/gemm/catalog.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <string>

#include "kernels/gemm.h"
#include "kernels/gemm/rows/packed_tiles.h"
#include "kernels/queue.h"
#include "tests/all_pairs.h"

namespace tilewave {
namespace {

constexpr std::byte kPoison{0xff};  // in every byte: a NaN of each type

// A matrix with a guard on both sides and gaps between its rows; elements are set and read in double.
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t gap, DType dtype)
      : bytes_(static_cast<std::size_t>(2 * kGuard + rows * (cols + gap) * size_of(dtype)), kPoison),
        rows_(rows),
        cols_(cols),
        ld_(cols + gap),
        dtype_(dtype) {}

  MatrixView view() {
    if (bytes_.empty()) return {};
    return {.data = bytes_.data() + kGuard, .rows = rows_, .cols = cols_, .ld = ld_, .dtype = dtype_};
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
      const auto first = rest.begin() + kGuard + row * ld_ * size_of(dtype_);
      std::fill(first, first + cols_ * size_of(dtype_), kPoison);
    }
    return std::count_if(rest.begin(), rest.end(), [](std::byte byte) { return byte != kPoison; });
  }
  bool empty() const { return bytes_.empty(); }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  DType dtype() const { return dtype_; }
  friend bool operator==(const Matrix& a, const Matrix& b) { return a.bytes_ == b.bytes_; }

 private:
  static constexpr std::int64_t kGuard = 192;

  const std::byte* address(std::int64_t row, std::int64_t col) const {
    return bytes_.data() + kGuard + (row * ld_ + col) * size_of(dtype_);
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
  std::int64_t rows_ = 0, cols_ = 0, ld_ = 0;
  DType dtype_ = DType::f32;
};

enum class Values { small_integers, random };
enum class Residual { none, beside, in_place };
enum class BiasGradient { none, stored, accumulated };

struct Case {
  Major a_major = Major::k, b_major = Major::k, d_major = Major::m;
  DType operand_dtype = DType::f32, output_dtype = DType::f32;
  Tile tile;
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_gap = 0, b_gap = 0, d_gap = 0;
  bool bias = false;
  Activation activation = Activation::none;
  bool saved_input = false;
  Activation derivative = Activation::none;
  Residual residual = Residual::none;
  bool accumulate = false;
  BiasGradient bias_gradient = BiasGradient::none;
  Values values = Values::small_integers;

  // Whether fp32 sums and what follows them are exact.
  bool exact() const {
    const auto gelu = [](Activation which) { return which == Activation::gelu_tanh || which == Activation::gelu_erf; };
    return values == Values::small_integers && !gelu(activation) && !gelu(derivative);
  }
};

std::string text(const Case& c) {
  return sentence(c.tile.m, "x", c.tile.n, " M,N,K=", c.m, ",", c.n, ",", c.k, " majors ", name_of(c.a_major), name_of(c.b_major),
                  name_of(c.d_major), " ", name_of(c.operand_dtype), "->", name_of(c.output_dtype), " gaps ", c.a_gap, ",", c.b_gap, ",",
                  c.d_gap, " bias ", c.bias, " ", name_of(c.activation), " saved ", c.saved_input, " derivative ", name_of(c.derivative),
                  " residual ", static_cast<int>(c.residual), " accumulate ", c.accumulate, " bias gradient ",
                  static_cast<int>(c.bias_gradient), c.exact() ? " exact" : " inexact");
}

// Matrices of one case, with fresh inputs and poisoned outputs.
struct Operands {
  Matrix a, b, d, bias, saved_input, derivative_of, residual, bias_gradient;

  Operands(const Case& c, std::mt19937& random)
      : a(c.a_major == Major::k ? Matrix(c.m, c.k, c.a_gap, c.operand_dtype) : Matrix(c.k, c.m, c.a_gap, c.operand_dtype)),
        b(c.b_major == Major::k ? Matrix(c.n, c.k, c.b_gap, c.operand_dtype) : Matrix(c.k, c.n, c.b_gap, c.operand_dtype)),
        d(like_d(c, c.d_gap)) {
    const auto draw = [&] {
      return c.values == Values::small_integers ? static_cast<double>(random() % 7) - 3.0
                                                : static_cast<double>(random()) / 2147483648.0 - 1.0;
    };
    a.fill(draw);
    b.fill(draw);
    if (c.accumulate || c.residual == Residual::in_place) d.fill(draw);
    if (c.bias) (bias = Matrix(1, c.m, 0, c.output_dtype)).fill(draw);
    if (c.saved_input) saved_input = like_d(c, c.d_gap + 3);
    if (c.derivative != Activation::none) (derivative_of = like_d(c, c.a_gap)).fill(draw);
    if (c.residual == Residual::beside) (residual = like_d(c, c.b_gap)).fill(draw);
    if (c.bias_gradient != BiasGradient::none) bias_gradient = Matrix(1, c.n, 0, c.output_dtype);
    if (c.bias_gradient == BiasGradient::accumulated) bias_gradient.fill(draw);
  }

  GemmArgs args(const Case& c) {
    return {.a = a.view(),
            .a_major = c.a_major,
            .b = b.view(),
            .b_major = c.b_major,
            .d = d.view(),
            .d_major = c.d_major,
            .bias = bias.view(),
            .activation = c.activation,
            .saved_input = saved_input.view(),
            .derivative_of = derivative_of.view(),
            .derivative = c.derivative,
            .residual = c.residual == Residual::in_place ? d.view() : residual.view(),
            .accumulate = c.accumulate,
            .bias_gradient = bias_gradient.view(),
            .accumulate_bias_gradient = c.bias_gradient == BiasGradient::accumulated};
  }

 private:
  static Matrix like_d(const Case& c, std::int64_t gap) {
    return c.d_major == Major::m ? Matrix(c.n, c.m, gap, c.output_dtype) : Matrix(c.m, c.n, gap, c.output_dtype);
  }
};

double unit_roundoff(DType dtype) {
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

// Of a sum of k products in `sums`, stored as `output`: errors of a random walk, and a few roundings of the epilogue.
double tolerance(DType output, DType sums, std::int64_t k) {
  return 2.0 * unit_roundoff(output) + unit_roundoff(sums) * (8.0 + 2.0 * std::sqrt(static_cast<double>(k)));
}

// The norm of the difference over the reference's, or over what sums of k products come to where they happen to cancel.
void expect_close(const Matrix& result, const Matrix& reference, std::int64_t k, double limit, const char* name) {
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

void compare(const Operands& result, const Operands& reference, const Case& c, DType sums) {
  const auto one = [&](const char* name, const Matrix& ours, const Matrix& theirs) {
    if (ours.empty()) return;
    EXPECT_EQ(ours.touched(), 0) << name << ": bytes outside the matrix were written";
    expect_close(ours, theirs, c.k, c.exact() ? 0.0 : tolerance(c.output_dtype, sums, c.k), name);
  };
  one("D", result.d, reference.d);
  one("saved_input", result.saved_input, reference.saved_input);
  one("bias gradient", result.bias_gradient, reference.bias_gradient);
}

// Runs the case on one row and tile, with a workspace of exactly the planned size before a guard.
void run_on(const std::string& row, int threads, const Case& c, Operands& operands) {
  GemmArgs args = operands.args(c);
  const GemmPlan plan = choose(problem_of(args), probe_cpu(threads), {.forced = sentence(row, "/", c.tile.m, "x", c.tile.n)});
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes) + 256, kPoison);
  args.plan = &plan;
  args.workspace = workspace.data();
  static std::vector<CpuQueue> queues(8);
  CpuQueue& queue = queues[static_cast<std::size_t>(threads)];
  if (queue.threads == nullptr) queue = make_cpu_queue(threads);
  run(queue, args);
  EXPECT_TRUE(std::all_of(workspace.end() - 256, workspace.end(), [](std::byte byte) { return byte == kPoison; }))
      << "the workspace is too small";
}

// What a row accepts of all majors and all types, on a problem that has nothing else to refuse.
template <class T, class Set>
std::vector<T> accepted(const GemmRow& row, const std::vector<T>& all, Set&& set) {
  std::vector<T> some;
  for (const T& one : all) {
    GemmProblem problem = {.m = 8, .n = 8, .k = 8};
    set(problem, one);
    if (row.refuse(problem, probe_cpu(1)).empty()) some.push_back(one);
  }
  return some;
}

struct Majors {
  Major a, b, d;
};
struct Types {
  DType operand, output;
};

std::vector<Case> cases_of(const GemmRow& row) {
  std::vector<Majors> all_majors;
  for (const Major a : {Major::k, Major::m}) {
    for (const Major b : {Major::k, Major::n}) {
      for (const Major d : {Major::m, Major::n}) all_majors.push_back({a, b, d});
    }
  }
  std::vector<Types> all_types;
  for (const DType operand : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (const DType output : {DType::f32, DType::f64, DType::bf16, DType::f16}) all_types.push_back({operand, output});
  }
  const std::vector<Majors> majors = accepted(
      row, all_majors, [](GemmProblem& problem, Majors one) { problem.a_major = one.a, problem.b_major = one.b, problem.d_major = one.d; });
  const std::vector<Types> types = accepted(
      row, all_types, [](GemmProblem& problem, Types one) { problem.operand_dtype = one.operand, problem.output_dtype = one.output; });
  const std::vector<BiasGradient> bias_gradients =
      accepted(row, std::vector<BiasGradient>{BiasGradient::none, BiasGradient::stored, BiasGradient::accumulated},
               [](GemmProblem& problem, BiasGradient one) { problem.epilogue.bias_gradient = one != BiasGradient::none; });
  const std::vector<std::int64_t> gaps = {0, 1, 16};
  const std::vector<std::int64_t> ks = {1, 2, 7, 64, PackedLayout::kBlockK, PackedLayout::kBlockK + 1, 2 * PackedLayout::kBlockK + 1};
  const auto edges = [](std::int64_t tile) {
    return std::vector<std::int64_t>{1, std::max<std::int64_t>(1, tile - 1), tile, tile + 1, 37};
  };
  constexpr std::int64_t kMostWork = 3 << 20;  // multiply-adds: the longest sums meet smaller outputs

  std::mt19937 random(20240607);
  std::vector<Case> cases;
  for (const auto& level : all_pairs(
           {majors.size(), types.size(), row.tiles.size(), 5, 5, ks.size(), 3, 3, 3, 2, 4, 2, 4, 3, 2, bias_gradients.size(), 2}, random)) {
    Case c = {.a_major = majors[level[0]].a,
              .b_major = majors[level[0]].b,
              .d_major = majors[level[0]].d,
              .operand_dtype = types[level[1]].operand,
              .output_dtype = types[level[1]].output,
              .tile = row.tiles[level[2]],
              .m = edges(row.tiles[level[2]].m)[level[3]],
              .n = edges(row.tiles[level[2]].n)[level[4]],
              .k = ks[level[5]],
              .a_gap = gaps[level[6]],
              .b_gap = gaps[level[7]],
              .d_gap = gaps[level[8]],
              .bias = level[9] == 1,
              .activation = static_cast<Activation>(level[10]),
              .saved_input = level[11] == 1,
              .derivative = static_cast<Activation>(level[12]),
              .residual = static_cast<Residual>(level[13]),
              .accumulate = level[14] == 1,
              .bias_gradient = bias_gradients[level[15]],
              .values = static_cast<Values>(level[16])};
    c.k = std::min(c.k, std::max<std::int64_t>(1, kMostWork / (c.m * c.n)));
    cases.push_back(c);
  }
  return cases;
}

double literal_activation(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3.0))));
    case Activation::gelu_erf:
      return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    default:
      return x;
  }
}

// By central differences, off ReLU's kink.
double literal_derivative(Activation activation, double x) {
  if (activation == Activation::relu && x == 0.0) return 0.0;
  const double h = 1e-5;
  return (literal_activation(activation, x + h) - literal_activation(activation, x - h)) / (2.0 * h);
}

void literal(const Case& c, Operands& o) {
  for (std::int64_t n = 0; n < c.n; ++n) {
    double column_sum = 0.0;
    for (std::int64_t k = 0; k < c.k; ++k) column_sum += c.b_major == Major::k ? o.b.get(n, k) : o.b.get(k, n);
    if (c.bias_gradient == BiasGradient::accumulated) column_sum += o.bias_gradient.get(0, n);
    if (c.bias_gradient != BiasGradient::none) o.bias_gradient.set(0, n, column_sum);
    for (std::int64_t m = 0; m < c.m; ++m) {
      const std::int64_t row = c.d_major == Major::m ? n : m, col = c.d_major == Major::m ? m : n;
      double z = 0.0;
      for (std::int64_t k = 0; k < c.k; ++k) {
        z += (c.a_major == Major::k ? o.a.get(m, k) : o.a.get(k, m)) * (c.b_major == Major::k ? o.b.get(n, k) : o.b.get(k, n));
      }
      if (c.bias) z += o.bias.get(0, m);
      if (c.saved_input) o.saved_input.set(row, col, z);
      z = literal_activation(c.activation, z);
      if (c.derivative != Activation::none) z *= std::round(literal_derivative(c.derivative, o.derivative_of.get(row, col)) * 1e9) * 1e-9;
      if (c.residual == Residual::beside) z += o.residual.get(row, col);
      if (c.residual == Residual::in_place) z += o.d.get(row, col);
      if (c.accumulate) z += o.d.get(row, col);
      o.d.set(row, col, z);
    }
  }
}

TEST(GemmCatalog, NaiveAgreesWithALiteralTripleLoop) {
  std::mt19937 random(7);
  const std::vector<Case> cases = cases_of(*find_gemm_row("naive"));
  EXPECT_GE(cases.size(), 16u * 7u);  // types x K alone
  for (const Case& c : cases) {
    SCOPED_TRACE(text(c));
    Operands naive(c, random), expected = naive;
    run_on("naive", 2, c, naive);
    literal(c, expected);
    compare(naive, expected, c, DType::f32);  // the central differences are good to 1e-9
  }
}

TEST(GemmCatalog, EveryRowAgreesWithNaiveOnAnyNumberOfThreads) {
  int rows = 0;
  for (const GemmRow* row : gemm_catalog()) {
    if (row->launch_cpu == nullptr || row->name == "naive") continue;
    ++rows;
    std::mt19937 random(11);
    const std::vector<Case> cases = cases_of(*row);
    EXPECT_GE(cases.size(), row->tiles.size() * 7u) << row->name;
    for (const Case& c : cases) {
      SCOPED_TRACE(sentence(row->name, "/", text(c)));
      Operands ours(c, random), expected = ours;
      const Operands fresh = ours;
      run_on(std::string(row->name), 1, c, ours);
      Case by_naive = c;
      by_naive.tile = {.m = 1, .n = 1};
      run_on("naive", 2, by_naive, expected);
      compare(ours, expected, c, c.operand_dtype == DType::f64 ? DType::f64 : DType::f32);
      for (const int threads : {2, 3, 5}) {
        Operands again = fresh;
        run_on(std::string(row->name), threads, c, again);
        EXPECT_TRUE(again.d == ours.d && again.saved_input == ours.saved_input && again.bias_gradient == ours.bias_gradient)
            << "other bits with " << threads << " threads";
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GE(rows, 1);
}

TEST(GemmCatalog, RowsHaveNamesTilesAndSentences) {
  for (const GemmRow* row : gemm_catalog()) {
    EXPECT_EQ(find_gemm_row(row->name), row);
    EXPECT_FALSE(row->tiles.empty()) << row->name;
    const std::string refusal =
        row->refuse({.m = 8, .n = 8, .k = 8, .operand_dtype = DType::bf16, .output_dtype = DType::bf16}, probe_cpu(1));
    EXPECT_TRUE(refusal.empty() || refusal.back() == '.') << refusal;
  }
  EXPECT_EQ(find_gemm_row("fast"), nullptr);
}

}  // namespace
}  // namespace tilewave
