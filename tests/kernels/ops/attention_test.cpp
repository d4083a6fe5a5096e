// Attention against a softmax over the full matrix of each segment, written here in double; its backward against the same in
// closed form and against central differences of the kernel's own forward.
#include "kernels/ops/attention.h"

#include "tests/kernels/ops/attention_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;
using namespace testing_support::attention;

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
                           .scale = p.shape.scale,
                           .sequence = p.shape.sequence,
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
                                   .scale = p.shape.scale,
                                   .sequence = p.shape.sequence,
                                   .mask = p.shape.mask,
                                   .dropout = {.probability = p.shape.dropout, .site = 5, .state = &p.state},
                                   .dq = result.dq.view(),
                                   .dk = result.dk.view(),
                                   .dv = result.dv.view()});
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

// Work is counted by what the segments hold, where it is known, and else by the longest one that there may be.
TEST(AttentionCost, IsThatOfItsSegments) {
  const Matrix<float> rows(100, 8);
  const auto count = [&](std::int64_t sequence, std::optional<SegmentSums> sums, Mask mask) {
    const AttentionArgs args{.q = rows.view(), .k = rows.view(), .v = rows.view(), .sequence = sequence, .sums = sums, .mask = mask};
    const AttentionBackwardArgs backward{.q = rows.view(), .k = rows.view(), .sequence = sequence, .sums = sums, .mask = mask};
    EXPECT_EQ(2 * cost(backward).flops, 5 * cost(args).flops);
    return trace_entry(args);
  };
  const SegmentSums known{.queries = 90, .pairs = 6 * 15 * 15};
  for (const std::int64_t sequence : {15, 40, 0}) {
    const TraceEntry entry = count(sequence, known, Mask::none);
    EXPECT_EQ(entry.cost.flops, 4 * 6 * 15 * 15 * 8);
    EXPECT_EQ(entry.attention->queries, 90);
    EXPECT_EQ(entry.attention->keys(), 15.0);
    EXPECT_EQ(entry.attention->longest, sequence > 0 ? sequence : 100);
    EXPECT_EQ(count(sequence, known, Mask::causal).cost.flops, 2 * 6 * 15 * 15 * 8);
  }
  EXPECT_EQ(count(40, {}, Mask::none).cost.flops, 4 * 100 * 40 * 8);
  EXPECT_EQ(count(0, {}, Mask::causal).cost.flops, 2 * 100 * 100 * 8);
}

TEST(AttentionContract, NamesASegmentOutsideTheRows) {
  CpuQueue queue = make_cpu_queue(1);
  const Problem<float> problem({"outside", 8, 8, 1, 4, {{4, 5, 0, 8}}});
  expect_error([&] { forward(queue, problem); }, "segment 0 has queries 4 + 5 and keys 0 + 8; there are 8 rows of queries and 8 of keys.");
}

TEST(AttentionContract, NamesASegmentLongerThanPromised) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<float> problem({"long", 8, 8, 1, 4, {{0, 4, 0, 4}, {4, 1, 4, 4}}, Mask::none, 0.0, 3});
  expect_error([&] { forward(queue, problem); }, "segment 0 has 4 queries and 4 keys, more than the 3 that `sequence` promises.");
  problem.shape.sequence = 4;
  const Forward<float> saved = forward(queue, problem);
  backward(queue, problem, saved);
  problem.segments(0, 1) = problem.segments(0, 3) = 3;
  problem.shape.sequence = 3;
  expect_error([&] { backward(queue, problem, saved); }, "segment 1 has 1 queries and 4 keys, more than the 3");
}

}  // namespace
}  // namespace tilewave
