// layer_norm, rms_norm, softmax and cross_entropy on a GPU against the CPU in double: every way a row is shared out, bits that depend on
// neither pitch nor run, and what a label outside the vocabulary does.
#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/layer_norm.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/softmax.h"
#include "tests/kernels/gpu_operations.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, cols;
};
// Rows of a warp, of four warps, and such as are read again, in every type; tails of packs; a chunk of rows and one more.
constexpr Size kSizes[] = {{1, 2}, {3, 15}, {17, 256}, {16, 257}, {33, 1025}, {9, 700}, {5, 4099}, {2, 16391}, {3, 33000}};

template <class T>
class GpuRows : public GpuOperation<T> {
 protected:
  CpuQueue cpu_ = make_cpu_queue(2);
};
TYPED_TEST_SUITE(GpuRows, DeviceFloats);

template <class T>
struct LayerNormProblem {
  explicit LayerNormProblem(Size size, std::uint64_t seed = 3) {
    Random random(seed);
    x = Matrix<T>::uniform(size.rows, size.cols, random, -1.0, 3.0);
    gamma = Matrix<T>::uniform(1, size.cols, random, 0.5, 1.5);
    beta = Matrix<T>::uniform(1, size.cols, random);
    dy = Matrix<T>::uniform(size.rows, size.cols, random);
    dx = Matrix<T>::uniform(size.rows, size.cols, random);
    dgamma = Matrix<Statistics<T>>::uniform(1, size.cols, random);
  }
  Matrix<T> x{0, 0}, gamma{0, 0}, beta{0, 0}, dy{0, 0}, dx{0, 0};
  Matrix<Statistics<T>> dgamma{0, 0};
};

// y, mean, rstd, dx, dgamma, dbeta
using Results = std::vector<std::vector<double>>;

Results layer_norm_on_cpu(CpuQueue& queue, const LayerNormProblem<double>& p, bool accumulate) {
  const std::int64_t rows = p.x.rows(), cols = p.x.cols();
  Matrix<double> y(rows, cols), mean(rows, 1), rstd(rows, 1), dx = p.dx, dgamma = p.dgamma, dbeta = p.dgamma,
                                                              partial(layer_norm_partial_rows(rows), cols);
  run(queue, LayerNormArgs{
                 .x = p.x.view(), .gamma = p.gamma.view(), .beta = p.beta.view(), .y = y.view(), .mean = mean.view(), .rstd = rstd.view()});
  run(queue, LayerNormBackwardArgs{.x = p.x.view(),
                                   .gamma = p.gamma.view(),
                                   .mean = mean.view(),
                                   .rstd = rstd.view(),
                                   .dy = p.dy.view(),
                                   .dx = dx.view(),
                                   .accumulate = accumulate,
                                   .dgamma = dgamma.view(),
                                   .dbeta = dbeta.view(),
                                   .accumulate_parameters = accumulate,
                                   .partial = partial.view()});
  return {y.values(), mean.values(), rstd.values(), dx.values(), dgamma.values(), dbeta.values()};
}

template <class T>
Results layer_norm_on_gpu(Queue& queue, const LayerNormProblem<T>& p, bool accumulate, Pitch pitch) {
  using A = Statistics<T>;
  const std::int64_t rows = p.x.rows(), cols = p.x.cols();
  Twin<T> x(queue, p.x, pitch), gamma(queue, p.gamma, pitch), beta(queue, p.beta, pitch), dy(queue, p.dy, pitch),
      y(queue, rows, cols, pitch);
  Twin<A> mean(queue, rows, 1), rstd(queue, rows, 1), partial(queue, layer_norm_partial_rows(rows), cols, pitch);
  Twin<T> dx = accumulate ? Twin<T>(queue, p.dx, pitch) : Twin<T>(queue, rows, cols, pitch);
  Twin<A> dgamma = accumulate ? Twin<A>(queue, p.dgamma, pitch) : Twin<A>(queue, 1, cols, pitch);
  Twin<A> dbeta = accumulate ? Twin<A>(queue, p.dgamma, pitch) : Twin<A>(queue, 1, cols, pitch);
  run(queue,
      LayerNormArgs{.x = x.view(), .gamma = gamma.view(), .beta = beta.view(), .y = y.view(), .mean = mean.view(), .rstd = rstd.view()});
  run(queue, LayerNormBackwardArgs{.x = x.view(),
                                   .gamma = gamma.view(),
                                   .mean = mean.view(),
                                   .rstd = rstd.view(),
                                   .dy = dy.view(),
                                   .dx = dx.view(),
                                   .accumulate = accumulate,
                                   .dgamma = dgamma.view(),
                                   .dbeta = dbeta.view(),
                                   .accumulate_parameters = accumulate,
                                   .partial = partial.view()});
  EXPECT_TRUE(y.fetch().guards_intact() && mean.fetch().guards_intact() && rstd.fetch().guards_intact());
  EXPECT_TRUE(dx.fetch().guards_intact() && dgamma.fetch().guards_intact() && dbeta.fetch().guards_intact());
  EXPECT_TRUE(partial.fetch().guards_intact());
  return {y.fetch().values(),  mean.fetch().values(),   rstd.fetch().values(),
          dx.fetch().values(), dgamma.fetch().values(), dbeta.fetch().values()};
}

TYPED_TEST(GpuRows, LayerNormIsTheCpus) {
  using T = TypeParam;
  constexpr const char* kNames[] = {"y", "mean", "rstd", "dx", "dgamma", "dbeta"};
  for (const Size size : kSizes) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(concat(size.rows, " x ", size.cols, accumulate ? ", accumulated" : ""));
      const LayerNormProblem<T> p(size);
      LayerNormProblem<double> wide(size);
      wide.x = converted<double>(p.x);
      wide.gamma = converted<double>(p.gamma);
      wide.beta = converted<double>(p.beta);
      wide.dy = converted<double>(p.dy);
      wide.dx = converted<double>(p.dx);
      wide.dgamma = converted<double>(p.dgamma);
      const Results expected = layer_norm_on_cpu(this->cpu_, wide, accumulate);
      const Results odd = layer_norm_on_gpu(this->queue_, p, accumulate, Pitch::odd),
                    aligned = layer_norm_on_gpu(this->queue_, p, accumulate, Pitch::aligned);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        SCOPED_TRACE(kNames[i]);
        const bool rounded = i == 0 || i == 3;                  // y and dx are T's, the others statistics
        if (i == 3 && size.cols == 2 && !accumulate) continue;  // h is +-1 there and dx vanishes
        ASSERT_GT(norm(expected[i]), 0.0);
        EXPECT_LE(relative_error(odd[i], expected[i]), rounded ? rounding<T>(size.cols) : tolerance<Statistics<T>>(size.cols + size.rows));
        EXPECT_EQ(odd[i], aligned[i]) << "bits depend on the pitch";
      }
      EXPECT_EQ(layer_norm_on_gpu(this->queue_, p, accumulate, Pitch::odd), odd) << "bits differ from run to run";
    }
  }
}

// One row to a warp, to two and to four, in every type; chunks of 8 rows and of more: one row, those a block's groups take at once,
// one row more or less than a chunk, and more rows than short chunks have room for.
TYPED_TEST(GpuRows, LayerNormBackwardOfEveryShareOfRows) {
  using T = TypeParam;
  constexpr std::int64_t kShort = 8 * kLayerNormChunks;
  constexpr Size kShares[] = {{1, 136},         {2, 136},   {4, 136},   {5, 136},   {7, 136},         {8, 136},
                              {9, 136},         {31, 136},  {33, 1024}, {15, 2056}, {kShort - 1, 24}, {kShort, 24},
                              {kShort + 1, 24}, {5120, 64}, {17, 520},  {9, 4096},  {3, 1032},        {2 * kShort + 5, 8}};
  for (const Size size : kShares) {
    SCOPED_TRACE(concat(size.rows, " x ", size.cols));
    const LayerNormProblem<T> p(size, 7);
    LayerNormProblem<double> wide(size, 7);
    wide.x = converted<double>(p.x);
    wide.gamma = converted<double>(p.gamma);
    wide.beta = converted<double>(p.beta);
    wide.dy = converted<double>(p.dy);
    wide.dx = converted<double>(p.dx);
    wide.dgamma = converted<double>(p.dgamma);
    for (const bool accumulate : {false, true}) {
      const Results expected = layer_norm_on_cpu(this->cpu_, wide, accumulate);
      const Results once = layer_norm_on_gpu(this->queue_, p, accumulate, Pitch::aligned);
      for (const std::size_t i : {3U, 4U, 5U}) {
        ASSERT_GT(norm(expected[i]), 0.0);
        EXPECT_LE(relative_error(once[i], expected[i]), i == 3 ? rounding<T>(size.cols) : tolerance<Statistics<T>>(size.cols + size.rows));
      }
      EXPECT_EQ(layer_norm_on_gpu(this->queue_, p, accumulate, Pitch::aligned), once) << "bits differ from run to run";
      EXPECT_EQ(layer_norm_on_gpu(this->queue_, p, accumulate, Pitch::odd), once) << "bits depend on the pitch";
    }
  }
}

TYPED_TEST(GpuRows, SoftmaxIsTheCpus) {
  using T = TypeParam;
  for (const Size size : kSizes) {
    SCOPED_TRACE(concat(size.rows, " x ", size.cols));
    Random random(4);
    const auto x = Matrix<T>::uniform(size.rows, size.cols, random, -4.0, 4.0), dy = Matrix<T>::uniform(size.rows, size.cols, random),
               y_given = Matrix<T>::uniform(size.rows, size.cols, random, 0.0, 1.0);
    const auto wide_x = converted<double>(x), wide_dy = converted<double>(dy), wide_y = converted<double>(y_given);
    Matrix<double> y(size.rows, size.cols), dx(size.rows, size.cols), added = wide_dy;
    run(this->cpu_, SoftmaxArgs{.x = wide_x.view(), .y = y.view()});
    run(this->cpu_, SoftmaxBackwardArgs{.y = wide_y.view(), .dy = wide_dy.view(), .dx = dx.view()});
    run(this->cpu_, SoftmaxBackwardArgs{.y = wide_y.view(), .dy = wide_dy.view(), .dx = added.view(), .accumulate = true});
    std::vector<double> bits[2];
    for (const Pitch pitch : kPitches) {
      Twin<T> device_x(this->queue_, x, pitch), device_dy(this->queue_, dy, pitch), device_y(this->queue_, y_given, pitch),
          out(this->queue_, size.rows, size.cols, pitch), device_dx(this->queue_, size.rows, size.cols, pitch),
          device_added(this->queue_, dy, pitch);
      run(this->queue_, SoftmaxArgs{.x = device_x.view(), .y = out.view()});
      run(this->queue_, SoftmaxArgs{.x = device_x.view(), .y = device_x.view()});
      run(this->queue_, SoftmaxBackwardArgs{.y = device_y.view(), .dy = device_dy.view(), .dx = device_dx.view()});
      run(this->queue_, SoftmaxBackwardArgs{.y = device_y.view(), .dy = device_dy.view(), .dx = device_added.view(), .accumulate = true});
      run(this->queue_, SoftmaxBackwardArgs{.y = device_y.view(), .dy = device_dy.view(), .dx = device_dy.view()});
      expect_rounded(out.fetch(), y.values(), size.cols);
      expect_rounded(device_dx.fetch(), dx.values(), size.cols);
      expect_rounded(device_added.fetch(), added.values(), size.cols);
      EXPECT_EQ(device_x.fetch().values(), out.fetch().values()) << "in place";
      EXPECT_EQ(device_dy.fetch().values(), device_dx.fetch().values()) << "in place";
      auto& kept = bits[static_cast<int>(pitch)];
      kept = out.fetch().values();
      const auto more = device_dx.fetch().values();
      kept.insert(kept.end(), more.begin(), more.end());
    }
    EXPECT_EQ(bits[0], bits[1]) << "bits depend on the pitch";
  }
}

struct Case {
  std::int64_t rows, vocabulary, padding;
  double smoothing;
};
// Rows that shared memory holds in every type, in 16 bits alone, and in none.
constexpr Case kCases[] = {{1, 2, 0, 0.0},     {7, 15, 1, 0.1},   {33, 16, 16, 0.0},   {40, 17, 15, 0.25},
                           {300, 128, 0, 0.1}, {9, 5003, 5, 0.1}, {5, 50257, 47, 0.1}, {3, 120001, 3, 0.0}};

struct LossResults {
  std::vector<double> gradient, row_loss;
  double loss = 0.0;
  StepState state;
};

template <class T>
struct LossProblem {
  explicit LossProblem(const Case& c) : shape(c), labels(1, c.rows) {
    Random random(5);
    logits = Matrix<T>::uniform(c.rows, c.vocabulary + c.padding, random, -3.0, 3.0);
    for (std::int64_t r = 0; r < c.rows; ++r) {
      labels(0, r) = r % 5 == 3 ? -1 : static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(c.vocabulary));
      state.real_tokens += labels(0, r) >= 0 ? 1 : 0;
    }
    state.real_tokens += 2;  // of another batch of the step
    state.loss = 0.5;
    state.loss_scale = 8.0;
  }
  Case shape;
  Matrix<std::int32_t> labels;
  Matrix<T> logits{0, 0};
  StepState state;
};

template <class T>
CrossEntropyArgs loss_args(const LossProblem<T>& p) {
  return {.vocabulary = p.shape.vocabulary, .smoothing = p.shape.smoothing};
}

LossResults loss_on_cpu(CpuQueue& queue, const LossProblem<double>& p) {
  Matrix<double> logits = p.logits, row_loss(1, p.shape.rows), loss(1, 1);
  StepState state = p.state;
  CrossEntropyArgs args = loss_args(p);
  args.logits = logits.view();
  args.labels = p.labels.view();
  args.row_loss = row_loss.view();
  args.loss = loss.view();
  args.state = &state;
  run(queue, args);
  return {logits.values(), row_loss.values(), loss(0, 0), state};
}

template <class T>
LossResults loss_on_gpu(Queue& queue, const LossProblem<T>& p, Pitch pitch, LossGradient gradient = LossGradient::in_place) {
  Twin<T> logits(queue, p.logits, pitch);
  Twin<std::int32_t> labels(queue, p.labels);
  Twin<Statistics<T>> row_loss(queue, 1, p.shape.rows), loss(queue, 1, 1);
  DeviceState state(queue, p.state);
  CrossEntropyArgs args = loss_args(p);
  args.gradient = gradient;
  args.logits = logits.view();
  args.labels = labels.view();
  args.row_loss = row_loss.view();
  args.loss = loss.view();
  args.state = state.get();
  run(queue, args);
  EXPECT_TRUE(logits.fetch().guards_intact() && row_loss.fetch().guards_intact() && loss.fetch().guards_intact());
  return {logits.fetch().values(), row_loss.fetch().values(), to_double(loss.fetch()(0, 0)), state.read()};
}

TYPED_TEST(GpuRows, CrossEntropyIsTheCpus) {
  using T = TypeParam;
  for (const Case& c : kCases) {
    SCOPED_TRACE(concat(c.rows, " x ", c.vocabulary, " + ", c.padding));
    const LossProblem<T> p(c);
    LossProblem<double> wide(c);
    wide.logits = converted<double>(p.logits);
    const LossResults expected = loss_on_cpu(this->cpu_, wide), odd = loss_on_gpu(this->queue_, p, Pitch::odd),
                      aligned = loss_on_gpu(this->queue_, p, Pitch::aligned),
                      valued = loss_on_gpu(this->queue_, p, Pitch::aligned, LossGradient::none);
    // A loss is a difference of logits and their log-sum: it is as exact as these are, which are not above 3 + log(vocabulary).
    const double allowed = tolerance<Statistics<T>>(c.vocabulary) * (3.0 + std::log(static_cast<double>(c.vocabulary)));
    for (std::size_t r = 0; r < expected.row_loss.size(); ++r) EXPECT_NEAR(odd.row_loss[r], expected.row_loss[r], allowed);
    // So is a gradient of a probability and 1, times the scale.
    const double error = relative_error(odd.gradient, expected.gradient) * norm(expected.gradient);
    EXPECT_LE(error, rounding<T>(c.vocabulary) * (norm(expected.gradient) + p.state.loss_scale / static_cast<double>(p.state.real_tokens)));
    EXPECT_NEAR(odd.loss, expected.loss, allowed);
    EXPECT_NEAR(odd.state.loss, expected.state.loss, allowed);
    EXPECT_EQ(odd.gradient, aligned.gradient) << "bits depend on the pitch";
    EXPECT_EQ(odd.row_loss, aligned.row_loss);
    EXPECT_EQ(odd.state.loss, aligned.state.loss);
    EXPECT_EQ(loss_on_gpu(this->queue_, p, Pitch::odd).gradient, odd.gradient) << "bits differ from run to run";
    EXPECT_EQ(valued.row_loss, odd.row_loss);
    EXPECT_EQ(valued.gradient, p.logits.values());
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t v = 0; v < c.vocabulary + c.padding; ++v) {
        if (p.labels(0, r) < 0 || v >= c.vocabulary) {
          ASSERT_EQ(odd.gradient[static_cast<std::size_t>(r * (c.vocabulary + c.padding) + v)], 0.0) << r << ", " << v;
        }
      }
    }
  }
}

TYPED_TEST(GpuRows, CrossEntropyOfExtremeLogits) {
  using T = TypeParam;
  LossProblem<T> p({2, 20, 0, 0.1});
  for (std::int64_t v = 0; v < 20; ++v) p.logits(0, v) = from_double<T>(1e4 * to_double(p.logits(0, v)));
  EXPECT_TRUE(std::isfinite(loss_on_gpu(this->queue_, p, Pitch::odd).state.loss));
  LossProblem<T> masked = p;
  for (std::int64_t v = 0; v < 20; ++v) {
    if (v != masked.labels(0, 1)) masked.logits(1, v) = from_double<T>(-std::numeric_limits<double>::infinity());
  }
  masked.shape.smoothing = 0.0;
  EXPECT_EQ(loss_on_gpu(this->queue_, masked, Pitch::aligned).row_loss[1], 0.0) << "the label alone has a probability";
  p.logits(1, (p.labels(0, 1) + 1) % 20) = from_double<T>(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(loss_on_gpu(this->queue_, p, Pitch::odd).state.loss));
}

TYPED_TEST(GpuRows, CrossEntropyOfALabelOutsideTheVocabularyIsNan) {
  LossProblem<TypeParam> p({4, 9, 1, 0.1});
  p.labels(0, 1) = 9;
  const LossResults results = loss_on_gpu(this->queue_, p, Pitch::odd);
  EXPECT_TRUE(std::isnan(results.state.loss) && std::isnan(results.row_loss[1]));
  EXPECT_TRUE(std::isnan(results.gradient[10]));
  EXPECT_TRUE(std::isfinite(results.gradient[0]) && std::isfinite(results.row_loss[0]));
}

// y, rstd, dx, dgamma of matrices of rows x groups d.
template <class T>
struct RmsNormMatrices {
  Matrix<T> x, gamma, dy, earlier;
  Matrix<Statistics<T>> earlier_gamma;

  RmsNormMatrices(std::int64_t rows, std::int64_t cols, std::int64_t d, Random& random)
      : x(Matrix<T>::uniform(rows, cols, random, -1.0, 3.0)),
        gamma(Matrix<T>::uniform(1, d, random, 0.5, 1.5)),
        dy(Matrix<T>::uniform(rows, cols, random)),
        earlier(Matrix<T>::uniform(rows, cols, random)),
        earlier_gamma(Matrix<Statistics<T>>::uniform(1, d, random)) {}
};

struct RmsNormViews {
  ConstMatrixView x, gamma, dy;
  MatrixView y, rstd, dx, dgamma, partial;
};
void launch_rms_norm(Queue& queue, const RmsNormViews& v, bool accumulate) {
  run(queue, RmsNormArgs{.x = v.x, .gamma = v.gamma, .y = v.y, .rstd = v.rstd});
  run(queue, RmsNormBackwardArgs{.x = v.x,
                                 .gamma = v.gamma,
                                 .rstd = v.rstd,
                                 .dy = v.dy,
                                 .dx = v.dx,
                                 .accumulate = accumulate,
                                 .dgamma = v.dgamma,
                                 .accumulate_gamma = accumulate,
                                 .partial = v.partial});
}

template <class T>
Results rms_norm_on_gpu(Queue& queue, const RmsNormMatrices<T>& m, bool accumulate, Pitch pitch) {
  using A = Statistics<T>;
  const std::int64_t rows = m.x.rows(), cols = m.x.cols(), d = m.gamma.cols(), groups = cols / d;
  Twin<T> x(queue, m.x, pitch), gamma(queue, m.gamma, pitch), dy(queue, m.dy, pitch), y(queue, rows, cols, pitch);
  Twin<A> rstd(queue, rows, groups), partial(queue, rms_norm_partial_rows(rows * groups), d, pitch);
  Twin<T> dx = accumulate ? Twin<T>(queue, m.earlier, pitch) : Twin<T>(queue, rows, cols, pitch);
  Twin<A> dgamma = accumulate ? Twin<A>(queue, m.earlier_gamma, pitch) : Twin<A>(queue, 1, d, pitch);
  launch_rms_norm(queue,
                  {.x = x.view(),
                   .gamma = gamma.view(),
                   .dy = dy.view(),
                   .y = y.view(),
                   .rstd = rstd.view(),
                   .dx = dx.view(),
                   .dgamma = dgamma.view(),
                   .partial = partial.view()},
                  accumulate);
  EXPECT_TRUE(y.fetch().guards_intact() && rstd.fetch().guards_intact() && dx.fetch().guards_intact());
  EXPECT_TRUE(dgamma.fetch().guards_intact() && partial.fetch().guards_intact());
  return {y.fetch().values(), rstd.fetch().values(), dx.fetch().values(), dgamma.fetch().values()};
}

// Rows of a warp, of four and such as are read again; heads side by side, of whole packs and not; short chunks and long ones.
TYPED_TEST(GpuRows, RmsNormIsTheCpus) {
  using T = TypeParam;
  constexpr const char* kNames[] = {"y", "rstd", "dx", "dgamma"};
  for (const auto& [rows, groups, d] : {std::tuple{1, 1, 2},
                                        {3, 1, 15},
                                        {17, 1, 256},
                                        {33, 1, 1025},
                                        {9, 1, 4096},
                                        {2, 1, 16391},
                                        {5, 3, 8},
                                        {130, 5, 64},
                                        {40, 4, 33},
                                        {700, 6, 128},
                                        {5120, 1, 64}}) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(concat(rows, " x ", groups, " x ", d, accumulate ? ", accumulated" : ""));
      Random random(5);
      const RmsNormMatrices<T> m(rows, groups * d, d, random);
      const Matrix<double> x = converted<double>(m.x), gamma = converted<double>(m.gamma), dy = converted<double>(m.dy);
      Matrix<double> y(rows, groups * d), rstd(rows, groups), dx = converted<double>(m.earlier),
                                                              dgamma = converted<double>(m.earlier_gamma),
                                                              partial(rms_norm_partial_rows(static_cast<std::int64_t>(rows) * groups), d);
      Queue cpu = this->cpu_;
      launch_rms_norm(cpu,
                      {.x = x.view(),
                       .gamma = gamma.view(),
                       .dy = dy.view(),
                       .y = y.view(),
                       .rstd = rstd.view(),
                       .dx = dx.view(),
                       .dgamma = dgamma.view(),
                       .partial = partial.view()},
                      accumulate);
      const Results expected = {y.values(), rstd.values(), dx.values(), dgamma.values()};
      const Results odd = rms_norm_on_gpu(this->queue_, m, accumulate, Pitch::odd),
                    aligned = rms_norm_on_gpu(this->queue_, m, accumulate, Pitch::aligned);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        SCOPED_TRACE(kNames[i]);
        const bool rounded = i == 0 || i == 2;  // y and dx are T's, the others statistics
        ASSERT_GT(norm(expected[i]), 0.0);
        EXPECT_LE(relative_error(odd[i], expected[i]), rounded ? rounding<T>(d) : tolerance<Statistics<T>>(d + rows * groups));
        EXPECT_EQ(odd[i], aligned[i]) << "bits depend on the pitch";
      }
      EXPECT_EQ(rms_norm_on_gpu(this->queue_, m, accumulate, Pitch::odd), odd) << "bits differ from run to run";
    }
  }
}

}  // namespace
}  // namespace tilewave
