// Collectives of a rank alone, what they ask of their arguments and what a trace says of them; and those of 1 to 4 ranks on this CPU, which
// mpirun starts as processes of this program.
#include "kernels/ops/collective.h"

#include <cstdlib>

#include "kernels/core/device_profiles.h"
#include "kernels/cpu/core/mpi.h"
#include "kernels/gemm/cost/operation_time.h"
#include "tests/kernels/ranks.h"
#include "tests/repository_root.h"
#include "tests/sanitized.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class... Types, class Fn>
void for_types(const Fn& fn) {
  (fn(Types{}), ...);
}

TEST(Collective, OfARankAloneCopies) {
  RankQueue own = {.queue = make_cpu_queue(2), .ranks = {}};
  for_types<float, double, std::int32_t>([&]<class T>(T) {
    expect_all_reduce<T>(own);
    expect_reduce_scatter<T>(own);
  });
  for_types<float, double, std::int32_t, bf16, f16>([&]<class T>(T) {
    expect_all_gather<T>(own);
    expect_broadcast<T>(own);
  });
  expect_exchange(own);
  expect_nothing_of_nothing(own);
}

Communicator rank_of(int rank, int count) { return {.rank = rank, .count = count, .mpi = nullptr, .nccl = nullptr}; }

TEST(CollectiveContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  Matrix<float> gap(3, 5, 2), row(1, 12, 0), share(1, 4, 0), other(1, 5, 0);
  const Communicator third = rank_of(1, 3);
  expect_error([&] { check(AllReduceArgs{.x = gap.view(), .ranks = third}); },
               "all_reduce: x has rows of 5 elements that lie 7 apart; ranks exchange memory without gaps");
  expect_error([&] { check(AllReduceArgs{.x = {.rows = 1, .cols = 3}, .ranks = third}); }, "all_reduce: x is absent.");
  expect_error([&] { check(AllReduceArgs{.x = row.view(), .ranks = rank_of(3, 3)}); }, "all_reduce: there is no rank 3 of 3");
  expect_error([&] { check(BroadcastArgs{.x = gap.view(), .ranks = third}); }, "broadcast: x has rows of 5 elements");
  expect_error([&] { check(BroadcastArgs{.x = row.view(), .root = 3, .ranks = third}); },
               "broadcast: there is no rank 3 of 3 to take x from");
  expect_error([&] { check(ReduceScatterArgs{.x = other.view(), .y = share.view(), .ranks = third}); },
               "reduce_scatter: x is f32 [1, 5], which 3 ranks do not divide; pad it to 6 columns.");
  expect_error([&] { check(ReduceScatterArgs{.x = row.view(), .y = other.view(), .ranks = third}); },
               "reduce_scatter: y is f32 [1, 5]; it must be f32 [1, 4].");
  expect_error([&] { check(AllGatherArgs{.x = other.view(), .y = row.view(), .ranks = third}); },
               "all_gather: x is f32 [1, 5]; it must be f32 [1, 4].");
  expect_error([&] { check(AllGatherArgs{.x = Matrix<double>(1, 4, 0).view(), .y = row.view(), .ranks = third}); },
               "all_gather: x is f64 [1, 4]; it must be f32 [1, 4].");
  const auto columns = [&](std::int64_t first) {
    return MatrixView{.data = &row(0, first), .rows = 1, .cols = 4, .ld = 4, .dtype = DType::f32};
  };
  check(ReduceScatterArgs{.x = row.view(), .y = columns(4), .ranks = third});
  check(AllGatherArgs{.x = columns(4), .y = row.view(), .ranks = third});
  expect_error([&] { check(ReduceScatterArgs{.x = row.view(), .y = columns(3), .ranks = third}); },
               "reduce_scatter: y overlaps x elsewhere than at columns 4 to 8, which are rank 1's");
  expect_error([&] { check(AllGatherArgs{.x = columns(0), .y = row.view(), .ranks = third}); },
               "all_gather: x overlaps y elsewhere than at columns 4 to 8, which are rank 1's");
  Matrix<f16> half(1, 4, 0);
  expect_error([&] { run(queue, AllReduceArgs{.x = half.view(), .ranks = third}); },
               "all_reduce: ranks on CPUs sum f32, f64, bf16 and i32, not f16; convert to f32 first");
  expect_error([&] { run(queue, AllReduceArgs{.x = row.view(), .ranks = third}); },
               "all_reduce: 3 ranks on CPUs speak MPI, and these do not; take those of join_mpi()");
}

// No library is needed to trace what any number of ranks would do.
TEST(CollectiveTrace, SaysWhatGoesOverTheLinks) {
  Trace log;
  Queue queue = TraceQueue{.log = &log};
  Matrix<float> whole(1, 4000, 0), share(1, 1000, 0);
  const Communicator ranks = rank_of(2, 4);
  run(queue, AllReduceArgs{.x = whole.view(), .ranks = ranks});
  run(queue, ReduceScatterArgs{.x = whole.view(), .y = share.view(), .ranks = ranks});
  run(queue, AllGatherArgs{.x = share.view(), .y = whole.view(), .ranks = ranks});
  run(queue, BroadcastArgs{.x = whole.view(), .ranks = ranks});
  run(queue, AllReduceArgs{.x = whole.view(), .ranks = {}});
  ASSERT_EQ(log.entries.size(), 5U);
  const auto expect = [&](std::size_t at, std::string_view operation, const Cost& cost, const CollectiveWork& work) {
    const TraceEntry& entry = log.entries[at];
    EXPECT_EQ(entry.operation, operation);
    EXPECT_EQ(entry.cost, cost) << operation;
    EXPECT_EQ(entry.collective, work) << operation;
  };
  using enum CollectiveKind;
  expect(0, "all_reduce", {.flops = 3000, .bytes = 32000}, {.kind = all_reduce, .bytes = 16000, .ranks = 4});
  expect(1, "reduce_scatter", {.flops = 3000, .bytes = 20000}, {.kind = reduce_scatter, .bytes = 16000, .ranks = 4});
  expect(2, "all_gather", {.flops = 0, .bytes = 20000}, {.kind = all_gather, .bytes = 16000, .ranks = 4});
  expect(3, "broadcast", {.flops = 0, .bytes = 16000}, {.kind = broadcast, .bytes = 16000, .ranks = 4});
  expect(4, "all_reduce", {}, {.kind = all_reduce, .bytes = 16000, .ranks = 1});
  expect_error([&] { exchange(queue, ranks, "a"); }, "exchange: 4 ranks have nothing to say to each other in a trace");
  EXPECT_EQ(exchange(queue, {}, "a"), std::vector<std::string>{"a"});
  Queue other = make_cpu_queue(1);
  follow(queue, other);
  follow(other, queue);
}

// A rank's part of this program, which mpirun starts.
class RanksOfMpi : public ::testing::Test {
 protected:
  static const Communicator& all() {
    static const Communicator ranks = join_mpi();
    return ranks;
  }
  void SetUp() override {
    if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) GTEST_SKIP() << "MpiRun.* starts it, a process for each rank";
    own_.ranks = all();
    EXPECT_EQ(std::to_string(own_.ranks.count), std::getenv("OMPI_COMM_WORLD_SIZE"));
    EXPECT_EQ(std::to_string(own_.ranks.rank), std::getenv("OMPI_COMM_WORLD_RANK"));
  }

  RankQueue own_ = {.queue = make_cpu_queue(1), .ranks = {}};
};

TEST_F(RanksOfMpi, SumToTheSameBitsEverywhere) {
  for_types<float, double, std::int32_t, bf16>([&]<class T>(T) {
    expect_all_reduce<T>(own_);
    expect_reduce_scatter<T>(own_);
  });
}

// What MPI does not know: added up in fp32, in the order of ranks, and rounded once.
TEST_F(RanksOfMpi, SumBf16InFp32) {
  constexpr std::int64_t kCols = 2500;  // more than are added up at a time
  Matrix<bf16> x = numbers_of_rank<bf16>(own_.ranks.rank, 1, kCols);
  run(own_.queue, AllReduceArgs{.x = x.view(), .ranks = own_.ranks});
  std::vector<float> sums(kCols);
  for (int rank = 0; rank < own_.ranks.count; ++rank) {
    const std::vector<double> theirs = numbers_of_rank<bf16>(rank, 1, kCols).values();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(theirs[i]);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ASSERT_EQ(x.values()[i], static_cast<double>(static_cast<float>(bf16(sums[i])))) << i;
  }
}

TEST_F(RanksOfMpi, GatherAndBroadcastAnyType) {
  for_types<float, double, std::int32_t, bf16, f16>([&]<class T>(T) {
    expect_all_gather<T>(own_);
    expect_broadcast<T>(own_);
  });
}

TEST_F(RanksOfMpi, SayWhatTheyHaveToSay) {
  expect_exchange(own_);
  expect_nothing_of_nothing(own_);
}

TEST_F(RanksOfMpi, TakeWhatMpiCannotCountInPieces) {
  own_.ranks = join_mpi();
  own_.ranks.mpi->most = 20001;
  expect_all_reduce<double>(own_);
  expect_reduce_scatter<float>(own_);
  expect_all_reduce<bf16>(own_);
  expect_reduce_scatter<bf16>(own_);
  expect_all_gather<bf16>(own_);
  expect_broadcast<std::int32_t>(own_);
}

// The others wait in vain, and the process that threw does not wait for them.
class RanksOfMpiWhereOneFails : public RanksOfMpi {};
TEST_F(RanksOfMpiWhereOneFails, End) {
  const Communicator ranks = join_mpi();
  TW_CHECK(ranks.rank != ranks.count - 1, "the last rank fails.");
  Matrix<float> x(1, 1, 0);
  for (;;) run(own_.queue, AllReduceArgs{.x = x.view(), .ranks = ranks});
}

class MpiRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (shell("mpirun --version", "/").status != 0)
      GTEST_SKIP() << "there is no mpirun: ranks on CPUs were NOT tried (apt-get install openmpi-bin)";
    if (const FoundLibrary mpi = find_mpi(); mpi.path.empty()) GTEST_SKIP() << mpi.refused << " Ranks on CPUs were NOT tried.";
  }

  // As many processes of this program, for at most two minutes; each runs all that is asked, whatever share of the tests this one has.
  // Open MPI keeps memory until a process ends, which no sanitizer is to count.
  static Outcome ranks(int count, const std::string& tests) {
    const std::string program = std::filesystem::canonical("/proc/self/exe").string();
    return shell(concat(kSanitized ? "export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0; " : "",
                        "unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX; timeout 120 mpirun -n ", count,
                        " --oversubscribe --allow-run-as-root ", quoted(program), " --data ",
                        quoted(std::filesystem::absolute(test_environment().data).string()), " --gtest_filter=", quoted(tests)),
                 "/");
  }
};

TEST_F(MpiRun, OneToFourRanks) {
  for (const int count : {1, 2, 3, 4}) {
    const Outcome outcome = ranks(count, "RanksOfMpi.*");
    EXPECT_EQ(outcome.status, 0) << count << " ranks\n" << outcome.output;
    std::size_t passed = 0;
    for (std::size_t at = 0; (at = outcome.output.find("5 passed, 0 failed\n", at)) != std::string::npos; ++at) ++passed;
    EXPECT_EQ(passed, static_cast<std::size_t>(count)) << outcome.output;
  }
}

TEST_F(MpiRun, ARankThatFailsEndsTheOthers) {
  const Outcome outcome = ranks(3, "RanksOfMpiWhereOneFails.*");
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.status, 124) << "they waited for each other\n" << outcome.output;
  EXPECT_NE(outcome.output.find("the last rank fails."), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace tilewave
