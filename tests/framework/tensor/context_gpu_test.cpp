// What ranks do together on a GPU, beside a context's own queue: launched one by one, timed, and captured.
#include "framework/tensor/context.h"
#include "kernels/core/graph.h"
#include "kernels/ops/add.h"
#include "kernels/ops/collective.h"
#include "kernels/ops/fill.h"
#include "tests/kernels/gpu.h"

namespace tilewave {
namespace {

using namespace testing_support;

class GpuContext : public GpuTest {};

TEST_F(GpuContext, RanksSpeakBesideItsQueue) {
  const FoundLibrary nccl = find_nccl();
  if (nccl.path.empty()) GTEST_SKIP() << nccl.refused << " What ranks do beside a queue was NOT tried.";
  constexpr std::int64_t kCols = 1 << 22;
  Context context(queue_, device_, {.ranks = join_nccl(device_.index, make_nccl_id(), 0, 1)});
  const Tensor numbers = context.persistent({1, kCols}, DType::f32), sums = context.persistent({1, kCols}, DType::f32);
  const MatrixView x = numbers.view(), y = sums.view();
  const auto launches = [&] {
    context.await_ranks();  // for nothing, which a capture allows
    context.launch(FillArgs{.y = x, .value = 1.0});
    context.launch_beside(AllReduceArgs{.x = x, .ranks = context.ranks()});
    context.launch_beside(AddArgs{.a = x, .b = y, .y = y});
    context.await_ranks();
    context.launch(FillArgs{.y = x, .value = 7.0});
  };
  launches();
  Profiler profiler;
  context.profile(&profiler);
  launches();
  context.profile(nullptr);
  Queue& queue = context.queue();
  const Graph graph = capture(queue, launches);
  for (int time = 0; time < 3; ++time) graph.replay();
  synchronize(queue);
  for (const std::int64_t column : {std::int64_t{0}, kCols / 2, kCols - 1}) {
    float sum = 0.0F;
    copy_to_host(queue, &sum, y.row<float>(0) + column, sizeof(sum));
    EXPECT_EQ(sum, 5.0F) << column;
  }
}

}  // namespace
}  // namespace tilewave
