// What collectives promise, asked of ranks of either back end: every rank's numbers are known to all, so that each holds what it has in the
// end against all of them. Sizes are off every multiple.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "kernels/core/communicator.h"
#include "kernels/ops/collective.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/support.h"

namespace tilewave::testing_support {

struct RankQueue {
  Queue queue;
  Communicator ranks;
};

// What a rank brings: integers where they are to be summed without rounding.
template <class T>
Matrix<T> numbers_of_rank(int rank, std::int64_t rows, std::int64_t cols) {
  Random random(static_cast<std::uint64_t>(std::int64_t{1000} * rank + rows + cols));
  Matrix<T> numbers(rows, cols, 0);
  std::uniform_real_distribution<double> fraction(-1.0, 1.0);
  std::uniform_int_distribution<int> whole(-100000, 100000);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      numbers(r, c) = std::is_integral_v<T> ? from_double<T>(whole(random)) : from_double<T>(fraction(random));
    }
  }
  return numbers;
}

template <class T>
std::vector<double> sums_of_ranks(int count, std::int64_t rows, std::int64_t cols) {
  std::vector<double> sums(static_cast<std::size_t>(rows * cols));
  for (int rank = 0; rank < count; ++rank) {
    const std::vector<double> values = numbers_of_rank<T>(rank, rows, cols).values();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  }
  return sums;
}

template <class T>
void expect_sum(const Matrix<T>& actual, const std::vector<double>& expected, int count) {
  EXPECT_TRUE(actual.guards_intact());
  if constexpr (std::is_integral_v<T>) {
    EXPECT_EQ(actual.values(), expected);
  } else {
    EXPECT_LE(relative_error(actual.values(), expected), tolerance<T>(count));
  }
}

template <class T>
std::string bytes_of(const Matrix<T>& matrix) {
  return std::string(reinterpret_cast<const char*>(matrix.view().data), static_cast<std::size_t>(matrix.view().bytes()));
}

// In place, the same bits on every rank and each time.
template <class T>
void expect_all_reduce(RankQueue& own) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 2}, {1, 5}, {3, 7}, {1, 1001}, {129, 1025}}) {
    std::string first;
    for (int time = 0; time < 2; ++time) {
      Matrix<T> x = numbers_of_rank<T>(own.ranks.rank, rows, cols);
      OnDevice<T> device(own.queue, x);
      run(own.queue, AllReduceArgs{.x = device.view(), .ranks = own.ranks});
      device.fetch();
      expect_sum(x, sums_of_ranks<T>(own.ranks.count, rows, cols), own.ranks.count);
      if (time == 0) first = bytes_of(x);
      EXPECT_EQ(bytes_of(x), first) << rows << " x " << cols << ": another time other bits";
      for (const std::string& other : exchange(own.queue, own.ranks, bytes_of(x))) {
        EXPECT_EQ(other, first) << rows << " x " << cols << ": other bits on another rank";
      }
    }
  }
}

// Into other memory and into the rank's own columns, which have the same bits.
template <class T>
void expect_reduce_scatter(RankQueue& own) {
  const int count = own.ranks.count, rank = own.ranks.rank;
  for (const std::int64_t share : {1, 3, 1001, 65537}) {
    Matrix<T> x = numbers_of_rank<T>(rank, 1, count * share), y(1, share, 0), part(1, share, 0);
    const std::string before = bytes_of(x);
    OnDevice<T> whole(own.queue, x), apart(own.queue, y);
    run(own.queue, ReduceScatterArgs{.x = whole.view(), .y = apart.view(), .ranks = own.ranks});
    apart.fetch();
    whole.fetch();
    EXPECT_EQ(bytes_of(x), before) << "x is read alone";
    const std::vector<double> sums = sums_of_ranks<T>(count, 1, count * share);
    expect_sum(y, {sums.begin() + rank * share, sums.begin() + (rank + 1) * share}, count);

    const MatrixView all = whole.view();
    const MatrixView columns = {.data = all.row<T>(0) + rank * share, .rows = 1, .cols = share, .ld = share, .dtype = all.dtype};
    run(own.queue, ReduceScatterArgs{.x = all, .y = columns, .ranks = own.ranks});
    whole.fetch();
    std::memcpy(&part(0, 0), &x(0, rank * share), static_cast<std::size_t>(y.view().bytes()));
    EXPECT_TRUE(same_bits(part, y)) << share;
    EXPECT_TRUE(x.guards_intact());
  }
}

// From other memory and from the rank's own columns.
template <class T>
void expect_all_gather(RankQueue& own) {
  const int count = own.ranks.count, rank = own.ranks.rank;
  for (const std::int64_t share : {1, 3, 1001, 65537}) {
    std::string expected;
    for (int r = 0; r < count; ++r) expected += bytes_of(numbers_of_rank<T>(r, 1, share));
    Matrix<T> x = numbers_of_rank<T>(rank, 1, share), y(1, count * share, 0), in_place(1, count * share, 0);
    std::memcpy(&in_place(0, rank * share), &x(0, 0), static_cast<std::size_t>(x.view().bytes()));
    OnDevice<T> own_share(own.queue, x), whole(own.queue, y), own_columns(own.queue, in_place);
    run(own.queue, AllGatherArgs{.x = own_share.view(), .y = whole.view(), .ranks = own.ranks});
    const MatrixView all = own_columns.view();
    const ConstMatrixView columns(all.row<T>(0) + rank * share, 1, share, share, all.dtype);
    run(own.queue, AllGatherArgs{.x = columns, .y = all, .ranks = own.ranks});
    for (OnDevice<T>* const device : {&whole, &own_columns}) device->fetch();
    EXPECT_EQ(bytes_of(y), expected) << share;
    EXPECT_EQ(bytes_of(in_place), expected) << share;
    EXPECT_TRUE(y.guards_intact() && in_place.guards_intact());
  }
}

template <class T>
void expect_broadcast(RankQueue& own) {
  for (int root = 0; root < own.ranks.count; ++root) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {129, 1025}}) {
      Matrix<T> x = numbers_of_rank<T>(own.ranks.rank, rows, cols);
      OnDevice<T> device(own.queue, x);
      run(own.queue, BroadcastArgs{.x = device.view(), .root = root, .ranks = own.ranks});
      device.fetch();
      EXPECT_TRUE(same_bits(x, numbers_of_rank<T>(root, rows, cols)));
    }
  }
}

// Of nothing there is nothing to do, and nobody to wait for.
inline void expect_nothing_of_nothing(RankQueue& own) {
  const MatrixView none = {.rows = 1};
  run(own.queue, AllReduceArgs{.x = none, .ranks = own.ranks});
  run(own.queue, ReduceScatterArgs{.x = none, .y = none, .ranks = own.ranks});
  run(own.queue, AllGatherArgs{.x = none, .y = none, .ranks = own.ranks});
  run(own.queue, BroadcastArgs{.x = none, .ranks = own.ranks});
}

// What hosts say: of all lengths, with every byte, or nothing at all; and no log has it.
inline void expect_exchange(RankQueue& own) {
  const auto words_of = [](int rank) {
    std::string words(static_cast<std::size_t>(7 * rank * rank), 'x');
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<char>(41 * i + static_cast<std::size_t>(rank));
    return words;  // of rank 0 none
  };
  Trace log;
  log_of(own.queue) = &log;
  const std::vector<std::string> all = exchange(own.queue, own.ranks, words_of(own.ranks.rank));
  const std::vector<std::string> silent = exchange(own.queue, own.ranks, "");
  log_of(own.queue) = nullptr;
  ASSERT_EQ(static_cast<int>(all.size()), own.ranks.count);
  for (int rank = 0; rank < own.ranks.count; ++rank) EXPECT_EQ(all[static_cast<std::size_t>(rank)], words_of(rank)) << rank;
  EXPECT_EQ(silent, std::vector<std::string>(static_cast<std::size_t>(own.ranks.count)));
  EXPECT_EQ(log.launches(), 0);
}

}  // namespace tilewave::testing_support
