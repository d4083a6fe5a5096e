// RMS normalisation of rows, and of heads of queries and keys: torch.nn.functional.rms_norm's formula, and gradients.
#include "framework/ops/rms_norm.h"

#include "framework/ops/add.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class RmsNormOperation : public Fp64Test {
 protected:
  const Variable x = leaf({70, 5}, 1), gamma = leaf({1, 5}, 2);
};

// Of columns [first, first + d) of row r.
void normalise(const HostMatrix& in, HostMatrix& out, std::int64_t r, std::int64_t first, const HostMatrix& gamma) {
  const std::int64_t d = gamma.cols();
  double squares = 0.0;
  for (std::int64_t c = first; c < first + d; ++c) squares += in(r, c) * in(r, c) / static_cast<double>(d);
  for (std::int64_t c = first; c < first + d; ++c) out(r, c) = in(r, c) / std::sqrt(squares + 1e-3) * gamma(0, c - first);
}

TEST_F(RmsNormOperation, FollowsItsFormula) {
  const HostMatrix in(context, x), scale(context, gamma);
  HostMatrix expected(in.rows(), in.cols());
  for (std::int64_t r = 0; r < in.rows(); ++r) normalise(in, expected, r, 0, scale);
  expect_near(HostMatrix(context, rms_norm(context, {.x = x, .gamma = gamma, .epsilon = 1e-3})), expected);
}

TEST_F(RmsNormOperation, Gradients) {
  expect_gradients(context, "rms_norm", [&](Context& c) { return rms_norm(c, {.x = x, .gamma = gamma}); }, {{"x", x}, {"gamma", gamma}});
}

TEST_F(RmsNormOperation, GradientsOfATiedWeightAndOfTheInputAlone) {
  const auto twice = [&](Context& c) {
    const Variable y = rms_norm(c, {.x = x, .gamma = gamma});
    return rms_norm(c, {.x = add(c, y, x), .gamma = gamma});
  };
  expect_gradients(context, "rms_norm", twice, {{"x", x}, {"gamma", gamma}});
  expect_gradients(context, "rms_norm", [&](Context& c) { return rms_norm(c, {.x = x, .gamma = Variable(gamma.value())}); }, {{"x", x}});
}

TEST_F(RmsNormOperation, NamesBothShapes) {
  expect_error([&] { rms_norm(context, {.x = x, .gamma = leaf({1, 4}, 1)}); }, {"rms_norm: gamma", "[1, 4]", "[1, 5]"});
}

class QueryKeyNorm : public Fp64Test {
 protected:
  // Three heads of queries, two of keys, two of values, each four wide.
  const Variable x = leaf({9, 28}, 1), query_gamma = leaf({1, 4}, 2), key_gamma = leaf({1, 4}, 3);

  Variable apply(Context& c) {
    return query_key_norm(c, {.x = x, .query_gamma = query_gamma, .key_gamma = key_gamma, .heads = 3, .kv_heads = 2, .epsilon = 1e-3});
  }
};

TEST_F(QueryKeyNorm, NormalisesHeadsOfQueriesAndKeysAndLeavesValues) {
  const HostMatrix in(context, x), queries(context, query_gamma), keys(context, key_gamma);
  HostMatrix expected = in;
  for (std::int64_t r = 0; r < in.rows(); ++r) {
    for (std::int64_t head = 0; head < 5; ++head) normalise(in, expected, r, 4 * head, head < 3 ? queries : keys);
  }
  expect_near(HostMatrix(context, apply(context)), expected);
}

TEST_F(QueryKeyNorm, Gradients) {
  expect_gradients(context, "query_key_norm", [&](Context& c) { return apply(c); },
                   {{"x", x}, {"query_gamma", query_gamma}, {"key_gamma", key_gamma}});
}

TEST_F(QueryKeyNorm, GradientsOfQueriesAloneAndOfKeysBesideValues) {
  const auto queries = [&](Context& c) { return query_key_norm(c, {.x = x, .query_gamma = query_gamma, .heads = 7}); };
  expect_gradients(context, "query_key_norm", queries, {{"x", x}, {"query_gamma", query_gamma}});
  const auto keys = [&](Context& c) { return query_key_norm(c, {.x = x, .key_gamma = key_gamma, .kv_heads = 3}); };
  expect_gradients(context, "query_key_norm", keys, {{"x", x}, {"key_gamma", key_gamma}});
}

TEST_F(QueryKeyNorm, SaysWhatItWants) {
  expect_error([&] { query_key_norm(context, {.x = x, .query_gamma = query_gamma, .heads = 8}); },
               {"query_key_norm: x has shape [9, 28]; it must hold 8 heads of queries and 0 of keys, each 4 columns wide."});
}

}  // namespace
}  // namespace tilewave
