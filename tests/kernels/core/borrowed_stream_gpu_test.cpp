// Queues on streams that somebody else made.
#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <vector>

#include "kernels/core/borrowed_stream.h"
#include "kernels/gemm/gemm.h"
#include "kernels/ops/add.h"
#include "tests/kernels/gpu.h"

namespace tilewave {
namespace {

using namespace testing_support;

using GpuBorrowedStream = GpuTest;

MatrixView floats(void* data, std::int64_t rows, std::int64_t cols) {
  return {.data = data, .rows = rows, .cols = cols, .ld = cols, .dtype = DType::f32};
}

TEST_F(GpuBorrowedStream, ComputesOnTheDefaultStream) {
  const CudaScope scope(device_.index);
  EXPECT_EQ(capture_of(nullptr), 0U);
  constexpr std::int64_t kRows = 37, kCols = 65, kElements = kRows * kCols;
  std::vector<float> host(kElements);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 97);
  {
    CudaQueue borrowed = borrow_cuda_stream(device_.index, nullptr);
    void* const a = allocate_unordered(borrowed, kElements * 4);
    void* const sum = allocate_unordered(borrowed, kElements * 4);
    Queue queue = borrowed;
    copy_to_device(queue, a, host.data(), kElements * 4);
    run(queue, AddArgs{.a = floats(a, kRows, kCols), .b = floats(a, kRows, kCols), .y = floats(sum, kRows, kCols)});
    std::vector<float> got(kElements, -1.0f);
    copy_to_host(queue, got.data(), sum, kElements * 4);
    for (std::size_t i = 0; i < host.size(); ++i) ASSERT_EQ(got[i], 2.0f * host[i]) << i;
    release_unordered(borrowed, a);
    release_unordered(borrowed, sum);
  }
  synchronize(queue_);  // the stream that lent its flags is gone, and the device as it was
}

// A GEMM whose CTAs wait for one another takes the queue's flags and leaves zeros: twice the same, beside another queue's.
TEST_F(GpuBorrowedStream, HasFlagsOfItsOwn) {
  const CudaScope scope(device_.index);
  constexpr std::int64_t kTokens = 130, kOut = 264, kIn = 8192;  // few tiles of a long K: its parts are added up
  Queue queue = borrow_cuda_stream(device_.index, nullptr);
  const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
    void* const data = allocate(queue, rows * cols * 2);
    fill_bytes(queue, data, 0x3f, rows * cols * 2);  // bf16 0x3f3f: 0.746
    return MatrixView{.data = data, .rows = rows, .cols = cols, .ld = cols, .dtype = DType::bf16};
  };
  GemmArgs args{.a = matrix(kOut, kIn), .b = matrix(kTokens, kIn), .d = matrix(kTokens, kOut)};
  const GemmPlan plan = choose(problem_of(args), device_);
  args.plan = &plan;
  args.workspace = allocate(queue, std::max<std::int64_t>(plan.workspace_bytes, 1));
  std::vector<std::uint16_t> first(kTokens * kOut), again(first.size());
  run(queue, args);
  copy_to_host(queue, first.data(), args.d.data, args.d.bytes());
  fill_bytes(queue, args.d.data, 0xff, args.d.bytes());
  run(queue, args);
  copy_to_host(queue, again.data(), args.d.data, args.d.bytes());
  EXPECT_EQ(first, again);
  const float expected = static_cast<float>(kIn) * 0.74609375f * 0.74609375f;
  EXPECT_NEAR(static_cast<float>(std::bit_cast<bf16>(first.front())), expected, 0.01f * expected);
  for (const void* data : {args.a.data, args.b.data, static_cast<const void*>(args.d.data), static_cast<const void*>(args.workspace)})
    release(queue, const_cast<void*>(data));
}

TEST(BorrowedStream, TakesCudaKernels) {
  if (has_cuda()) GTEST_SKIP() << "this build has CUDA kernels; one without refuses";
  EXPECT_THROW(borrow_cuda_stream(0, nullptr), Error);
  EXPECT_THROW(CudaScope(0), Error);
}

}  // namespace
}  // namespace tilewave
