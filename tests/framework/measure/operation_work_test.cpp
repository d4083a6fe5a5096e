// Every operation that is benchmarked: what its launch is said to move is what its launch moves, and it runs at sizes off every multiple.
#include "framework/measure/operation_work.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

#include "framework/measure/image_work.h"
#include "framework/tensor/host_tensor.h"
#include "kernels/core/error.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

TEST(OperationWork, EachRunsOnACpuAsItsTraceSays) {
  std::set<std::string> names;
  for (const BenchedOperation& operation : benched_operations()) {
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name << " is there twice";
    for (const Shape shape : {Shape{36, 24}, Shape{7, 8}}) {
      Context context(make_cpu_queue(2), probe_cpu(2), {.precision = Precision::fp32});
      context.write_step_state({.step = 1, .seed = 1, .learning_rate = 1e-4, .real_tokens = 1000});
      const OperationWork work = operation.prepare(context, shape);
      EXPECT_NO_THROW(work.launch()) << operation.name;
      EXPECT_GT(work.entry.cost.bytes, 0) << operation.name;
      EXPECT_GE(work.entry.time.launches, 1) << operation.name;
      EXPECT_NE(work.entry.time.copy_share, nullptr) << operation.name << " has no share of a copy's rate";
      Context trace(TraceQueue{}, probe_cpu(2), {.precision = Precision::fp32});
      EXPECT_EQ(operation.prepare(trace, shape).entry, work.entry) << operation.name;
    }
  }
  for (const char* name : {"sigmoid", "sigmoid_backward", "tanh", "tanh_backward", "silu", "swiglu_backward", "rms_norm",
                           "rms_norm_backward", "rope", "repeat_heads", "repeat_heads_backward", "batch_norm_nhwc",
                           "batch_norm_nchw_several_backward", "max_pool_nchw_backward", "average_pool_nhwc"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(OperationWork, OfABlockAsAModelHasIt) {
  Context context(TraceQueue{}, h200(), {.precision = Precision::bf16});
  const auto bytes = [&](const char* name) { return benched_operation(name).prepare(context, {4096, 1024}).entry.cost.bytes; };
  constexpr std::int64_t kMatrix = 4096 * 1024 * 2;
  EXPECT_EQ(bytes("sigmoid"), 2 * kMatrix);
  EXPECT_EQ(bytes("tanh_backward"), 3 * kMatrix);
  EXPECT_EQ(bytes("silu_backward"), 3 * kMatrix);
  EXPECT_EQ(bytes("swiglu"), 3 * kMatrix) << "gate, up and their product";
  EXPECT_EQ(bytes("swiglu_backward"), 5 * kMatrix);
  EXPECT_EQ(bytes("repeat_heads"), kMatrix + kMatrix / 4) << "four heads share one";
}

TEST(OperationWork, ImagesAreTheLargestSquaresThatThePixelsAreWholeOnesOf) {
  EXPECT_EQ(benched_images({65536, 256}, ImageLayout::nchw),
            (Images{.count = 64, .channels = 256, .height = 32, .width = 32, .layout = ImageLayout::nchw}));
  EXPECT_EQ(benched_images({36, 5}, ImageLayout::nhwc), (Images{.count = 9, .channels = 5, .height = 2, .width = 2}));
  EXPECT_EQ(benched_images({7, 5}, ImageLayout::nhwc), (Images{.count = 7, .channels = 5, .height = 1, .width = 1}));
}

TEST(OperationWork, WhatAShapeCannotBeIsSaid) {
  Context context(TraceQueue{}, probe_cpu(1), {.precision = Precision::fp32});
  EXPECT_THROW(benched_operation("rope").prepare(context, {8, 7}), InputError);
  EXPECT_THROW(benched_operation("repeat_heads").prepare(context, {8, 6}), InputError);
}

}  // namespace
}  // namespace tilewave
