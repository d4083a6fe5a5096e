// Random operands, error norms and ranking on a CPU: their definitions, and sentences for what does not fit.
#include "kernels/core/beside_steps.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

TEST(BesideSteps, NormalNumbersAreThoseOfTheirPlace) {
  Queue one = make_cpu_queue(1), three = make_cpu_queue(3);
  Matrix<double> a(211, 307, 1), b(211, 307, 5), other(211, 307);
  fill_normal(one, a.view(), 5);
  fill_normal(three, b.view(), 5);
  fill_normal(one, other.view(), 6);
  EXPECT_EQ(a.values(), b.values()) << "neither threads nor pitch change a number";
  EXPECT_GT(relative_error(other.values(), a.values()), 1.0) << "another seed, other numbers";
  EXPECT_TRUE(a.guards_intact() && b.guards_intact());
  double sum = 0.0, squares = 0.0, most = 0.0;
  for (const double value : a.values()) {
    sum += value;
    squares += value * value;
    most = std::max(most, std::abs(value));
  }
  const auto count = static_cast<double>(a.values().size());
  EXPECT_NEAR(sum / count, 0.0, 0.02);
  EXPECT_NEAR(squares / count, 1.0, 0.02);
  EXPECT_LE(most, 2.0 * std::sqrt(3.0));
  Matrix<float> narrow(211, 307);
  fill_normal(one, narrow.view(), 5);
  for (std::int64_t c = 0; c < 307; ++c) EXPECT_EQ(narrow(17, c), static_cast<float>(a(17, c)));
}

TEST(BesideSteps, ErrorNormsAreThoseOfTheDifference) {
  Queue queue = make_cpu_queue(2);
  testing_support::Random random(3);
  const auto actual = Matrix<float>::uniform(33, 41, random);
  const auto expected = Matrix<double>::uniform(33, 41, random);
  const ErrorNorms norms = error_norms(queue, actual.view(), expected.view());
  EXPECT_NEAR(norms.reference, norm(expected.values()), 1e-12);
  EXPECT_NEAR(norms.relative(), relative_error(actual.values(), expected.values()), 1e-12);
  EXPECT_EQ(error_norms(queue, actual.view(), actual.view()).difference, 0.0);
}

TEST(BesideSteps, TheLargestComeFirstAndOfEqualOnesTheFirst) {
  Queue queue = make_cpu_queue(1);
  const auto row = Matrix<float>::row_of({1.0F, 5.0F, -2.0F, 5.0F, 9.0F, 5.0F, 0.0F});
  const auto columns = Matrix<std::int32_t>::row_of({0, 1, 2, 3, 5, 6});  // 4 is nobody's
  EXPECT_EQ(largest_of(queue, {.row = row.view(), .columns = columns.view()}, 4),
            (std::vector<RankedColumn>{{1, 5.0}, {3, 5.0}, {5, 5.0}, {0, 1.0}}));
  EXPECT_EQ(largest_of(queue, {.row = row.view(), .columns = columns.view()}, 6).back(), (RankedColumn{2, -2.0}));
  EXPECT_TRUE(largest_of(queue, {.row = row.view(), .columns = columns.view()}, 0).empty());
}

TEST(BesideSteps, SaysWhatDoesNotFit) {
  Queue queue = make_cpu_queue(1), trace = TraceQueue{};
  Matrix<float> a = Matrix<float>::filled(2, 3, 1.0F), b = Matrix<float>::filled(3, 2, 1.0F), row = Matrix<float>::filled(1, 3, 1.0F);
  Matrix<std::int32_t> ids = Matrix<std::int32_t>::row_of({0, 1});
  expect_error([&] { error_norms(queue, a.view(), b.view()); },
               "error_norms: a matrix is f32 [2, 3] and what it must be f32 [3, 2]; they must be of one shape.");
  expect_error([&] { fill_normal(queue, ids.view(), 1); }, "fill_normal: it takes floating-point matrices, not i32.");
  expect_error([&] { largest_of(queue, {.row = a.view(), .columns = ids.view()}, 1); }, "largest_of: row is f32 [2, 3]");
  expect_error([&] { largest_of(queue, {.row = row.view(), .columns = ids.view()}, 3); }, "largest_of: asked for 3 of 2 columns.");
  expect_error([&] { error_norms(trace, a.view(), a.view()); }, "error_norms: a trace has no numbers.");
  const std::vector<double> before = a.values();
  fill_normal(trace, a.view(), 1);
  EXPECT_EQ(a.values(), before);
}

}  // namespace
}  // namespace tilewave
