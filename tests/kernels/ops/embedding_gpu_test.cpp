// The embedding on a GPU against the CPU in double; its backward bit for bit the same whatever the pitch and the run.
#include "kernels/ops/embedding.h"
#include "tests/kernels/gpu_operations.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, vocabulary, positions, d;
};
// Ids that come once, often and never; more rows than one block sorts; columns around a pack and around a block's.
constexpr Size kSizes[] = {{1, 1, 1, 1}, {17, 5, 7, 3}, {200, 33, 64, 129}, {30000, 11, 50, 40}, {5, 2000, 9, 16}, {300, 40, 30, 1032}};

template <class T>
struct Problem {
  explicit Problem(Size s) : size(s), ids(1, s.rows), position_ids(1, s.rows) {
    Random random(11);
    table = Matrix<T>::uniform(s.vocabulary, s.d, random);
    positions = Matrix<T>::uniform(s.positions, s.d, random);
    dy = Matrix<T>::uniform(s.rows, s.d, random);
    dtable = Matrix<Statistics<T>>::uniform(s.vocabulary, s.d, random);
    dpositions = Matrix<Statistics<T>>::uniform(s.positions, s.d, random);
    for (std::int64_t r = 0; r < s.rows; ++r) {
      ids(0, r) = r % 7 == 6 ? -1 : static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(s.vocabulary));
      position_ids(0, r) = static_cast<std::int32_t>(r % s.positions);
    }
  }
  Size size;
  Matrix<std::int32_t> ids, position_ids;
  Matrix<T> table{0, 0}, positions{0, 0}, dy{0, 0};
  Matrix<Statistics<T>> dtable{0, 0}, dpositions{0, 0};
};

constexpr double kScale = 2.5;

struct Results {
  std::vector<double> y, dtable, dpositions;
};

Results on_cpu(CpuQueue& queue, const Problem<double>& p, bool accumulate) {
  Matrix<double> y(p.size.rows, p.size.d), dtable = p.dtable, dpositions = p.dpositions;
  Matrix<std::int32_t> order(2, embedding_order_cols(p.size.rows, p.size.vocabulary, p.size.positions));
  run(queue, EmbeddingArgs{.table = p.table.view(),
                           .positions = p.positions.view(),
                           .ids = p.ids.view(),
                           .position_ids = p.position_ids.view(),
                           .scale = kScale,
                           .y = y.view()});
  run(queue, EmbeddingBackwardArgs{.dy = p.dy.view(),
                                   .ids = p.ids.view(),
                                   .position_ids = p.position_ids.view(),
                                   .scale = kScale,
                                   .dtable = dtable.view(),
                                   .accumulate_table = accumulate,
                                   .dpositions = dpositions.view(),
                                   .accumulate_positions = accumulate,
                                   .order = order.view()});
  return {y.values(), dtable.values(), dpositions.values()};
}

template <class T>
Results on_gpu(Queue& queue, const Problem<T>& p, bool accumulate, Pitch pitch) {
  using A = Statistics<T>;
  const Size& s = p.size;
  Twin<T> table(queue, p.table, pitch), positions(queue, p.positions, pitch), dy(queue, p.dy, pitch), y(queue, s.rows, s.d, pitch);
  Twin<std::int32_t> ids(queue, p.ids), position_ids(queue, p.position_ids), sort(queue, 1, embedding_sort_cols(s.rows)),
      order(queue, 2, embedding_order_cols(s.rows, s.vocabulary, s.positions));
  Twin<A> dtable = accumulate ? Twin<A>(queue, p.dtable, pitch) : Twin<A>(queue, s.vocabulary, s.d, pitch);
  Twin<A> dpositions = accumulate ? Twin<A>(queue, p.dpositions, pitch) : Twin<A>(queue, s.positions, s.d, pitch);
  run(queue, EmbeddingArgs{.table = table.view(),
                           .positions = positions.view(),
                           .ids = ids.view(),
                           .position_ids = position_ids.view(),
                           .scale = kScale,
                           .y = y.view()});
  run(queue, EmbeddingBackwardArgs{.dy = dy.view(),
                                   .ids = ids.view(),
                                   .position_ids = position_ids.view(),
                                   .scale = kScale,
                                   .dtable = dtable.view(),
                                   .accumulate_table = accumulate,
                                   .dpositions = dpositions.view(),
                                   .accumulate_positions = accumulate,
                                   .order = order.view(),
                                   .sort = sort.view()});
  EXPECT_TRUE(y.fetch().guards_intact() && dtable.fetch().guards_intact() && dpositions.fetch().guards_intact());
  EXPECT_TRUE(order.fetch().guards_intact() && sort.fetch().guards_intact());
  return {y.fetch().values(), dtable.fetch().values(), dpositions.fetch().values()};
}

template <class T>
class GpuEmbedding : public GpuOperation<T> {};
TYPED_TEST_SUITE(GpuEmbedding, DeviceFloats);

TYPED_TEST(GpuEmbedding, IsTheCpus) {
  using T = TypeParam;
  CpuQueue cpu = make_cpu_queue(2);
  for (const Size size : kSizes) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(concat(size.rows, " rows of ", size.d, accumulate ? ", accumulated" : ""));
      const Problem<T> p(size);
      Problem<double> wide(size);
      wide.table = converted<double>(p.table);
      wide.positions = converted<double>(p.positions);
      wide.dy = converted<double>(p.dy);
      wide.dtable = converted<double>(p.dtable);
      wide.dpositions = converted<double>(p.dpositions);
      const Results expected = on_cpu(cpu, wide, accumulate), odd = on_gpu(this->queue_, p, accumulate, Pitch::odd),
                    aligned = on_gpu(this->queue_, p, accumulate, Pitch::aligned);
      ASSERT_GT(norm(expected.y) * norm(expected.dtable) * norm(expected.dpositions), 0.0);
      EXPECT_LE(relative_error(odd.y, expected.y), rounding<T>(2));
      EXPECT_LE(relative_error(odd.dtable, expected.dtable), tolerance<Statistics<T>>(size.rows));
      EXPECT_LE(relative_error(odd.dpositions, expected.dpositions), tolerance<Statistics<T>>(size.rows));
      EXPECT_EQ(odd.y, aligned.y);
      EXPECT_EQ(odd.dtable, aligned.dtable) << "bits depend on the pitch";
      EXPECT_EQ(odd.dpositions, aligned.dpositions) << "bits depend on the pitch";
      EXPECT_EQ(on_gpu(this->queue_, p, accumulate, Pitch::odd).dtable, odd.dtable) << "bits differ from run to run";
    }
  }
}

TYPED_TEST(GpuEmbedding, WithoutPositionsIsTheTokensRow) {
  using T = TypeParam;
  CpuQueue cpu = make_cpu_queue(2);
  for (const Size size : kSizes) {
    const Problem<T> p(size);
    const Matrix<double> table = converted<double>(p.table);
    Matrix<double> expected(size.rows, size.d);
    run(cpu, EmbeddingArgs{.table = table.view(),
                           .positions = {},
                           .ids = p.ids.view(),
                           .position_ids = p.position_ids.view(),
                           .scale = kScale,
                           .y = expected.view()});
    Twin<T> device_table(this->queue_, p.table), y(this->queue_, size.rows, size.d);
    Twin<std::int32_t> ids(this->queue_, p.ids), position_ids(this->queue_, p.position_ids);
    run(this->queue_, EmbeddingArgs{.table = device_table.view(),
                                    .positions = {},
                                    .ids = ids.view(),
                                    .position_ids = position_ids.view(),
                                    .scale = kScale,
                                    .y = y.view()});
    expect_rounded(y.fetch(), expected.values(), 1);
  }
}

// Runs of equal ids as long as a warp sums, and longer and shorter by one; such that start, end and cross where a warp's 4 places and a
// block's 256 end, and one row before and after; an id that all rows have; ids that none has; padding rows between them.
TYPED_TEST(GpuEmbedding, BackwardOfEveryRun) {
  using T = TypeParam;
  CpuQueue cpu = make_cpu_queue(2);
  struct Runs {
    std::vector<std::int64_t> lengths;
    std::int64_t padding_rows = 0;
  };
  const std::vector<Runs> cases = {{{31, 2, 30, 1, 33, 31, 64, 0, 32, 1}, 3},
                                   {{32, 32, 33, 1, 30, 34, 16, 47, 129, 127}, 0},
                                   {{1, 63, 64, 65, 15, 17, 128, 144, 1}, 40},
                                   {{255, 33, 32, 3, 1}, 0},
                                   {{256, 33, 1, 4}, 2},
                                   {{257, 32, 2}, 0},
                                   {{222, 33, 34, 31, 5}, 0},
                                   {{0, 2000, 0}, 1},
                                   {{0, 0, 0, 0, 7}, 500},
                                   {{3}, 0},
                                   {{4000, 33, 4159}, 0},        // as many rows as are ranked
                                   {{5000, 1, 0, 31, 3161}, 0},  // one more
                                   {{100, 9000, 32, 1}, 50}};
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const auto& [lengths, padding_rows] = cases[c];
    std::vector<std::int32_t> shuffled(static_cast<std::size_t>(padding_rows), -1);
    for (std::size_t id = 0; id < lengths.size(); ++id)
      shuffled.insert(shuffled.end(), static_cast<std::size_t>(lengths[id]), static_cast<std::int32_t>(id));
    std::mt19937_64 random(5 + c);
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const auto rows = static_cast<std::int64_t>(shuffled.size()), vocabulary = static_cast<std::int64_t>(lengths.size());
    Problem<T> p({rows, vocabulary, 3, c % 2 == 0 ? 136 : 21});
    Problem<double> wide(p.size);
    p.ids = Matrix<std::int32_t>::row_of(shuffled);
    wide.ids = Matrix<std::int32_t>::row_of(shuffled);
    wide.dy = converted<double>(p.dy);
    wide.dtable = converted<double>(p.dtable);
    wide.dpositions = converted<double>(p.dpositions);
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(concat("case ", c, ", ", rows, " rows", accumulate ? ", accumulated" : ""));
      const Results expected = on_cpu(cpu, wide, accumulate), odd = on_gpu(this->queue_, p, accumulate, Pitch::odd),
                    aligned = on_gpu(this->queue_, p, accumulate, Pitch::aligned);
      ASSERT_GT(norm(expected.dtable) * norm(expected.dpositions), 0.0);
      EXPECT_LE(relative_error(odd.dtable, expected.dtable), tolerance<Statistics<T>>(rows));
      EXPECT_LE(relative_error(odd.dpositions, expected.dpositions), tolerance<Statistics<T>>(rows));
      EXPECT_EQ(odd.dtable, aligned.dtable) << "bits depend on the pitch";
      EXPECT_EQ(odd.dpositions, aligned.dpositions) << "bits depend on the pitch";
      EXPECT_EQ(on_gpu(this->queue_, p, accumulate, Pitch::aligned).dtable, aligned.dtable) << "bits differ from run to run";
    }
  }
}

// Other ids' rows, padding rows among them, may come and go: they move a run in the sorted order and change none of its bits, whichever
// way the rows are sorted.
TYPED_TEST(GpuEmbedding, ASumFollowsFromItsOwnRowsAlone) {
  using T = TypeParam;
  constexpr std::int64_t kOwn = 333, kColumns = 40, kId = 6;
  Random random(9);
  const auto own = Matrix<T>::uniform(kOwn, kColumns, random);
  std::vector<double> first;
  for (const std::int64_t others : {0, 1, 17, 300, 9000}) {
    const std::int64_t rows = kOwn + others;
    Problem<T> p({rows, 12, 2, kColumns});
    std::vector<std::int32_t> ids;
    for (std::int64_t r = 0, next = 0; r < rows; ++r) {
      const bool is_own = next < kOwn && (rows - r == kOwn - next || r % 2 == 0);
      ids.push_back(is_own ? static_cast<std::int32_t>(kId) : static_cast<std::int32_t>(r % 5) - 1);
      if (!is_own) continue;
      for (std::int64_t column = 0; column < kColumns; ++column) p.dy(r, column) = own(next, column);
      ++next;
    }
    p.ids = Matrix<std::int32_t>::row_of(ids);
    const Results results = on_gpu(this->queue_, p, false, Pitch::aligned);
    const std::vector<double> sum(results.dtable.begin() + kId * kColumns, results.dtable.begin() + (kId + 1) * kColumns);
    if (first.empty()) first = sum;
    EXPECT_EQ(sum, first) << others << " other rows";
  }
  EXPECT_GT(norm(first), 0.0);
}

// Whole numbers add up exactly in any order, so that all bits are known: of rows that all have one id or each its own, with padding rows
// and without, under a vocabulary with more rows than there are ids, which stay zero or what they were.
TYPED_TEST(GpuEmbedding, BackwardOfWholeNumbersIsExact) {
  using T = TypeParam;
  constexpr std::int64_t kColumns = 40, kPadded = 8;
  enum class Ids : std::uint8_t { equal, distinct };
  for (const std::int64_t rows : {1, 40, 5120, 9000}) {  // the last are more than are ranked
    for (const Ids ids : {Ids::equal, Ids::distinct}) {
      for (const bool accumulate : {false, true}) {
        for (const std::int64_t padding_every : {0, 3}) {
          SCOPED_TRACE(concat(rows, ids == Ids::equal ? " rows of one id" : " rows of distinct ids", accumulate ? ", accumulated" : "",
                              padding_every > 0 ? ", with padding rows" : ""));
          const std::int64_t vocabulary = (ids == Ids::equal ? 1 : rows) + kPadded;
          Problem<T> p({rows, vocabulary, 2, kColumns});
          const auto whole = [](std::int64_t a, std::int64_t b) { return static_cast<double>((a * 5 + b * 3) % 15 - 7); };
          std::vector<double> expected;
          for (std::int64_t v = 0; v < vocabulary; ++v) {
            for (std::int64_t column = 0; column < kColumns; ++column) {
              p.dtable(v, column) = from_double<Statistics<T>>(whole(v, column));
              expected.push_back(accumulate ? whole(v, column) : 0.0);
            }
          }
          for (std::int64_t r = 0; r < rows; ++r) {
            const bool is_padding = padding_every > 0 && r % padding_every == 2;
            const std::int64_t id = ids == Ids::equal ? 0 : rows - 1 - r;
            p.ids(0, r) = is_padding ? -1 : static_cast<std::int32_t>(id);
            for (std::int64_t column = 0; column < kColumns; ++column) {
              p.dy(r, column) = from_double<T>(whole(r + 1, column));
              if (!is_padding) expected[static_cast<std::size_t>(id * kColumns + column)] += kScale * whole(r + 1, column);
            }
          }
          ASSERT_GT(norm(expected), 0.0);
          EXPECT_EQ(on_gpu(this->queue_, p, accumulate, Pitch::odd).dtable, expected);
          EXPECT_EQ(on_gpu(this->queue_, p, accumulate, Pitch::aligned).dtable, expected);
        }
      }
    }
  }
}

class GpuEmbeddingContract : public GpuTest {};

TEST_F(GpuEmbeddingContract, NamesAMissingWorkspace) {
  const Problem<float> p({3, 4, 5, 6});
  Twin<float> dy(queue_, p.dy), dtable(queue_, p.dtable);
  Twin<std::int32_t> ids(queue_, p.ids), order(queue_, 2, embedding_order_cols(3, 4, 0));
  expect_error(
      [&] {
        run(queue_, EmbeddingBackwardArgs{
                        .dy = dy.view(), .ids = ids.view(), .position_ids = ids.view(), .dtable = dtable.view(), .order = order.view()});
      },
      "on a GPU it must be i32 [1, 65554] or wider.");
}

}  // namespace
}  // namespace tilewave
