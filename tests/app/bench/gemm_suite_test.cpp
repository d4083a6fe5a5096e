// The suites of tilewave bench gemm as data: what a form poses, what it is compared with, and which claims have targets.
#include "app/bench/gemm_suite.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

#include "kernels/core/device_profiles.h"
#include "kernels/gemm/catalog.h"
#include "tests/kernels/gemm/gpus.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

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

// The kernels that the model chooses on an H200 for a form's aligned items, each with the number of layers and one of them.
std::string kernels_of(const GemmSuite& suite, GemmForm form) {
  std::map<std::string, std::set<std::string>> layers;
  for (const GemmItem& item : suite.items) {
    if (item.ours.form != form || item.ours.pitch != PitchPolicy::aligned || form == GemmForm::dgrad_gelu_bias) continue;
    const GemmPlan plan = choose(problem_of(item.ours, kTypes), device_profile("h200").device);
    const Layer& layer = item.ours.layer;
    layers[std::string(name_of(plan.composition))].insert(concat(layer.out, "<-", layer.in, "@", layer.tokens));
  }
  std::string kernels;
  for (const auto& [kernel, its] : layers)
    kernels += concat(kernels.empty() ? "" : ", ", "`", kernel, "` ", its.size(), " (`", *its.begin(), "`)");
  return kernels;
}

// The page's table: per form that is one launch, over the suite; then over layers of few tokens, outputs or inputs.
std::string which_kernel_when() {
  std::string table = "| form | kernels, the number of layers, and one of them (outputs<-inputs@tokens) |\n|---|---|\n";
  const GemmSuite suite = transformer_suite({});
  for (const std::string& name : gemm_forms()) {
    const std::string kernels = kernels_of(suite, parse_gemm_form(name));
    if (!kernels.empty()) table += concat("| ", name, " | ", kernels, " |\n");
  }
  const SuiteCut few = {.forms = {GemmForm::forward, GemmForm::dgrad, GemmForm::wgrad},
                        .layers = {"4096<-4096@1", "11008<-4096@8", "4096<-11008@16", "33708<-1024@4", "1<-1024@16384", "8<-4096@4096",
                                   "16<-1024@65536", "1024<-1@16384", "1024<-8@16384"}};
  for (const GemmForm form : few.forms) {
    table += concat("| ", name_of(form), ", 1 to 16 of something | ", kernels_of(layers_suite(few, PitchPolicy::aligned), form), " |\n");
  }
  return table;
}

// TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=GemmDocument.* --data tests writes the table instead.
TEST(GemmDocument, SaysWhichKernelIsChosenWhen) {
  const std::filesystem::path path = std::filesystem::absolute(test_environment().data).lexically_normal() / "../docs/understand/gemm.md";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not beside --data";
  const std::string begins = "<!-- which kernel when: tests/app/bench/gemm_suite_test.cpp -->\n", ends = "<!-- end -->\n";
  const std::string text = file_text(path);
  const std::size_t begin = text.find(begins), end = text.find(ends, begin);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string table = which_kernel_when();
  const std::size_t first = begin + begins.size();
  if (std::getenv("TILEWAVE_WRITE_DOCS") != nullptr) return write_text(path, text.substr(0, first) + table + text.substr(end));
  EXPECT_TRUE(text.substr(first, end - first) == table) << "the table of docs/understand/gemm.md is not what is chosen:\n" << table;
}

}  // namespace
}  // namespace tilewave
