// Convolution on a GPU against its definition in double, in every precision and at both pitches.
#include "tests/framework/ops/convolution_problem.h"
#include "tests/kernels/gpu_operations.h"

namespace tilewave {
namespace {

using namespace testing_support;

class GpuConvolution : public GpuTest {};

TEST_F(GpuConvolution, IsItsDefinition) {
  constexpr double kTf32 = 0x1p-10;  // that cutting an operand off loses at most
  const std::pair<Precision, ConvolutionErrors> precisions[] = {
      {Precision::fp64, {.term = 4.0 * epsilon<double>()}},
      {Precision::fp32, {.term = 4.0 * epsilon<float>()}},
      {Precision::tf32, {.operands = 2.0 * kTf32, .term = 4.0 * epsilon<float>()}},
      {Precision::bf16, {.stored = epsilon<bf16>(), .term = 4.0 * epsilon<float>()}},
      {Precision::fp16, {.stored = epsilon<f16>(), .term = 4.0 * epsilon<float>()}}};
  std::vector<ConvolutionCase> cases = convolution_cases();
  cases.push_back({{.count = 3, .channels = 72, .height = 29, .width = 31},
                   {.stride_down = 2, .stride_across = 2, .padding_down = 1, .padding_across = 1}});
  cases.push_back({{.count = 2, .channels = 64, .height = 16, .width = 16}, {.padding_down = 1, .padding_across = 1}});
  for (const auto& [precision, errors] : precisions) {
    for (const PitchPolicy pitch : {PitchPolicy::packed, PitchPolicy::aligned}) {
      SCOPED_TRACE(concat(name_of(precision), pitch == PitchPolicy::packed ? ", packed" : ", aligned"));
      Context context(make_cuda_queue(device_.index), device_, {.precision = precision, .pitch = pitch});
      for (const ConvolutionCase& c : cases) expect_the_definitions(context, c, errors);
    }
  }
}

}  // namespace
}  // namespace tilewave
