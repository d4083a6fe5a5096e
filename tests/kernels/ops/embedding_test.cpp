// Embedding against its definition; its backward against sums over all rows for every table row.
#include "kernels/ops/embedding.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, vocabulary, positions, d;
};
constexpr Size kSizes[] = {{1, 1, 1, 1}, {17, 5, 7, 3}, {200, 33, 64, 129}, {3000, 11, 50, 40}, {5, 2000, 9, 16}};

template <class T>
struct Problem {
  explicit Problem(Size s) : size(s), ids(1, s.rows), position_ids(1, s.rows) {
    Random random(11);
    table = Matrix<T>::uniform(s.vocabulary, s.d, random);
    positions = Matrix<T>::uniform(s.positions, s.d, random);
    dy = Matrix<T>::uniform(s.rows, s.d, random);
    for (std::int64_t r = 0; r < s.rows; ++r) {
      ids(0, r) = r % 7 == 6 ? -1 : static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(s.vocabulary));
      position_ids(0, r) = static_cast<std::int32_t>(r % s.positions);
    }
  }
  Size size;
  double scale = 2.5;
  Matrix<std::int32_t> ids, position_ids;
  Matrix<T> table{0, 0}, positions{0, 0}, dy{0, 0};
};

template <class T>
Matrix<T> embed(CpuQueue& queue, const Problem<T>& p) {
  Matrix<T> y(p.size.rows, p.size.d);
  run(queue, EmbeddingArgs{.table = p.table.view(),
                           .positions = p.positions.view(),
                           .ids = p.ids.view(),
                           .position_ids = p.position_ids.view(),
                           .scale = p.scale,
                           .y = y.view()});
  return y;
}

template <class T>
struct Gradients {
  Matrix<T> dtable, dpositions;
};

// Adds to the tables' own values with accumulate.
template <class T>
Gradients<T> backward(CpuQueue& queue, const Problem<T>& p, bool accumulate) {
  Gradients<T> g{accumulate ? p.table : Matrix<T>(p.size.vocabulary, p.size.d),
                 accumulate ? p.positions : Matrix<T>(p.size.positions, p.size.d)};
  Matrix<std::int32_t> order(2, embedding_order_cols(p.size.rows, p.size.vocabulary, p.size.positions));
  run(queue, EmbeddingBackwardArgs{.dy = p.dy.view(),
                                   .ids = p.ids.view(),
                                   .position_ids = p.position_ids.view(),
                                   .scale = p.scale,
                                   .dtable = g.dtable.view(),
                                   .accumulate_table = accumulate,
                                   .dpositions = g.dpositions.view(),
                                   .accumulate_positions = accumulate,
                                   .order = order.view()});
  EXPECT_TRUE(order.guards_intact());
  return g;
}

template <class T>
std::vector<double> table_gradient(const Problem<T>& p, const Matrix<std::int32_t>& keys, const Matrix<T>& table, double scale,
                                   bool accumulate) {
  std::vector<double> gradient = table.values();
  if (!accumulate) gradient.assign(gradient.size(), 0.0);
  for (std::int64_t r = 0; r < p.size.rows; ++r) {
    if (p.ids(0, r) < 0) continue;
    for (std::int64_t c = 0; c < p.size.d; ++c) gradient[static_cast<std::size_t>(keys(0, r) * p.size.d + c)] += scale * p.dy(r, c);
  }
  return gradient;
}

template <class T>
class Embedding : public ::testing::Test {};
TYPED_TEST_SUITE(Embedding, Floats);

TYPED_TEST(Embedding, IsItsDefinition) {
  CpuQueue queue = make_cpu_queue(2);
  for (const Size size : kSizes) {
    SCOPED_TRACE(concat(size.rows, " rows of ", size.d));
    const Problem<TypeParam> p(size);
    std::vector<double> expected;
    for (std::int64_t r = 0; r < size.rows; ++r) {
      for (std::int64_t c = 0; c < size.d; ++c) {
        const std::int32_t id = p.ids(0, r);
        expected.push_back(id < 0 ? 0.0 : p.scale * p.table(id, c) + p.positions(p.position_ids(0, r), c));
      }
    }
    const Matrix<TypeParam> y = embed(queue, p);
    expect_close(y, expected, 2);
    for (std::int64_t r = 6; r < size.rows; r += 7) {
      for (std::int64_t c = 0; c < size.d; ++c) EXPECT_EQ(y(r, c), TypeParam(0)) << "padding row " << r;
    }
  }
}

TYPED_TEST(Embedding, BackwardSumsTheRowsOfEachId) {
  CpuQueue queue = make_cpu_queue(2);
  for (const Size size : kSizes) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(concat(size.rows, " rows of ", size.d, accumulate ? ", accumulated" : ""));
      const Problem<TypeParam> p(size);
      const Gradients<TypeParam> actual = backward(queue, p, accumulate);
      expect_close(actual.dtable, table_gradient(p, p.ids, p.table, p.scale, accumulate), size.rows);
      expect_close(actual.dpositions, table_gradient(p, p.position_ids, p.positions, 1.0, accumulate), size.rows);
    }
  }
}

TYPED_TEST(Embedding, BackwardWithoutPositionsWritesTheTableAlone) {
  CpuQueue queue = make_cpu_queue(1);
  const Problem<TypeParam> p({17, 5, 7, 3});
  Matrix<TypeParam> dtable(p.size.vocabulary, p.size.d);
  Matrix<std::int32_t> order(2, embedding_order_cols(p.size.rows, p.size.vocabulary, 0));
  run(queue, EmbeddingBackwardArgs{.dy = p.dy.view(),
                                   .ids = p.ids.view(),
                                   .position_ids = p.position_ids.view(),
                                   .scale = p.scale,
                                   .dtable = dtable.view(),
                                   .order = order.view()});
  EXPECT_TRUE(same_bits(dtable, backward(queue, p, false).dtable));
}

TYPED_TEST(Embedding, ResultsDoNotDependOnTheNumberOfThreads) {
  const Problem<TypeParam> p({3000, 300, 250, 130});
  expect_same_bits_for_every_thread_count<TypeParam>([&](CpuQueue& queue) {
    Gradients<TypeParam> g = backward(queue, p, false);
    return std::vector<Matrix<TypeParam>>{embed(queue, p), g.dtable, g.dpositions};
  });
}

TEST(EmbeddingContract, NamesIdsThatLieInNoTable) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> table = Matrix<float>::filled(5, 2, 0.0F), positions = Matrix<float>::filled(4, 2, 0.0F),
                y = Matrix<float>::filled(3, 2, 0.0F);
  Matrix<std::int32_t> ids = Matrix<std::int32_t>::filled(1, 3, 0), position_ids = Matrix<std::int32_t>::filled(1, 3, 0);
  Matrix<std::int32_t> order(2, embedding_order_cols(3, 5, 4));
  const auto forward = [&] {
    run(queue,
        EmbeddingArgs{
            .table = table.view(), .positions = positions.view(), .ids = ids.view(), .position_ids = position_ids.view(), .y = y.view()});
  };
  const auto backward = [&] {
    run(queue, EmbeddingBackwardArgs{.dy = y.view(),
                                     .ids = ids.view(),
                                     .position_ids = position_ids.view(),
                                     .dtable = table.view(),
                                     .dpositions = positions.view(),
                                     .order = order.view()});
  };
  ids(0, 1) = -1;
  position_ids(0, 1) = 99;  // of a padding row
  ids(0, 2) = 5;
  expect_error(forward, "embedding: row 2 has id 5, and the table has 5 rows.");
  expect_error(backward, "embedding_backward: row 2 has id 5, and the table has 5 rows.");
  ids(0, 2) = 4;
  position_ids(0, 2) = 4;
  expect_error(forward, "embedding: row 2 has position 4, and the table of positions has 4 rows.");
  expect_error(backward, "embedding_backward: row 2 has position 4, and the table of positions has 4 rows.");
  position_ids(0, 2) = 3;
  EXPECT_NO_THROW(forward());
  EXPECT_NO_THROW(backward());
}

TEST(EmbeddingContract, NamesAWorkspaceThatIsTooNarrow) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> dy(3, 2), dtable(5, 2);
  Matrix<std::int32_t> ids(1, 3), position_ids(1, 3), order(2, 9);
  expect_error(
      [&] {
        run(queue,
            EmbeddingBackwardArgs{
                .dy = dy.view(), .ids = ids.view(), .position_ids = position_ids.view(), .dtable = dtable.view(), .order = order.view()});
      },
      "embedding_backward: order is i32 [2, 9]; it must be i32 [2, 10] or wider.");
}

}  // namespace
}  // namespace tilewave
