// Attention against a softmax over the full matrix of each segment, written here in double; its backward against the same in
// closed form and against central differences of the kernel's own forward.
#include "kernels/attention.h"

#include "kernels/math/random.h"
#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Segment {
  std::int32_t q_begin, q_length, k_begin, k_length;
};

struct Case {
  const char* name;
  std::int64_t q_rows, k_rows, heads, width;
  std::vector<Segment> segments;
  Mask mask = Mask::none;
  double dropout = 0.0;
};

// Sizes around the tile's 64, the vectors' 32 and 16, and 1; widths off every multiple.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"one_token", 1, 1, 1, 1, {{0, 1, 0, 1}}},
      {"packed_self", 61, 61, 4, 32, {{0, 16, 0, 16}, {16, 24, 16, 24}, {40, 17, 40, 17}, {0, 0, 0, 0}}},
      {"packed_causal", 61, 61, 3, 5, {{0, 16, 0, 16}, {16, 24, 16, 24}, {40, 21, 40, 21}}, Mask::causal},
      {"cross", 50, 90, 2, 7, {{0, 13, 20, 33}, {20, 29, 60, 3}, {13, 7, 0, 20}}},
      {"many_tiles", 193, 193, 1, 33, {{1, 190, 2, 191}}},
      {"many_tiles_causal", 193, 193, 2, 16, {{0, 129, 0, 129}, {129, 64, 129, 64}}, Mask::causal},
      {"decoding", 3, 100, 2, 31, {{0, 1, 0, 63}, {1, 2, 63, 37}}, Mask::causal},
      {"causal_with_blind_queries", 20, 9, 2, 8, {{0, 12, 0, 4}, {12, 8, 4, 5}}, Mask::causal},
      {"empty_keys_and_empty_queries", 12, 12, 1, 4, {{0, 5, 0, 0}, {5, 0, 0, 6}, {5, 6, 6, 5}}},
      {"dropout", 70, 75, 2, 9, {{0, 30, 1, 40}, {31, 39, 42, 33}}, Mask::none, 0.3},
      {"dropout_causal", 140, 140, 2, 16, {{1, 70, 2, 70}, {72, 66, 73, 66}}, Mask::causal, 0.1},
  };
  return all;
}

StepState step_state() { return {.step = 7, .seed = 1234}; }

template <class T>
struct Problem {
  explicit Problem(const Case& c) : shape(c), segments(static_cast<std::int64_t>(c.segments.size()), 4) {
    Random random(17);
    q = Matrix<T>::uniform(c.q_rows, c.heads * c.width, random, -2.0, 2.0);
    k = Matrix<T>::uniform(c.k_rows, c.heads * c.width, random, -2.0, 2.0);
    v = Matrix<T>::uniform(c.k_rows, c.heads * c.width, random);
    dout = Matrix<T>::uniform(c.q_rows, c.heads * c.width, random);
    for (std::size_t s = 0; s < c.segments.size(); ++s)
      std::memcpy(&segments(static_cast<std::int64_t>(s), 0), &c.segments[s], sizeof(Segment));
  }

  Case shape;
  Matrix<std::int32_t> segments;
  Matrix<T> q{0, 0}, k{0, 0}, v{0, 0}, dout{0, 0};
  StepState state = step_state();
};

template <class T>
struct Forward {
  explicit Forward(const Problem<T>& p) : out(p.q.rows(), p.q.cols()), log_sum_exp(p.q.rows(), p.shape.heads) {}
  Matrix<T> out, log_sum_exp;
};

template <class T>
Forward<T> forward(CpuQueue& queue, const Problem<T>& p) {
  Forward<T> result(p);
  run(queue, AttentionArgs{.q = p.q.view(),
                           .k = p.k.view(),
                           .v = p.v.view(),
                           .segments = p.segments.view(),
                           .heads = p.shape.heads,
                           .mask = p.shape.mask,
                           .dropout = {.probability = p.shape.dropout, .site = 5, .state = &p.state},
                           .out = result.out.view(),
                           .log_sum_exp = result.log_sum_exp.view()});
  return result;
}

template <class T>
struct Backward {
  explicit Backward(const Problem<T>& p) : dq(p.q.rows(), p.q.cols()), dk(p.k.rows(), p.k.cols()), dv(p.k.rows(), p.k.cols()) {}
  Matrix<T> dq, dk, dv;
};

template <class T>
Backward<T> backward(CpuQueue& queue, const Problem<T>& p, const Forward<T>& saved) {
  Backward<T> result(p);
  run(queue, AttentionBackwardArgs{.q = p.q.view(),
                                   .k = p.k.view(),
                                   .v = p.v.view(),
                                   .out = saved.out.view(),
                                   .log_sum_exp = saved.log_sum_exp.view(),
                                   .dout = p.dout.view(),
                                   .segments = p.segments.view(),
                                   .heads = p.shape.heads,
                                   .mask = p.shape.mask,
                                   .dropout = {.probability = p.shape.dropout, .site = 5, .state = &p.state},
                                   .dq = result.dq.view(),
                                   .dk = result.dk.view(),
                                   .dv = result.dv.view()});
  return result;
}

// The definition: one full row of probabilities a query, and the chain rule through it.
struct Reference {
  std::vector<double> out, log_sum_exp, dq, dk, dv;
};

template <class T>
Reference reference(const Problem<T>& p) {
  const std::int64_t heads = p.shape.heads, width = p.shape.width, cols = heads * width;
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  Reference result;
  result.out.assign(static_cast<std::size_t>(p.q.rows() * cols), 0.0);
  result.log_sum_exp.assign(static_cast<std::size_t>(p.q.rows() * heads), 0.0);
  result.dq = result.out;
  result.dk.assign(static_cast<std::size_t>(p.k.rows() * cols), 0.0);
  result.dv = result.dk;
  for (const Segment& segment : p.shape.segments) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t i = 0; i < segment.q_length; ++i) {
        const std::int64_t row = segment.q_begin + i;
        const std::int64_t seen =
            p.shape.mask == Mask::none ? segment.k_length : std::max<std::int64_t>(0, i + 1 + segment.k_length - segment.q_length);
        if (seen == 0) continue;
        const auto at = [&](const Matrix<T>& m, std::int64_t r, std::int64_t c) { return static_cast<double>(m(r, head * width + c)); };
        const auto index = [&](std::int64_t r, std::int64_t c) { return static_cast<std::size_t>(r * cols + head * width + c); };
        std::vector<double> probability(static_cast<std::size_t>(seen)), keep(probability.size(), 1.0);
        double sum = 0.0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0.0;
          for (std::int64_t c = 0; c < width; ++c) score += at(p.q, row, c) * at(p.k, segment.k_begin + j, c);
          sum += probability[static_cast<std::size_t>(j)] = std::exp(score * scale);
          if (p.shape.dropout > 0.0) {
            const std::int64_t key = segment.k_begin + j;
            const auto draws = dropout_draws(p.state.seed, p.state.step, 5, static_cast<std::uint32_t>(head), row, key / 4);
            const bool kept = draws[static_cast<std::size_t>(key % 4)] >= p.shape.dropout * 4294967296.0;
            keep[static_cast<std::size_t>(j)] = kept ? 1.0 / (1.0 - p.shape.dropout) : 0.0;
          }
        }
        result.log_sum_exp[static_cast<std::size_t>(row * heads + head)] = std::log(sum);
        double mean = 0.0;  // of dP under P
        std::vector<double> d_probability(probability.size(), 0.0);
        for (std::int64_t j = 0; j < seen; ++j) {
          const auto at_j = static_cast<std::size_t>(j);
          probability[at_j] /= sum;
          for (std::int64_t c = 0; c < width; ++c) {
            const double value = at(p.v, segment.k_begin + j, c), gradient = at(p.dout, row, c);
            result.out[index(row, c)] += probability[at_j] * keep[at_j] * value;
            result.dv[index(segment.k_begin + j, c)] += probability[at_j] * keep[at_j] * gradient;
            d_probability[at_j] += keep[at_j] * value * gradient;
          }
          mean += probability[at_j] * d_probability[at_j];
        }
        for (std::int64_t j = 0; j < seen; ++j) {
          const double d_score = probability[static_cast<std::size_t>(j)] * (d_probability[static_cast<std::size_t>(j)] - mean) * scale;
          for (std::int64_t c = 0; c < width; ++c) {
            result.dq[index(row, c)] += d_score * at(p.k, segment.k_begin + j, c);
            result.dk[index(segment.k_begin + j, c)] += d_score * at(p.q, row, c);
          }
        }
      }
    }
  }
  return result;
}

template <class T>
class Attention : public ::testing::Test {};
TYPED_TEST_SUITE(Attention, Floats);

TYPED_TEST(Attention, ForwardIsTheFullSoftmax) {
  CpuQueue queue = make_cpu_queue(2);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Problem<TypeParam> problem(c);
    const Forward<TypeParam> actual = forward(queue, problem);
    const Reference expected = reference(problem);
    expect_close(actual.out, expected.out, c.k_rows + c.width);
    expect_close(actual.log_sum_exp, expected.log_sum_exp, c.k_rows + c.width);
  }
}

TYPED_TEST(Attention, BackwardIsTheChainRule) {
  CpuQueue queue = make_cpu_queue(2);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Problem<TypeParam> problem(c);
    const Backward<TypeParam> actual = backward(queue, problem, forward(queue, problem));
    const Reference expected = reference(problem);
    expect_close(actual.dv, expected.dv, c.q_rows + c.width);
    if (c.k_rows == 1) {  // a softmax over one key has no gradient
      for (const auto* gradient : {&actual.dq, &actual.dk}) EXPECT_LE(norm(gradient->values()), tolerance<TypeParam>(1));
      continue;
    }
    expect_close(actual.dq, expected.dq, c.k_rows + c.width);
    expect_close(actual.dk, expected.dk, c.q_rows + c.width);
  }
}

TYPED_TEST(Attention, ResultsDoNotDependOnTheNumberOfThreads) {
  for (const Case& c : cases()) {
    if (c.k_rows == 1) continue;
    SCOPED_TRACE(c.name);
    const Problem<TypeParam> problem(c);
    expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& queue) {
      Forward<TypeParam> saved = forward(queue, problem);
      Backward<TypeParam> gradients = backward(queue, problem, saved);
      return std::vector<Matrix<TypeParam>>{saved.out, saved.log_sum_exp, gradients.dq, gradients.dk, gradients.dv};
    });
  }
}

// A large score would overflow exp without the running maximum; a NaN must not vanish in it.
TYPED_TEST(Attention, LargeScoresStayFiniteAndANanIsSeen) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<TypeParam> problem({"large", 70, 70, 1, 4, {{0, 70, 0, 70}}});
  for (std::int64_t r = 0; r < 70; ++r) {
    for (std::int64_t c = 0; c < 4; ++c) problem.q(r, c) *= TypeParam(300);
  }
  for (const double value : forward(queue, problem).out.values()) EXPECT_TRUE(std::isfinite(value));
  problem.k(69, 2) = std::numeric_limits<TypeParam>::quiet_NaN();
  for (const double value : forward(queue, problem).out.values()) EXPECT_TRUE(std::isnan(value));
}

TEST(AttentionGradient, AgreesWithCentralDifferences) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<double> problem({"differences", 9, 11, 2, 3, {{0, 4, 1, 5}, {5, 4, 6, 5}}, Mask::causal, 0.25});
  const Backward<double> gradients = backward(queue, problem, forward(queue, problem));
  const auto loss = [&] {
    const auto out = forward(queue, problem).out.values(), dout = problem.dout.values();
    double sum = 0.0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  };
  expect_central_differences(problem.q, gradients.dq, loss);
  expect_central_differences(problem.k, gradients.dk, loss);
  expect_central_differences(problem.v, gradients.dv, loss);
}

TEST(AttentionContract, NamesASegmentOutsideTheRows) {
  CpuQueue queue = make_cpu_queue(1);
  const Problem<float> problem({"outside", 8, 8, 1, 4, {{4, 5, 0, 8}}});
  expect_error([&] { forward(queue, problem); }, "segment 0 has queries 4 + 5 and keys 0 + 8; there are 8 rows of queries and 8 of keys.");
}

}  // namespace
}  // namespace tilewave
