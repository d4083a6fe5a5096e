// Token embedding: formula, repeated tokens, padding rows, learned and sinusoidal positions, gradients, and a tied table.
#include "framework/ops/embedding.h"

#include "framework/ops/linear.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr double kScale = 1.7;

class Embedding : public Fp64Test {
 protected:
  Variable apply(Context& c, const Variable& positions_table) {
    return embedding(c, {.table = table, .positions = positions_table, .ids = ids, .position_ids = position_ids, .scale = kScale});
  }

  const Variable table = leaf({6, 4}, 1), positions = leaf({5, 4}, 2);
  const std::vector<std::int32_t> tokens = {3, 0, 3, 5, -1, 3, -1}, places = {0, 1, 2, 0, 0, 1, 0};  // two sequences and padding rows
  const Tensor ids = ids_of(tokens), position_ids = ids_of(places);
};

TEST_F(Embedding, FollowsItsFormula) {
  const HostMatrix rows(context, table), offsets(context, positions);
  HostMatrix expected(7, 4);
  for (std::int64_t r = 0; r < 7; ++r) {
    const std::size_t row = static_cast<std::size_t>(r);
    if (tokens[row] < 0) continue;
    for (std::int64_t c = 0; c < 4; ++c) expected(r, c) = kScale * rows(tokens[row], c) + offsets(places[row], c);
  }
  expect_near(HostMatrix(context, apply(context, positions)), expected);
}

TEST_F(Embedding, WithoutPositionsIsTheTokensRow) {
  const HostMatrix rows(context, table);
  HostMatrix expected(7, 4);
  for (std::int64_t r = 0; r < 7; ++r) {
    const std::int32_t token = tokens[static_cast<std::size_t>(r)];
    for (std::int64_t c = 0; token >= 0 && c < 4; ++c) expected(r, c) = kScale * rows(token, c);
  }
  expect_near(HostMatrix(context, apply(context, Variable())), expected);
  expect_gradients(context, "embedding", [&](Context& c) { return apply(c, Variable()); }, {{"table", table}});
}

TEST_F(Embedding, Gradients) {
  expect_gradients(context, "embedding", [&](Context& c) { return apply(c, positions); }, {{"table", table}, {"positions", positions}});
}

TEST_F(Embedding, GradientOfTheTableAlone) {
  const Variable constant(sinusoidal_positions(context, 5, 4, DType::f64));
  expect_gradients(context, "embedding", [&](Context& c) { return apply(c, constant); }, {{"table", table}});
}

TEST_F(Embedding, GradientsOfATiedTable) {
  const auto tied = [&](Context& c) { return linear(c, {.x = apply(c, positions), .weight = table}); };
  expect_gradients(context, "embedding", tied, {{"table", table}, {"positions", positions}});
}

TEST_F(Embedding, GradientsOfTwoReaders) {
  const auto twice = [&](Context& c) {
    return linear(c, {.x = apply(c, positions), .weight = table, .residual = linear(c, {.x = apply(c, positions), .weight = table})});
  };
  expect_gradients(context, "embedding", twice, {{"table", table}, {"positions", positions}});
}

TEST_F(Embedding, SinusoidalPositionsFollowTheirFormula) {
  HostMatrix expected(9, 5);
  for (std::int64_t position = 0; position < 9; ++position) {
    for (std::int64_t c = 0; c < 5; ++c) {
      const double angle = static_cast<double>(position) / std::pow(10000.0, 2.0 * static_cast<double>(c / 2) / 5.0);
      expected(position, c) = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  expect_near(HostMatrix(context, sinusoidal_positions(context, 9, 5, DType::f64)), expected);
}

TEST_F(Embedding, NamesBothShapes) {
  expect_error([&] { apply(context, leaf({5, 3}, 3)); }, {"embedding", "[6, 4]", "[5, 3]"});
  expect_error(
      [&] {
        embedding(context, {.table = table, .positions = positions, .ids = ids, .position_ids = ids_of({1, 2})});
      },
      {"embedding: the ids", "[1, 7]", "[1, 2]"});
}

}  // namespace
}  // namespace tilewave
