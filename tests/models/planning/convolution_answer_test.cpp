// A convolution's three GEMMs: the guide's worked numbers exactly, tiles of weight gradients by channels, what the launches are, and how
// an implicit GEMM's time stands to them.
#include "models/planning/convolution_answer.h"

#include <gtest/gtest.h>

#include "kernels/core/error.h"
#include "tests/models/planning/convolutions.h"

namespace tilewave {
namespace {

using Launches = std::vector<std::string>;

Launches names_of(const ConvolutionPhase& phase) {
  Launches names;
  for (const ConvolutionLaunch& launch : phase.launches) names.push_back(launch.operation);
  return names;
}

TEST(ConvolutionAnswer, TheGuidesFourthTable) {
  const ConvolutionQuestion question = convolution({.count = 3, .channels = 5, .height = 20, .width = 18}, 7,
                                                   {.height = 3, .width = 5, .stride_down = 2, .padding_across = 1}, "v100");
  EXPECT_EQ(question.result(), (Images{.count = 3, .channels = 7, .height = 9, .width = 16}));
  const std::vector<ConvolutionPhase> phases = answer(question, device("v100"));
  ASSERT_EQ(phases.size(), 3U);
  const auto sizes = [&](std::size_t i) { return std::array{phases[i].m, phases[i].n, phases[i].k}; };
  EXPECT_EQ(sizes(0), (std::array<std::int64_t, 3>{3 * 9 * 16, 7, 5 * 3 * 5})) << "N P Q x K x C R S";
  EXPECT_EQ(sizes(1), (std::array<std::int64_t, 3>{3 * 20 * 18, 5, 7 * 3 * 5})) << "N H W x C x K R S";
  EXPECT_EQ(sizes(2), (std::array<std::int64_t, 3>{5 * 3 * 5, 7, 3 * 9 * 16})) << "C R S x K x N P Q";
  for (const ConvolutionPhase& phase : phases) {
    EXPECT_EQ(phase.flops, 2 * 3 * 9 * 16 * 7 * 75) << name_of(phase.role);
    EXPECT_EQ(phase.gemm_flops, 2 * phase.m * phase.n * phase.k);
    EXPECT_EQ(phase.bytes, 2 * (3 * 20 * 18 * 5 + 7 * 75 + 3 * 9 * 16 * 7));
    EXPECT_GT(phase.implicit_s, 0.0);
    EXPECT_GT(phase.launched_s(), 0.0);
  }
  EXPECT_EQ(phases[1].role, GemmRole::dgrad);
  EXPECT_GT(phases[1].gemm_flops, phases[1].flops) << "a stride leaves pixels that fewer outputs meet";
}

// Deep Learning Performance 7.3: 1,152; 7.3.2: 383.8; figure 20: 160 and 164 tiles; 7.4.1: effective r.
TEST(ConvolutionAnswer, TheGuidesWorkedNumbers) {
  EXPECT_EQ(convolution({.count = 1, .channels = 128, .height = 8, .width = 8}, 64, same(3), "v100").dot_product(), 1152);
  const ConvolutionQuestion wide = convolution({.count = 256, .channels = 64, .height = 56, .width = 56}, 128, same(3), "v100");
  for (const ConvolutionPhase& phase : answer(wide, device("v100"))) {
    EXPECT_NEAR(intensity({.flops = phase.flops, .bytes = phase.bytes}), 383.8, 0.05);
  }
  for (const Tile tile : {Tile{.m = 128, .n = 128}, Tile{.m = 256, .n = 64}}) {
    const auto figure20 = [&](std::int64_t count) {
      const ConvolutionQuestion question = convolution({.count = count, .channels = 256, .height = 16, .width = 16}, 256, same(3), "v100");
      return answer_in_tile(question, tile, "v100");
    };
    const std::vector<ConvolutionPhase> full = figure20(40), more = figure20(41);
    for (const std::size_t i : {0U, 1U}) {
      EXPECT_EQ(full[i].tile, tile);
      EXPECT_EQ(full[i].slots, 160);
      EXPECT_EQ(full[i].tiles, 160);
      EXPECT_EQ(full[i].waves, 1.0);
      EXPECT_EQ(full[i].tail_tiles, 0);
      EXPECT_EQ(full[i].wave_fraction, 1.0);
      EXPECT_EQ(more[i].tiles, 164);
      EXPECT_EQ(more[i].tail_tiles, 4);
      EXPECT_NEAR(more[i].wave_fraction, 164.0 / 320.0, 1e-12);
      EXPECT_NEAR((more[i].implicit_s - kGuideLaunchSeconds) / (full[i].implicit_s - kGuideLaunchSeconds), 1.5, 1e-9)
          << "a third tile behind two on an SM";
    }
  }
  EXPECT_EQ(same(3, 1, 2).effective_height(), 5);
}

// Section 7.3.4.2, whatever the filter is.
TEST(ConvolutionAnswer, AWeightGradientsTilesHoldChannelsOfOneElement) {
  constexpr Tile k64x64 = {.m = 64, .n = 64};
  for (std::int64_t taps = 1; taps <= 7; taps += 2) {
    const auto useful = [&](std::int64_t channels) {
      const ConvolutionQuestion question = convolution({.count = 2, .channels = channels, .height = 9, .width = 9}, 64, same(taps), "v100");
      return answer_in_tile(question, k64x64, "v100")[2];
    };
    EXPECT_DOUBLE_EQ(useful(32).useful_fraction, 0.5) << taps;
    EXPECT_DOUBLE_EQ(useful(64).useful_fraction, 1.0) << taps;
    EXPECT_DOUBLE_EQ(useful(96).useful_fraction, 0.75) << taps;
    EXPECT_EQ(useful(32).tiles, taps * taps);
    EXPECT_EQ(useful(65).tiles, 2 * taps * taps);
  }
  EXPECT_DOUBLE_EQ(tile_waves(32 * 9, 64, k64x64, 1).useful_fraction, 0.9) << "as one matrix the filter would count";
}

TEST(ConvolutionAnswer, SaysWhatIsLaunched) {
  const Images images{.count = 8, .channels = 64, .height = 28, .width = 28};
  const std::vector<ConvolutionPhase> three = answer(convolution(images, 128, same(3), "h200"), device("h200")),
                                      one = answer(convolution(images, 128, same(1), "h200"), device("h200")),
                                      patch = answer(convolution(images, 128, {.height = 1, .width = 4, .stride_across = 4}, "h200"),
                                                     device("h200"));
  EXPECT_EQ(names_of(three[0]), (Launches{"im2col", "gemm"}));
  EXPECT_EQ(names_of(three[1]), (Launches{"gemm", "col2im"}));
  EXPECT_EQ(names_of(three[2]), (Launches{"im2col", "gemm"}));
  for (const std::vector<ConvolutionPhase>* phases : {&one, &patch}) {
    for (const ConvolutionPhase& phase : *phases) EXPECT_EQ(names_of(phase), Launches{"gemm"}) << name_of(phase.role);
  }
  for (const ConvolutionPhase& phase : three) {
    EXPECT_LT(phase.implicit_s, phase.launched_s()) << name_of(phase.role) << ": copies are what it saves";
    EXPECT_GE(phase.implicit_s, phase.floor_s) << name_of(phase.role);
  }
  // A 1x1 convolution's forward pass is the GEMM itself.
  EXPECT_DOUBLE_EQ(one[0].implicit_s, one[0].launched_s());
}

// Of a plan that memory bounds, repeated pixels are not waited for.
TEST(ConvolutionAnswer, AnImplicitGemmReadsNoColumns) {
  const ConvolutionQuestion question = convolution({.count = 32, .channels = 64, .height = 56, .width = 56}, 16, same(3), "v100");
  const ConvolutionPhase forward = answer(question, device("v100"))[0];
  EXPECT_LT(forward.implicit_s, forward.plan.predicted_s);
  EXPECT_GE(forward.implicit_s, forward.floor_s);
}

TEST(ConvolutionAnswer, ACpusTimesOfCopiesAreNotKnown) {
  const DeviceInfo cpu = probe_cpu(2);
  ConvolutionQuestion question = convolution({.count = 1, .channels = 3, .height = 8, .width = 8}, 4, same(3), "v100");
  question.precision = Precision::fp32;
  question.plans = [&cpu](const GemmProblem& problem) { return gemm_candidates(problem, cpu); };
  for (const ConvolutionPhase& phase : answer(question, cpu)) {
    EXPECT_EQ(phase.launched_s(), 0.0);
    EXPECT_EQ(phase.floor_s, 0.0);
    EXPECT_GT(phase.tiles, 0);
  }
}

TEST(ConvolutionAnswer, RefusesWhatCannotBeConvolved) {
  const auto refusal = [](const ConvolutionQuestion& question) {
    try {
      answer(question, device("v100"));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Images images{.count = 1, .channels = 3, .height = 4, .width = 4};
  EXPECT_NE(refusal(convolution(images, 8, {.height = 5}, "v100")).find("convolution: a filter of 5 x 3 does not fit"), std::string::npos);
  EXPECT_NE(refusal(convolution(images, 0, {}, "v100")).find("0 channels come out"), std::string::npos);
}

}  // namespace
}  // namespace tilewave
