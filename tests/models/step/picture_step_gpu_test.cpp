// Steps of models that see, on a GPU: each stem takes the CPU's steps, captured or not, validates as the CPU does, and a captioner writes
// what the CPU writes.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "models/decoding/decode.h"
#include "tests/kernels/gpu.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

using testing_support::GpuTest;

struct SeeingCase {
  const char* name;
  bool writes = false;  // captions
  std::vector<std::string> overrides;

  Recipe recipe(const std::string& precision) const {
    std::vector<std::string> all = overrides;
    all.push_back("run.precision=" + precision);
    return writes ? small_captioner(all) : small_classifier(all);
  }
};

std::vector<SeeingCase> cases() {
  const std::vector<std::string> convolutions = {"model.stem=convolution", "model.patch=4"},
                                 pooled = {"model.stem=convolution", "model.patch=4", "model.stem_pool=true", "model.stem_norm=layer_norm",
                                           "data.channels=3"};
  return {{.name = "patches", .overrides = {}},
          {.name = "convolutions", .overrides = convolutions},
          {.name = "pooled", .overrides = pooled},
          {.name = "captions", .writes = true, .overrides = {}},
          {.name = "captions of convolutions", .writes = true, .overrides = convolutions}};
}

class GpuPictureStep : public GpuTest {
 protected:
  static double validated(SmallRun& run) { return run.step.validate(run.corpus.validation(batch_shape(run.resolved))); }
};

TEST_F(GpuPictureStep, FollowsTheCpu) {
  struct Bound {
    const char* precision;
    double losses;
  };
  for (const SeeingCase& one : cases()) {
    SCOPED_TRACE(one.name);
    SmallRun reference(one.recipe("fp64"));
    const std::vector<double> losses = reference.losses(4);
    const double validation = validated(reference);
    for (const Bound& bound : {Bound{"fp64", 1e-10}, {"fp32", 1e-4}, {"tf32", 1e-2}, {"bf16", 3e-2}, {"fp16", 1e-2}}) {
      SCOPED_TRACE(bound.precision);
      SmallRun run(one.recipe(bound.precision), queue_, device_);
      const std::vector<double> own = run.losses(4);
      for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], losses[i], bound.losses * losses[i]);
      EXPECT_NEAR(validated(run), validation, bound.losses * validation);
    }
  }
}

TEST_F(GpuPictureStep, CapturedAndSeparateLaunchesGiveTheSameBits) {
  for (const SeeingCase& one : cases()) {
    for (const char* precision : {"fp32", "bf16"}) {
      SCOPED_TRACE(std::string(one.name) + " in " + precision);
      SmallRun heap(one.recipe(precision), queue_, device_), captured(one.recipe(precision), queue_, device_);
      captured.step.use_step_memory(trace_step(captured.resolved, device_), Launches::captured);
      EXPECT_EQ(heap.losses(5), captured.losses(5));
      EXPECT_EQ(heap.weights(), captured.weights());
      EXPECT_EQ(validated(heap), validated(captured));
    }
  }
}

TEST_F(GpuPictureStep, WritesWhatTheCpuWrites) {
  const SeeingCase one = cases().back();
  SmallRun reference(one.recipe("fp64")), run(one.recipe("fp64"), queue_, device_);
  reference.losses(4);
  run.losses(4);
  const Batch batch = reference.corpus.validation(batch_shape(reference.resolved)).next().value();
  std::vector<std::vector<std::uint8_t>> pictures;
  for (std::size_t begin = 0; begin < batch.pixels.size(); begin += 400) {
    pictures.emplace_back(batch.pixels.begin() + static_cast<std::ptrdiff_t>(begin),
                          batch.pixels.begin() + static_cast<std::ptrdiff_t>(begin + 400));
  }
  EXPECT_EQ(caption(run.step.model(), pictures, {.beams = 2}), caption(reference.step.model(), pictures, {.beams = 2}));
}

}  // namespace
}  // namespace tilewave
