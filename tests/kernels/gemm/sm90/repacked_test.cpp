// What the row `repacked` says without a GPU: when it runs, what it needs, who multiplies for it, and where its copies are worth it.
#include "kernels/gemm/sm90/repacked.h"

#include <gtest/gtest.h>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/sm90/persistent_deferred.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

// The second layer of a feed-forward block whose hidden activation lies feature-major, [d_ff, tokens], packed.
GemmProblem feature_major_forward(std::int64_t tokens) {
  return {.m = 1024,
          .n = tokens,
          .k = 4096,
          .b_major = Major::n,
          .operand_dtype = DType::bf16,
          .output_dtype = DType::bf16,
          .epilogue = {.bias = true},
          .a_pitch = 4096,
          .b_pitch = tokens,
          .d_pitch = 1024,
          .a_alignment = 128,
          .b_alignment = alignment_of(0, tokens * 2),
          .d_alignment = 128};
}

TEST(Repacked, RunsWhatTheCopyEngineDoesNotTake) {
  EXPECT_EQ(kRepackedKernel.refuse(feature_major_forward(4095), h200()), "");
  EXPECT_NE(kRepackedKernel.refuse(feature_major_forward(4096), h200()).find("multiples of 16 bytes already"), std::string::npos);
  GemmProblem other = feature_major_forward(4095);
  other.operand_dtype = other.output_dtype = DType::f32;
  EXPECT_NE(kRepackedKernel.refuse(other, h200()), "");
  EXPECT_NE(kRepackedKernel.refuse(feature_major_forward(4095), a100()), "");
}

TEST(Repacked, CopiesWhatStartsAnywhereAndNoMore) {
  const Tile tile = {256, 128};
  const GemmPlan plan = kRepackedKernel.plan(feature_major_forward(4095), tile, h200(), 0);
  EXPECT_EQ(plan.workspace_bytes, 4096 * 4096 * 2);
  EXPECT_EQ(plan.b_alignment, 2);
  const GemmPlan inner = kPersistentDeferredKernel.plan(feature_major_forward(4096), tile, h200(), 0);
  const CostModel& model = cost_model_of(h200());
  const double pass = model.launch_s + 2.0 * 4095 * 4096 * 2 / (model.repack_fraction * h200().bandwidth_bytes_per_s);
  EXPECT_NEAR(plan.predicted_s, inner.predicted_s + pass, 0.01 * pass);

  GemmProblem backward = feature_major_forward(4095);  // hidden gradients, through ReLU, and their inputs
  backward.m = 4096, backward.k = 1024, backward.b_major = Major::k, backward.d_major = Major::n;
  backward.epilogue = {.derivative = Activation::relu};
  backward.b_alignment = 128, backward.d_alignment = 2;
  EXPECT_EQ(kRepackedKernel.plan(backward, tile, h200(), 0).workspace_bytes, 2 * 4096 * 4096 * 2);
  backward.epilogue = {.accumulate = true};
  EXPECT_EQ(kRepackedKernel.plan(backward, tile, h200(), 0).workspace_bytes, 4096 * 4096 * 2);
}

TEST(Repacked, IsMultipliedByTheRowThatStoresLateWhereThatCan) {
  GemmProblem problem = feature_major_forward(4096);
  EXPECT_EQ(name_of(kernel_of_repacked(problem, {256, 128}, h200())), "persistent/deferred");
  EXPECT_EQ(name_of(kernel_of_repacked(problem, {128, 256}, h200())), "persistent") << "which has that tile";
  problem.epilogue.residual = true;
  EXPECT_EQ(name_of(kernel_of_repacked(problem, {256, 128}, h200())), "persistent");
}

TEST(Repacked, IsChosenWhereTheProductsAreLongAndTheCopiesShort) {
  const GemmPlan plan = choose(feature_major_forward(4095), h200());
  EXPECT_EQ(name_of(plan.composition), "repacked");
  EXPECT_NE(plan.reason.find("persistent/deferred multiplies; "), std::string::npos) << plan.reason;
  EXPECT_NE(plan.reason.find(" us are for 1 pass over 33.5 MB"), std::string::npos) << plan.reason;
  EXPECT_NE(name_of(choose(feature_major_forward(4096), h200()).composition), "repacked");
  GemmProblem vocabulary = feature_major_forward(5120);  // dW of 50,257 columns of logits: more bytes than products
  vocabulary.role = GemmRole::wgrad;
  vocabulary.m = 768, vocabulary.n = 50257, vocabulary.k = 5120;
  vocabulary.a_major = Major::m, vocabulary.b_major = Major::n;
  vocabulary.epilogue = {};
  vocabulary.a_pitch = 768, vocabulary.b_pitch = 50257, vocabulary.d_pitch = 768;
  vocabulary.b_alignment = 2;
  EXPECT_EQ(name_of(choose(vocabulary, h200()).composition), "unaligned");
}

}  // namespace
}  // namespace tilewave
