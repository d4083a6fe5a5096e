// Batch normalization in both layouts against its definition, its gradients against central differences; passes, threads and running
// statistics.
#include "kernels/ops/batch_norm.h"

#include "tests/kernels/ops/batch_norm_problem.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr Images kImages[] = {{.count = 2, .channels = 1, .height = 1, .width = 1},
                              {.count = 1, .channels = 3, .height = 2, .width = 5},
                              {.count = 3, .channels = 17, .height = 4, .width = 3},
                              {.count = 5, .channels = 35, .height = 7, .width = 9}};
constexpr ImageLayout kLayouts[] = {ImageLayout::nhwc, ImageLayout::nchw};
constexpr BatchNormPasses kPasses[] = {BatchNormPasses::one, BatchNormPasses::several};

// By the definition: what torch.nn.functional.batch_norm with momentum 0.1 and eps 1e-5 gives.
template <class T>
std::vector<std::vector<double>> defined(const BatchNormMatrices<T>& m, BatchNormMode mode, bool accumulate) {
  const Images& images = m.images;
  const auto n = static_cast<double>(images.count * images.pixels());
  const auto channels = static_cast<std::size_t>(images.channels);
  std::vector<double> mean(channels), variance(channels), dgamma(channels), dbeta(channels), running_mean, running_variance, rstd;
  const auto at = [](std::int64_t channel) { return static_cast<std::size_t>(channel); };
  if (mode == BatchNormMode::training) {
    each_image_value(images, [&](const ImageAt& i) { mean[at(i.channel)] += value_at(m.x, images, i) / n; });
    each_image_value(images,
                     [&](const ImageAt& i) { variance[at(i.channel)] += std::pow(value_at(m.x, images, i) - mean[at(i.channel)], 2) / n; });
  } else {
    mean = m.running_mean.values();
    variance = m.running_variance.values();
  }
  running_mean = m.running_mean.values();
  running_variance = m.running_variance.values();
  for (std::size_t c = 0; c < channels; ++c) {
    rstd.push_back(1.0 / std::sqrt(variance[c] + 1e-5));
    if (mode == BatchNormMode::evaluation) continue;
    running_mean[c] = 0.9 * running_mean[c] + 0.1 * mean[c];
    running_variance[c] = 0.9 * running_variance[c] + 0.1 * variance[c] * n / (n - 1.0);
  }
  Matrix<double> y(images.rows(), images.cols()), dx(images.rows(), images.cols());
  const auto h = [&](const ImageAt& i) { return (value_at(m.x, images, i) - mean[at(i.channel)]) * rstd[at(i.channel)]; };
  each_image_value(images, [&](const ImageAt& i) {
    value_at(y, images, i) = h(i) * m.gamma(0, i.channel) + m.beta(0, i.channel);
    dgamma[at(i.channel)] += value_at(m.dy, images, i) * h(i);
    dbeta[at(i.channel)] += value_at(m.dy, images, i);
  });
  const double part = mode == BatchNormMode::training ? 1.0 / n : 0.0;
  each_image_value(images, [&](const ImageAt& i) {
    const std::size_t c = at(i.channel);
    value_at(dx, images, i) = m.gamma(0, i.channel) * rstd[c] * (value_at(m.dy, images, i) - dbeta[c] * part - h(i) * dgamma[c] * part) +
                              (accumulate ? static_cast<double>(value_at(m.dx, images, i)) : 0.0);
  });
  for (std::size_t c = 0; c < channels && accumulate; ++c) {
    dgamma[c] += m.dgamma(0, static_cast<std::int64_t>(c));
    dbeta[c] += m.dbeta(0, static_cast<std::int64_t>(c));
  }
  return {y.values(), mean, rstd, running_mean, running_variance, dx.values(), dgamma, dbeta};
}

template <class T>
class BatchNormKernel : public ::testing::Test {};
TYPED_TEST_SUITE(BatchNormKernel, Floats);

TYPED_TEST(BatchNormKernel, IsItsDefinition) {
  using T = TypeParam;
  for (const Images& shape : kImages) {
    for (const ImageLayout layout : kLayouts) {
      for (const BatchNormMode mode : {BatchNormMode::training, BatchNormMode::evaluation}) {
        for (const bool accumulate : {false, true}) {
          for (const BatchNormPasses passes : kPasses) {
            const Images images = with_layout(shape, layout);
            SCOPED_TRACE(concat(images.count, " x ", images.channels, " x ", images.pixels(), ' ', name_of(layout),
                                mode == BatchNormMode::training ? "" : ", evaluation", accumulate ? ", accumulated" : "",
                                passes == BatchNormPasses::one ? "" : ", several passes"));
            BatchNormMatrices<T> m(images, 3);
            const auto expected = defined(m, mode, accumulate);
            CpuQueue queue = make_cpu_queue(2);
            run(queue, m.forward(mode, passes));
            run(queue, m.backward(accumulate, mode, passes));
            const auto actual = batch_norm_results(m);
            for (std::size_t i = 0; i < actual.size(); ++i) {
              SCOPED_TRACE(kBatchNormResults[i]);
              const double scale = i == 5 ? norm(m.dy.values()) * norm(m.rstd.values()) : norm(expected[i]);  // dx may nearly vanish
              ASSERT_GT(scale, 0.0);
              ASSERT_EQ(actual[i].size(), expected[i].size());
              for (std::size_t e = 0; e < actual[i].size(); ++e) {
                ASSERT_NEAR(actual[i][e], expected[i][e], 16.0 * epsilon<T>() * (scale + std::abs(expected[i][e]))) << "element " << e;
              }
            }
            EXPECT_TRUE(m.y.guards_intact() && m.dx.guards_intact() && m.mean.guards_intact() && m.running_variance.guards_intact());
          }
        }
      }
    }
  }
}

TYPED_TEST(BatchNormKernel, LayoutsPassesAndThreadsGiveTheSameBits) {
  using T = TypeParam;
  const Images shape{.count = 5, .channels = 35, .height = 7, .width = 9};
  for (const ImageLayout layout : kLayouts) {
    const Images images = with_layout(shape, layout);
    expect_same_bits_for_every_thread_count<T>([&](CpuQueue& queue) {
      BatchNormMatrices<T> one(images, 4), several(images, 4);
      for (auto* m : {&one, &several}) {
        const BatchNormPasses passes = m == &one ? BatchNormPasses::one : BatchNormPasses::several;
        run(queue, m->forward(BatchNormMode::training, passes));
        run(queue, m->backward(false, BatchNormMode::training, passes));
      }
      EXPECT_EQ(batch_norm_results(one), batch_norm_results(several));
      return std::vector<Matrix<T>>{one.y, one.mean, one.rstd, one.running_mean, one.running_variance, one.dx, one.dgamma, one.dbeta};
    });
  }
}

// A mean a thousand times the deviation takes no digits from the variance.
TEST(BatchNorm, ALargeMeanLeavesTheVarianceItsDigits) {
  const Images images{.count = 4, .channels = 3, .height = 8, .width = 8, .layout = ImageLayout::nhwc};
  BatchNormMatrices<float> m(images, 5);
  BatchNormMatrices<double> wide(images, 5);
  each_image_value(images, [&](const ImageAt& i) {
    value_at(m.x, images, i) += 4096.0F;
    value_at(wide.x, images, i) = static_cast<double>(value_at(m.x, images, i));
  });
  CpuQueue queue = make_cpu_queue(1);
  run(queue, m.forward());
  run(queue, wide.forward());
  EXPECT_LE(relative_error(m.rstd.values(), wide.rstd.values()), 1e-6);
}

TEST(BatchNorm, GradientsAreCentralDifferences) {
  for (const ImageLayout layout : kLayouts) {
    for (const BatchNormMode mode : {BatchNormMode::training, BatchNormMode::evaluation}) {
      SCOPED_TRACE(concat(name_of(layout), mode == BatchNormMode::training ? "" : ", evaluation"));
      const Images images{.count = 2, .channels = 3, .height = 2, .width = 3, .layout = layout};
      BatchNormMatrices<double> m(images, 6);
      CpuQueue queue = make_cpu_queue(1);
      const auto loss = [&] {
        BatchNormMatrices<double> probe = m;
        run(queue, probe.forward(mode));
        double sum = 0.0;
        each_image_value(images, [&](const ImageAt& i) { sum += value_at(probe.y, images, i) * value_at(probe.dy, images, i); });
        return sum;
      };
      BatchNormMatrices<double> gradients = m;
      run(queue, gradients.forward(mode));
      run(queue, gradients.backward(false, mode));
      expect_central_differences(m.x, gradients.dx, loss);
      expect_central_differences(m.gamma, gradients.dgamma, loss);
      expect_central_differences(m.beta, gradients.dbeta, loss);
    }
  }
}

// Numbers that a person can check: a channel of 1, 2, 3 and 6, whose variance is 3.5, and 14 / 3 unbiased.
TEST(BatchNorm, OfFourNumbers) {
  const Images images{.count = 2, .channels = 1, .height = 1, .width = 2, .layout = ImageLayout::nchw};
  BatchNormMatrices<double> m(images, 1);
  for (const auto& [image, pixel, value] : {std::tuple{0, 0, 1.0}, {0, 1, 2.0}, {1, 0, 3.0}, {1, 1, 6.0}}) m.x(image, pixel) = value;
  m.running_mean(0, 0) = 0.0;
  m.running_variance(0, 0) = 1.0;
  CpuQueue queue = make_cpu_queue(1);
  run(queue, m.forward());
  EXPECT_DOUBLE_EQ(m.mean(0, 0), 3.0);
  EXPECT_NEAR(m.rstd(0, 0), 1.0 / std::sqrt(3.5 + 1e-5), 1e-15);
  EXPECT_DOUBLE_EQ(m.running_mean(0, 0), 0.3);
  EXPECT_NEAR(m.running_variance(0, 0), 0.9 + 0.1 * 14.0 / 3.0, 1e-15);
}

TEST(BatchNormContract, NamesWhatDoesNotFit) {
  CpuQueue queue = make_cpu_queue(1);
  const Images images{.count = 2, .channels = 3, .height = 2, .width = 2, .layout = ImageLayout::nhwc};
  BatchNormMatrices<float> m(images, 1);
  const auto refusal = [&](const std::function<void(BatchNormArgs&)>& change, const std::string& sentence,
                           BatchNormMode mode = BatchNormMode::training) {
    BatchNormArgs args = m.forward(mode);
    change(args);
    expect_error([&] { run(queue, args); }, sentence);
  };
  Matrix<float> two(1, 2), one_row(1, 3);
  refusal([&](BatchNormArgs& args) { args.gamma = two.view(); },
          "batch_norm: x has 3 columns and gamma 2; in nhwc each column is a channel.");
  refusal([&](BatchNormArgs& args) { args.layout = ImageLayout::nchw; },
          "batch_norm: x has 8 rows and gamma 3 columns; in nchw rows are the channels of whole images.");
  refusal([&](BatchNormArgs& args) { args.beta = two.view(); }, "batch_norm: beta is f32 [1, 2]; it must be f32 [1, 3].");
  refusal([&](BatchNormArgs& args) { args.running_mean = {}; }, "running_mean and running_variance come together");
  refusal([&](BatchNormArgs& args) { args.running_mean = args.running_variance = {}; }, "an evaluation takes running_mean",
          BatchNormMode::evaluation);
  refusal([&](BatchNormArgs& args) { args.x = one_row.view(), args.y = one_row.view(); },
          "batch_norm: a channel of x has 1 value; its variance takes two at least.");
  refusal([&](BatchNormArgs& args) { args.partial = {}; }, "batch_norm: partial is absent");
  BatchNormBackwardArgs backward = m.backward(false);
  backward.dgamma = two.view();
  expect_error([&] { run(queue, backward); }, "batch_norm_backward: dgamma is f32 [1, 2]; it must be f32 [1, 3].");
}

TEST(BatchNormCost, CountsTheReadsOfItsPasses) {
  const Images images{.count = 8, .channels = 64, .height = 16, .width = 16, .layout = ImageLayout::nhwc};
  BatchNormMatrices<float> m(images, 1);
  const BatchNormArgs one = m.forward(), several = m.forward(BatchNormMode::training, BatchNormPasses::several),
                      evaluation = m.forward(BatchNormMode::evaluation, BatchNormPasses::several);
  EXPECT_EQ(cost(several).bytes - cost(one).bytes, one.x.bytes());
  EXPECT_LT(cost(evaluation).bytes, cost(several).bytes);
  EXPECT_EQ(trace_entry(one).time.launches, 1);
  EXPECT_EQ(trace_entry(several).time.launches, 3);
  EXPECT_EQ(trace_entry(evaluation).time.launches, 2);
  const BatchNormBackwardArgs back = m.backward(false), back_again = m.backward(false, BatchNormMode::training, BatchNormPasses::several);
  EXPECT_EQ(cost(back_again).bytes - cost(back).bytes, 2 * one.x.bytes());
}

}  // namespace
}  // namespace tilewave
