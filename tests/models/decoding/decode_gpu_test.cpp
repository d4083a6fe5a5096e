// Decoding on a GPU: every operation of the encoder and of the first tokens gives each row what the CPU gives it, in
// groups that fill no tile.
#include <cmath>
#include <utility>

#include "models/decoding/decode.h"
#include "tests/kernels/gpu.h"
#include "tests/models/training/small_runs.h"

namespace tilewave {
namespace {

using testing_support::GpuTest;

struct Seen {
  std::string what;
  Shape shape;
  std::vector<double> elements;
};

class GpuDecode : public GpuTest {
 protected:
  static Recipe recipe(const std::string& precision) {
    return small_recipe({"model.d_model=128", "model.d_ff=512", "model.heads=4", "model.vocabulary=128", "model.max_positions=128",
                         "run.precision=" + precision});
  }

  // What the operations of a translation see, the first `most` of them.
  static std::vector<Seen> seen(SmallRun& run, const std::vector<std::vector<std::int32_t>>& sources, std::size_t most) {
    std::vector<Seen> all;
    run.context.inspect([&](const std::string& layer, std::string_view what, const Tensor& tensor) {
      if (all.size() < most) all.push_back({concat(layer, ": ", what), tensor.shape(), read_elements(run.context, tensor)});
    });
    translate(run.step.model(), sources, {});
    run.context.inspect({});
    return all;
  }
};

TEST_F(GpuDecode, EveryOperationGivesEveryRowWhatTheCpuGivesIt) {
  std::mt19937 random(3);
  std::vector<std::vector<std::int32_t>> sources(232);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i].resize(20 + i % 12);
    for (std::int32_t& id : sources[i]) id = static_cast<std::int32_t>(4 + random() % 120);
  }
  SmallRun reference(recipe("fp64"));
  const std::vector<Seen> expected = seen(reference, sources, 33);
  for (const auto& [precision, bound] : {std::pair{"fp32", 1e-4}, {"bf16", 0.05}, {"fp16", 0.01}}) {
    SCOPED_TRACE(precision);
    SmallRun run(recipe(precision), queue_, device_);
    const std::vector<Seen> actual = seen(run, sources, expected.size());
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(actual[i].what, expected[i].what);
      ASSERT_EQ(actual[i].shape, expected[i].shape);
      const std::int64_t cols = expected[i].shape.cols;
      for (std::int64_t row = 0; row < expected[i].shape.rows; ++row) {
        double difference = 0.0, norm = 0.0;
        for (std::int64_t at = row * cols; at < (row + 1) * cols; ++at) {
          const auto index = static_cast<std::size_t>(at);
          difference += std::pow(actual[i].elements[index] - expected[i].elements[index], 2.0);
          norm += std::pow(expected[i].elements[index], 2.0);
        }
        ASSERT_LE(std::sqrt(difference / norm), bound) << expected[i].what << " " << expected[i].shape << ", row " << row;
      }
    }
  }
}

}  // namespace
}  // namespace tilewave
