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
                           .kv_heads = p.shape.kv_heads,
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
  explicit Backward(const Problem<T>& p) : Backward(p, p.k.cols()) {}
  Backward(const Problem<T>& p, std::int64_t key_columns)
      : dq(p.q.rows(), p.q.cols()), dk(p.k.rows(), key_columns), dv(p.k.rows(), key_columns) {}
  Matrix<T> dq, dk, dv;
};

template <class T>
void backward(CpuQueue& queue, const Problem<T>& p, const Forward<T>& saved, Backward<T>& result) {
  run(queue, AttentionBackwardArgs{.q = p.q.view(),
                                   .k = p.k.view(),
                                   .v = p.v.view(),
                                   .out = saved.out.view(),
                                   .log_sum_exp = saved.log_sum_exp.view(),
                                   .dout = p.dout.view(),
                                   .segments = p.segments.view(),
                                   .heads = p.shape.heads,
                                   .kv_heads = p.shape.kv_heads,
                                   .scale = p.shape.scale,
                                   .sequence = p.shape.sequence,
                                   .mask = p.shape.mask,
                                   .dropout = {.probability = p.shape.dropout, .site = 5, .state = &p.state},
                                   .dq = result.dq.view(),
                                   .dk = result.dk.view(),
                                   .dv = result.dv.view()});
}

template <class T>
Backward<T> backward(CpuQueue& queue, const Problem<T>& p, const Forward<T>& saved) {
  Backward<T> result(p);
  backward(queue, p, saved, result);
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

// Heads that share keys and values are read where they lie: the same bits as with copies of them, and of gradients the sums over the heads
// that share, or each head's own part.
TYPED_TEST(Attention, SharedHeadsAreTheSameAsCopiesOfThem) {
  CpuQueue queue = make_cpu_queue(2);
  for (const Case& c : shared_cases({1, 7, 16, 32})) {
    SCOPED_TRACE(std::string(c.name) + ", heads of " + std::to_string(c.width));
    const Problem<TypeParam> shared(c), copies = repeated(shared);
    const Forward<TypeParam> actual = forward(queue, shared), expected = forward(queue, copies);
    EXPECT_TRUE(same_bits(actual.out, expected.out));
    EXPECT_TRUE(same_bits(actual.log_sum_exp, expected.log_sum_exp));
    const Backward<TypeParam> of_copies = backward(queue, copies, expected), sums = backward(queue, shared, actual);
    Backward<TypeParam> parts(shared, shared.q.cols());
    backward(queue, shared, actual, parts);
    for (const auto member : {&Backward<TypeParam>::dq, &Backward<TypeParam>::dk, &Backward<TypeParam>::dv}) {
      EXPECT_TRUE(same_bits(parts.*member, of_copies.*member));
    }
    EXPECT_TRUE(same_bits(sums.dq, of_copies.dq));
    expect_close(sums.dk, summed_heads(of_copies.dk, c), c.q_rows + c.width);
    expect_close(sums.dv, summed_heads(of_copies.dv, c), c.q_rows + c.width);
    expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& threads) {
      Backward<TypeParam> gradients = backward(threads, shared, forward(threads, shared));
      return std::vector<Matrix<TypeParam>>{gradients.dq, gradients.dk, gradients.dv};
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

TEST(AttentionGradient, OfSharedHeadsAgreesWithCentralDifferences) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<double> problem({"shared", 9, 11, 6, 3, {{0, 4, 1, 5}, {5, 4, 6, 5}}, Mask::causal, 0.25, 0, 0.0, 2});
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

// Of keys and values that heads share as many bytes move as there are.
TEST(AttentionCost, CountsTheKeysThatThereAre) {
  const Matrix<float> q(100, 64), k(100, 16);
  const auto bytes = [&](const Matrix<float>& keys, std::int64_t kv_heads) {
    return cost(AttentionArgs{.q = q.view(), .k = keys.view(), .v = keys.view(), .heads = 8, .kv_heads = kv_heads, .out = {}}).bytes;
  };
  EXPECT_EQ(bytes(q, 0) - bytes(k, 2), 2 * 100 * (64 - 16) * 4);
  Matrix<float> dq(100, 64), dk(100, 16);
  const AttentionBackwardArgs shared{.q = q.view(),
                                     .k = k.view(),
                                     .v = k.view(),
                                     .out = q.view(),
                                     .heads = 8,
                                     .kv_heads = 2,
                                     .dq = dq.view(),
                                     .dk = dk.view(),
                                     .dv = dk.view()};
  EXPECT_EQ(cost(shared).bytes, 4 * 100 * (4 * 64 + 4 * 16));
}

TEST(AttentionContract, SharedHeadsDivideTheOthers) {
  CpuQueue queue = make_cpu_queue(1);
  Problem<float> problem({"divisor", 70, 70, 6, 4, {{0, 70, 0, 70}}, Mask::none, 0.0, 0, 0.0, 3});
  const Forward<float> saved = forward(queue, problem);
  Backward<float> of_two_heads(problem, 2 * 4);
  expect_error([&] { backward(queue, problem, saved, of_two_heads); }, "dk");
  problem.shape.kv_heads = 4;
  expect_error([&] { forward(queue, problem); }, "6 heads of queries cannot share 4 of keys and values; it takes a divisor.");
  problem.shape.kv_heads = 2;
  expect_error([&] { forward(queue, problem); }, "k");
}

// What a GPU leaves to its caller.
TEST(AttentionContract, SaysWhatABackEndDoesWithSharedHeads) {
  const Matrix<bf16> q(100, 4 * 64), k(100, 2 * 64);
  const auto asked = [&](std::int64_t kv_heads, std::int64_t sequence) {
    return AttentionArgs{.q = q.view(), .k = k.view(), .v = k.view(), .heads = 4, .kv_heads = kv_heads, .sequence = sequence, .out = {}};
  };
  for (const std::int64_t sequence : {0, 64, 65}) {
    EXPECT_TRUE(shared_heads(Backend::cpu, asked(2, sequence)).reads && shared_heads(Backend::cpu, asked(2, sequence)).sums);
    EXPECT_TRUE(shared_heads(Backend::cuda, asked(4, sequence)).reads && shared_heads(Backend::cuda, asked(4, sequence)).sums);
    EXPECT_EQ(shared_heads(Backend::cuda, asked(2, sequence)).reads, sequence != 64) << sequence;
    EXPECT_FALSE(shared_heads(Backend::cuda, asked(2, sequence)).sums);
  }
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
