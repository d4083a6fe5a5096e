// Running one case of a sweep on a GPU: every byte goes there and comes back, guards and gaps included.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/gemm/kernel.h"
#include "tests/kernels/gemm/cases.h"
#include "tests/kernels/gpu.h"

namespace tilewave {

// Device memory that the operands of one case after another lie in.
class GpuGemmTest : public testing_support::GpuTest {
 protected:
  static constexpr std::int64_t kBytes = 192 << 20;

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    memory_ = static_cast<std::byte*>(allocate(queue_, kBytes));
  }
  void TearDown() override {
    if (memory_ != nullptr) release(queue_, memory_);
  }

  // Runs the case on the row and brings back every byte, guards and gaps included.
  void run_on(const GemmKernel& row, const gemm_sweep::Case& c, gemm_sweep::Operands& operands, int split = 0) {
    gemm_sweep::Matrix* const matrices[] = {&operands.a,           &operands.b,
                                            &operands.d,           &operands.bias,
                                            &operands.saved_input, &operands.derivative_of,
                                            &operands.residual,    &operands.bias_gradient,
                                            &operands.output_sums, &operands.scalar};
    GemmArgs args = operands.args(c);
    std::byte* next = memory_;
    const auto place = [&](gemm_sweep::Matrix& matrix) {
      std::byte* const at = next;
      copy_to_device(queue_, at, matrix.bytes().data(), static_cast<std::int64_t>(matrix.bytes().size()));
      next += round_up(static_cast<std::int64_t>(matrix.bytes().size()), 256);
      return at;
    };
    std::vector<std::byte*> places;
    for (gemm_sweep::Matrix* matrix : matrices) places.push_back(place(*matrix));
    const auto onto_device = [&](auto& view) {
      for (std::size_t i = 0; i < std::size(matrices); ++i) {
        if (view && view.data == matrices[i]->view().data) {
          view.data = places[i] + (static_cast<const std::byte*>(view.data) - matrices[i]->bytes().data());
          return;
        }
      }
    };
    onto_device(args.a);
    onto_device(args.b);
    onto_device(args.d);
    onto_device(args.bias);
    onto_device(args.saved_input);
    onto_device(args.derivative_of);
    onto_device(args.residual);
    onto_device(args.bias_gradient);
    onto_device(args.output_sums);
    for (GemmScalar* const scalar : {&args.alpha, &args.beta}) {
      if (scalar->at != nullptr) scalar->at = places.back() + (static_cast<const std::byte*>(scalar->at) - operands.scalar.bytes().data());
    }

    const GemmPlan plan = row.plan(problem_of(args), c.tile, device_, split);
    std::vector<std::byte> guard(256);
    args.plan = &plan;
    args.workspace = next;
    next += plan.workspace_bytes;
    ASSERT_LE(next + 256, memory_ + kBytes);
    fill_bytes(queue_, args.workspace, 0xff, plan.workspace_bytes + 256);
    run(queue_, args);
    for (std::size_t i = 0; i < std::size(matrices); ++i) {
      copy_to_host(queue_, matrices[i]->bytes().data(), places[i], static_cast<std::int64_t>(matrices[i]->bytes().size()));
    }
    copy_to_host(queue_, guard.data(), next, 256);
    EXPECT_TRUE(std::all_of(guard.begin(), guard.end(), [](std::byte byte) { return byte == gemm_sweep::kPoison; }))
        << "the workspace is too small";
  }

  std::byte* memory_ = nullptr;
};

}  // namespace tilewave
