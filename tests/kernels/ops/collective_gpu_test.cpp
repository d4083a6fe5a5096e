// Collectives of a rank alone, without NCCL and with it, and of ranks that have a GPU each: processes of this program that a test starts.
// What a stream waits for is tried beside them.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "kernels/core/graph.h"
#include "kernels/ops/add.h"
#include "kernels/ops/fill.h"
#include "tests/kernels/ranks.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

void expect_collectives(RankQueue& own) {
  const auto expect = [&]<class T>(T) {
    expect_all_reduce<T>(own);
    expect_reduce_scatter<T>(own);
    expect_all_gather<T>(own);
    expect_broadcast<T>(own);
  };
  expect(double{});
  expect(float{});
  expect(bf16{});
  expect(f16{});
  expect(std::int32_t{});
  expect_exchange(own);
  expect_nothing_of_nothing(own);
}

// A step as one graph: numbers are made, summed over all ranks beside them (or in order), and added to.
void expect_captured(const Communicator& ranks, int index) {
  constexpr int kCols = 100003;
  const int count = ranks.count;
  Queue compute = make_cuda_queue(index), links = links_of(ranks);
  for (const bool beside : {true, false}) {
    Matrix<float> x(1, kCols, 0), y(1, kCols, 0);
    for (int c = 0; c < kCols; ++c) y(0, c) = 0.0F;
    OnDevice<float> device_x(compute, x), device_y(compute, y);
    synchronize(compute);
    const AllReduceArgs sum = {.x = device_x.view(), .ranks = ranks};
    const auto launches = [&] {
      run(compute, FillArgs{.y = device_x.view(), .value = 1.0 + ranks.rank});
      if (beside) follow(links, compute);
      run(beside ? links : compute, sum);
      if (beside) follow(compute, links);
      run(compute, AddArgs{.a = device_x.view(), .b = device_y.view(), .y = device_y.view()});
    };
    launches();
    synchronize(compute);
    {
      const Graph graph = capture(compute, launches);
      for (int time = 0; time < 3; ++time) graph.replay();
      synchronize(compute);
    }
    device_y.fetch();
    const double expected = 4.0 * count * (count + 1) / 2.0;
    for (int c = 0; c < kCols; ++c) ASSERT_EQ(y(0, c), expected) << c;
    EXPECT_TRUE(y.guards_intact());
  }
}

class GpuCollective : public GpuTest {
 protected:
  static std::string missing() {
    const FoundLibrary nccl = find_nccl();
    return nccl.path.empty() ? nccl.refused + " Ranks on GPUs were NOT tried." : std::string();
  }
};

TEST_F(GpuCollective, OfARankAloneCopies) {
  RankQueue own = {.queue = queue_, .ranks = {}};
  expect_collectives(own);
}

TEST_F(GpuCollective, RefusesRanksThatSpeakNothing) {
  Matrix<float> x(1, 4, 0);
  OnDevice<float> device(queue_, x);
  const Communicator ranks = {.rank = 0, .count = 2, .mpi = nullptr, .nccl = nullptr};
  expect_error([&] { run(queue_, AllReduceArgs{.x = device.view(), .ranks = ranks}); },
               "all_reduce: 2 ranks on GPUs speak NCCL, and these do not; take those of join_nccl()");
}

TEST_F(GpuCollective, OfOneRankThatJoined) {
  if (const std::string why = missing(); !why.empty()) GTEST_SKIP() << why;
  RankQueue own = {.queue = queue_, .ranks = join_nccl(device_.index, make_nccl_id(), 0, 1)};
  expect_collectives(own);
  expect_captured(own.ranks, device_.index);
}

// Many fills keep the first stream busy; the other one's copy has their last value.
TEST_F(GpuCollective, AStreamFollowsAnother) {
  Queue other = make_cuda_queue(device_.index);
  Matrix<float> x(1, 1 << 24, 0), y(1, 1 << 24, 0);
  OnDevice<float> from(queue_, x), to(other, y);
  for (Queue* const queue : {&queue_, &other}) synchronize(*queue);
  for (int i = 1; i <= 50; ++i) run(queue_, FillArgs{.y = from.view(), .value = static_cast<double>(i)});
  follow(other, queue_);
  copy_on_device(other, to.view().data, from.view().data, to.view().bytes());
  to.fetch();
  for (const float value : {y(0, 0), y(0, 12345), y(0, (1 << 24) - 1)}) EXPECT_EQ(value, 50.0F);
  follow(queue_, queue_);
}

// A rank's part of this program: which, of how many, and the file that NCCL's id comes by.
class GpuRanks : public GpuTest {
 protected:
  void SetUp() override {
    if (std::getenv("TILEWAVE_TEST_RANK") == nullptr) GTEST_SKIP() << "GpuRankProcesses.* starts it, a process for each rank";
    const int rank = std::atoi(std::getenv("TILEWAVE_TEST_RANK")), count = std::atoi(std::getenv("TILEWAVE_TEST_RANKS"));
    own_.queue = make_cuda_queue(rank);
    own_.ranks = join_nccl(rank, id_of(rank), rank, count);
  }
  static NcclId id_of(int rank) {
    const fs::path file = std::getenv("TILEWAVE_TEST_ID");
    NcclId id{};
    if (rank == 0) {
      id = make_nccl_id();
      write_text(file.string() + ".new", std::string(reinterpret_cast<const char*>(id.data()), id.size()));
      fs::rename(file.string() + ".new", file);
      return id;
    }
    for (int time = 0; time < 600 && !fs::exists(file); ++time) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::string text = file_text(file);
    TW_CHECK(text.size() == id.size(), "the id of the group has ", text.size(), " bytes.");
    std::memcpy(id.data(), text.data(), id.size());
    return id;
  }

  RankQueue own_;
};

TEST_F(GpuRanks, SumGatherAndBroadcast) {
  expect_collectives(own_);
  expect_captured(own_.ranks, own_.ranks.rank);
}

class GpuRankProcesses : public GpuCollective {};
TEST_F(GpuRankProcesses, OneForEachGpu) {
  const std::size_t gpus = probe_cuda().usable.size();
  if (gpus < 2) GTEST_SKIP() << "there is one GPU: ranks with a GPU each were NOT tried";
  if (const std::string why = missing(); !why.empty()) GTEST_SKIP() << why;
  const TemporaryFolder folder;
  const std::string program = fs::canonical("/proc/self/exe").string();
  const std::string ranks = concat("for rank in $(seq 0 ", gpus - 1, "); do TILEWAVE_TEST_RANK=$rank TILEWAVE_TEST_RANKS=", gpus,
                                   " TILEWAVE_TEST_ID=", quoted((folder.path() / "id").string()), " timeout 300 ", quoted(program),
                                   " --gtest_filter='GpuRanks.*' >rank$rank 2>&1 & processes=\"$processes $!\"; done; ");
  const std::string end = "failed=0; for process in $processes; do wait $process || failed=1; done; cat rank*; exit $failed";
  const Outcome outcome = shell("processes=; " + ranks + end, folder.path());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  std::size_t passed = 0;
  for (std::size_t at = 0; (at = outcome.output.find("1 passed, 0 failed\n", at)) != std::string::npos; ++at) ++passed;
  EXPECT_EQ(passed, gpus) << outcome.output;
}

}  // namespace
}  // namespace tilewave
