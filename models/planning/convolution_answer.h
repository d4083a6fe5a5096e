// What a student asks of a convolution: its three phases as the guide's GEMMs (Deep Learning Performance, table 4) with tiles, waves and
// intensity; what an implicit GEMM of each is predicted to take; and what the launches that tilewave makes of it today are.
// M, N, K and tiles are the guide's here, M the pixels; kernels/core/convolution.h says how problem.h turns them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/core/convolution.h"
#include "models/planning/plan.h"

namespace tilewave {

struct ConvolutionQuestion {
  Images images;
  ConvolutionFilter filter;
  std::int64_t outputs = 0;  // channels out
  Precision precision = Precision::fp16;
  PitchPolicy pitch = PitchPolicy::packed;
  AlignmentPolicy alignment_policy = AlignmentPolicy::any;  // of the launches
  // Plans to take one of for an implicit GEMM, the least predicted time first. Tiles are problem.h's M by N.
  std::function<std::vector<GemmPlan>(const GemmProblem& problem)> plans;

  Images result() const { return convolved(images, filter, outputs); }
  std::int64_t dot_product() const { return filter.taps() * images.channels; }  // elements, of an output
};

struct ConvolutionLaunch {
  std::string operation;     // "im2col", "gemm", "col2im"
  double predicted_s = 0.0;  // 0: not known
};

struct ConvolutionPhase {
  GemmRole role = GemmRole::forward;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t flops = 0, bytes = 0;  // of the convolution: pixels, weights and outputs moved once, products with gaps of strides left out
  std::int64_t gemm_flops = 0;        // 2 M N K: more than flops in an activation gradient of a stride
  GemmPlan plan;                      // of a GEMM of that size: its tile and tiling are problem.h's
  Tile tile;                          // M by N
  std::int64_t tiles = 0, slots = 0;  // of the implicit GEMM, and those that run at a time
  std::int64_t tail_tiles = 0;        // of the last, partial wave
  double useful_fraction = 1.0, waves = 0.0, wave_fraction = 1.0;
  double implicit_s = 0.0;                  // 0: not known
  double floor_s = 0.0;                     // flops at the printed peak, or bytes at the printed bandwidth; 0: not known
  std::vector<ConvolutionLaunch> launches;  // of tilewave's convolution
  double launched_s() const;                // 0: not known
};

// Forward, activation gradient, weight gradient. Tiles of a weight gradient hold channels of one element of the filter each, as the guide's
// kernels have them (section 7.3.4.2). An implicit GEMM is planned as one that multiplies a matrix of M x K in memory; where the plan is
// bound by memory, bytes that it reads and a convolution does not are taken off. Error where the images cannot be convolved so.
std::vector<ConvolutionPhase> answer(const ConvolutionQuestion& question, const DeviceInfo& device);

}  // namespace tilewave
