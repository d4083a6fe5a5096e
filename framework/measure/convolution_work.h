// A pass of a convolution with random operands, and what runs it: its launches as the operation makes them, one after another.
#pragma once

#include <string>

#include "framework/measure/operation_work.h"
#include "kernels/core/convolution.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

struct ConvolutionPass {
  Images images;
  ConvolutionFilter filter;
  std::int64_t outputs = 0;  // channels out
  GemmRole role = GemmRole::forward;

  Images result() const { return convolved(images, filter, outputs); }
};
// As `plan --convolution` takes it: "32x28x28x256->256,3x3,stride=2,pad=1".
std::string name_of(const ConvolutionPass& pass);

// The entry is of the whole: FLOPs of the products that a pass needs, bytes of pixels, weights and outputs, each moved once.
OperationWork prepare_convolution(Context& context, const ConvolutionPass& pass);

}  // namespace tilewave
