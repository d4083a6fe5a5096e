// Rotary positions: every pair of every head turns by its row's angle, in place too, and backward turns it back.
#include "kernels/ops/rope.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

// Angles of any kind: what turns is the table's business.
template <class T>
Matrix<T> rotations(std::int64_t positions, std::int64_t head_size) {
  Matrix<T> table(positions, head_size);
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t i = 0; i < head_size / 2; ++i) {
      const double angle = static_cast<double>(p) / static_cast<double>(1 + i);
      table(p, i) = static_cast<T>(std::cos(angle));
      table(p, i + head_size / 2) = static_cast<T>(std::sin(angle));
    }
  }
  return table;
}

template <class T>
class RopeKernel : public ::testing::Test {};
TYPED_TEST_SUITE(RopeKernel, Floats);

TYPED_TEST(RopeKernel, TurnsPairsByTheirRowsPosition) {
  using T = TypeParam;
  Random random(1);
  for (const auto& [rows, heads, d] : {std::tuple{1, 1, 2}, {7, 3, 10}, {300, 2, 64}}) {
    const auto x = Matrix<T>::uniform(rows, heads * d, random), table = rotations<T>(11, d);
    std::vector<std::int32_t> ids;
    for (std::int64_t r = 0; r < rows; ++r) ids.push_back(static_cast<std::int32_t>((7 * r) % 11));
    const auto positions = Matrix<std::int32_t>::row_of(ids);
    for (const int threads : {1, 3}) {
      CpuQueue queue = make_cpu_queue(threads);
      Matrix<T> y(rows, heads * d), in_place = x;
      run(queue, RopeArgs{.x = x.view(), .table = table.view(), .position_ids = positions.view(), .y = y.view()});
      run(queue, RopeArgs{.x = in_place.view(), .table = table.view(), .position_ids = positions.view(), .y = in_place.view()});
      EXPECT_TRUE(same_bits(in_place, y));
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < heads * d; ++c) {
          const std::int64_t i = c % d % (d / 2), first = c / d * d + i;
          const double angle = ids[static_cast<std::size_t>(r)] / static_cast<double>(1 + i);
          const double a = x(r, first), b = x(r, first + d / 2);
          const bool is_first = c % d < d / 2;
          EXPECT_NEAR(y(r, c), is_first ? a * std::cos(angle) - b * std::sin(angle) : b * std::cos(angle) + a * std::sin(angle),
                      4 * epsilon<T>());
        }
      }
      EXPECT_TRUE(y.guards_intact() && in_place.guards_intact());
      run(queue,
          RopeArgs{.x = y.view(), .table = table.view(), .position_ids = positions.view(), .y = y.view(), .rotation = Rotation::backward});
      EXPECT_LE(relative_error(y.values(), x.values()), 4 * epsilon<T>());
    }
  }
}

TEST(RopeContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> x(2, 12), y(2, 12), odd(5, 3), wide(5, 8);
  const auto table = rotations<float>(5, 4);
  const auto ids = Matrix<std::int32_t>::row_of({4, 5}), one = Matrix<std::int32_t>::row_of({4});
  const auto turned = [&](const ConstMatrixView& rotation, const ConstMatrixView& positions) {
    return [&queue, &x, &y, rotation, positions] {
      run(queue, RopeArgs{.x = x.view(), .table = rotation, .position_ids = positions, .y = y.view()});
    };
  };
  expect_error(turned(odd.view(), ids.view()),
               "rope: the table has 3 columns; heads turn in pairs of columns, so their number must be even.");
  expect_error(turned(wide.view(), ids.view()), "rope: x has 12 columns, which are no whole number of heads of 8.");
  expect_error(turned(table.view(), one.view()), "rope: position_ids is i32 [1, 1]; it must be i32 [1, 2].");
  expect_error(turned(table.view(), ids.view()), "rope: row 1 has position 5, and the table of rotations has 5 rows.");
}

}  // namespace
}  // namespace tilewave
