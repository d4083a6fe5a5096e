// The suites of tilewave bench gemm as data: what a form poses, what it is compared with, and which claims have targets.
#include "app/bench/gemm_suite.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

#include "kernels/gemm/catalog.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

const GemmTypes kTypes = parse_gemm_types("bf16");

TEST(GemmSuite, SumsOfADgradAreTheBiasGradientOfTheLayerBelow) {
  const GemmCase asked = {
      .layer = layer_of({"--layer", "1024<-4096@5120"}), .form = GemmForm::dgrad_gelu_bias, .pitch = PitchPolicy::packed};
  const GemmProblem one_launch = problem_of(asked, kTypes);
  const InParts parts = in_parts(asked);
  const GemmProblem dgrad = problem_of(parts.dgrad, kTypes), wgrad = problem_of(parts.wgrad, kTypes),
                    wgrad_bias = problem_of(parts.wgrad_bias, kTypes);
  EXPECT_EQ(one_launch.epilogue, (Epilogue{.derivative = Activation::gelu_tanh, .output_sums = true}));
  EXPECT_EQ(dgrad.epilogue, (Epilogue{.derivative = Activation::gelu_tanh}));
  EXPECT_EQ(wgrad.epilogue, Epilogue{});
  EXPECT_EQ(wgrad_bias.epilogue, (Epilogue{.bias_gradient = true}));
  EXPECT_EQ(std::tuple(dgrad.m, dgrad.n, dgrad.k), std::tuple(one_launch.m, one_launch.n, one_launch.k));
  // dX [tokens, 4096] is dY of the layer below.
  EXPECT_EQ(parts.wgrad.layer.text(), "4096<-1024@5120");
  EXPECT_EQ(parts.wgrad_bias.layer.text(), parts.wgrad.layer.text());
  EXPECT_EQ(std::tuple(wgrad_bias.n, wgrad_bias.k), std::tuple(dgrad.m, dgrad.n));
  EXPECT_EQ(std::tuple(wgrad_bias.b_pitch, wgrad_bias.b_alignment), std::tuple(dgrad.d_pitch, dgrad.d_alignment));
  EXPECT_EQ(find_gemm_kernel("cublaslt")->refuse(one_launch, h200()), "");
  EXPECT_NE(find_gemm_kernel("tensor_core_persistent")->refuse(one_launch, h200()), "");
}

TEST(GemmSuite, ABiasGradientHasTwoPeersAndTargetsAgainstTheFusedOne) {
  const GemmSuite suite = transformer_suite({.forms = {GemmForm::dgrad_gelu_bias}, .layers = {}});
  std::set<std::string> fused, in_parts;
  for (const GemmItem& item : suite.items) {
    const GemmClaim& claim = suite.claims[item.claim];
    EXPECT_EQ(item.ours.form, GemmForm::dgrad_gelu_bias);
    EXPECT_FALSE(item.other);
    const bool one = item.peer == PeerLaunches::one;
    (one ? fused : in_parts).insert(item.ours.layer.text());
    EXPECT_EQ(claim.name, one ? "dgrad through GELU' + bias gradient" : "dgrad through GELU' + bias gradient, peer in parts");
    EXPECT_DOUBLE_EQ(claim.mean, one ? 1.60 : 0.0);
    EXPECT_DOUBLE_EQ(claim.least, one ? 1.30 : 0.0);
  }
  EXPECT_EQ(fused.size(), 9u);
  EXPECT_EQ(fused, in_parts);
  EXPECT_EQ(suite.items.size(), 18u);
}

TEST(GemmSuite, LayersHaveTheFormsAskedFor) {
  const SuiteCut cut = {.forms = {GemmForm::dgrad_gelu, GemmForm::dgrad_gelu_bias}, .layers = {"4096<-1024@5120", "768<-3072@65536"}};
  const GemmSuite suite = layers_suite(cut, PitchPolicy::aligned);
  ASSERT_EQ(suite.claims.size(), 3u);
  ASSERT_EQ(suite.items.size(), 2u + 4u);
  for (const GemmItem& item : suite.items) {
    const GemmClaim& claim = suite.claims[item.claim];
    EXPECT_DOUBLE_EQ(claim.mean, 0.0);
    EXPECT_EQ(claim.name, concat(name_of(item.ours.form), item.peer == PeerLaunches::in_parts ? ", peer in parts" : ""));
    EXPECT_EQ(problem_of(item.ours, kTypes).epilogue.output_sums, item.ours.form == GemmForm::dgrad_gelu_bias);
  }
}

}  // namespace
}  // namespace tilewave
