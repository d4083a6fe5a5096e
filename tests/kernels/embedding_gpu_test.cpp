// The embedding on a GPU against the CPU in double; its backward bit for bit the same whatever the pitch and the run.
#include "kernels/embedding.h"
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
      SCOPED_TRACE(sentence(size.rows, " rows of ", size.d, accumulate ? ", accumulated" : ""));
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
