// Convolutions to plan for a profile, as the tests of plans name them.
#pragma once

#include <vector>

#include "kernels/gemm/guide_tiles.h"
#include "models/planning/convolution_answer.h"
#include "tests/models/planning/problems.h"

namespace tilewave {

inline ConvolutionQuestion convolution(const Images& images, std::int64_t outputs, const ConvolutionFilter& filter, std::string_view key) {
  return {.images = images, .filter = filter, .outputs = outputs, .plans = [&gpu = device(key)](const GemmProblem& problem) {
            return gemm_candidates(problem, gpu);
          }};
}

// The phases in one tile, M by N as the guide has them.
inline std::vector<ConvolutionPhase> answer_in_tile(ConvolutionQuestion question, Tile tile, std::string_view key) {
  question.plans = [tile, &gpu = device(key)](const GemmProblem& problem) {
    const Tile own = problem.role == GemmRole::wgrad ? tile : Tile{.m = tile.n, .n = tile.m};
    return std::vector{plan_guide_tile(problem, own, gpu, assumed_blocks_per_sm(own).blocks)};
  };
  return answer(question, device(key));
}

// As many pixels come out as go in, over the stride.
constexpr ConvolutionFilter same(std::int64_t taps, std::int64_t stride = 1, std::int64_t dilation = 1) {
  const std::int64_t padding = dilation * (taps - 1) / 2;
  return {.height = taps,
          .width = taps,
          .stride_down = stride,
          .stride_across = stride,
          .padding_down = padding,
          .padding_across = padding,
          .dilation_down = dilation,
          .dilation_across = dilation};
}

}  // namespace tilewave
