// gradient_norm and adamw on a GPU: against the CPU, over more tensors than one launch's table holds, at any pitch; padding that
// changes no bit; the loss scale.
#include <algorithm>
#include <array>

#include "kernels/core/graph.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/gradient_norm.h"
#include "tests/kernels/gpu_operations.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class GpuOptimizer : public GpuOperation<T> {
 protected:
  CpuQueue cpu_ = make_cpu_queue(2);
};
TYPED_TEST_SUITE(GpuOptimizer, Floats);

// Matrices around a block's 64 rows and 2,048 columns, a vector, and many small ones.
template <class T>
std::vector<Matrix<T>> gradients() {
  Random random(21);
  std::vector<Matrix<T>> all;
  for (const auto& [rows, cols] : {std::pair{1, 1}, {300, 129}, {64, 2048}, {65, 2049}, {1, 4130}, {17, 15}, {2, 40000}}) {
    all.push_back(Matrix<T>::uniform(rows, cols, random));
  }
  for (int i = 0; i < 500; ++i) all.push_back(Matrix<T>::uniform(1 + i % 3, 1 + i % 11, random));
  return all;
}

enum class Parts : std::uint8_t { whole, two };

template <class T>
StepState measure_on_gpu(Queue& queue, const std::vector<Matrix<T>>& all, const GradientNormArgs& given, const StepState& before,
                         Pitch pitch = Pitch::aligned, Parts parts = Parts::whole) {
  std::vector<std::unique_ptr<Twin<T>>> twins;
  std::vector<MatrixView> views;
  for (const Matrix<T>& gradient : all) {
    twins.push_back(std::make_unique<Twin<T>>(queue, gradient, pitch));
    views.push_back(twins.back()->view());
  }
  Twin<double> workspace(queue, 1, gradient_norm_workspace_cols(views));
  DeviceState state(queue, before);
  GradientNormArgs args = given;
  args.gradients = views;
  args.state = state.get();
  args.workspace = workspace.view();
  if (parts == Parts::whole) {
    run(queue, args);
  } else {
    run(queue, SumOfSquaresArgs{.gradients = args.gradients, .state = args.state, .workspace = args.workspace});
    run(queue, NormOfSquaresArgs{.clip_norm = args.clip_norm, .scaling = args.scaling, .state = args.state});
  }
  EXPECT_TRUE(workspace.fetch().guards_intact());
  return state.read();
}

TYPED_TEST(GpuOptimizer, TheNormIsTheCpus) {
  auto all = gradients<TypeParam>();
  const StepState before{.loss_scale = 4.0};
  StepState expected = before;
  std::vector<MatrixView> views;
  for (auto& gradient : all) views.push_back(gradient.view());
  run(this->cpu_, GradientNormArgs{.gradients = views, .clip_norm = 1.0, .state = &expected});
  ASSERT_GT(expected.gradient_norm, 1.0);
  const StepState odd = measure_on_gpu(this->queue_, all, {.clip_norm = 1.0}, before, Pitch::odd),
                  aligned = measure_on_gpu(this->queue_, all, {.clip_norm = 1.0}, before);
  EXPECT_NEAR(odd.gradient_norm, expected.gradient_norm, 1e-13 * expected.gradient_norm);
  EXPECT_NEAR(odd.clip_factor, expected.clip_factor, 1e-13 * expected.clip_factor);
  EXPECT_EQ(odd.gradient_scale, 4.0);
  EXPECT_EQ(odd.found_nonfinite, 0);
  EXPECT_EQ(odd.gradient_norm, aligned.gradient_norm) << "bits depend on the pitch";
  EXPECT_EQ(measure_on_gpu(this->queue_, all, {}, before).clip_factor, 1.0);
  const StepState two = measure_on_gpu(this->queue_, all, {.clip_norm = 1.0}, before, Pitch::aligned, Parts::two);
  EXPECT_EQ(two.gradient_norm, aligned.gradient_norm) << "bits depend on where the sum is read";
  EXPECT_EQ(two.clip_factor, aligned.clip_factor);
}

TYPED_TEST(GpuOptimizer, PaddingChangesNoBitOfTheNorm) {
  auto all = gradients<TypeParam>();
  const double expected = measure_on_gpu(this->queue_, all, {}, {}).gradient_norm;
  ASSERT_GT(expected, 0.0);
  for (Matrix<TypeParam>& gradient : all) {
    auto padded = Matrix<TypeParam>::filled(gradient.rows() + 70, gradient.cols() + 7, TypeParam(0));
    for (std::int64_t r = 0; r < gradient.rows(); ++r) std::copy_n(&gradient(r, 0), gradient.cols(), &padded(r, 0));
    gradient = padded;
  }
  EXPECT_EQ(measure_on_gpu(this->queue_, all, {}, {}).gradient_norm, expected);
}

TYPED_TEST(GpuOptimizer, NonfiniteGradientsAndLossesAreFoundAndNotForgotten) {
  for (const TypeParam bad : {std::numeric_limits<TypeParam>::quiet_NaN(), std::numeric_limits<TypeParam>::infinity()}) {
    auto all = gradients<TypeParam>();
    all[1](299, 128) = bad;
    EXPECT_EQ(measure_on_gpu(this->queue_, all, {.clip_norm = 1.0}, {}).found_nonfinite, 1);
  }
  const auto all = gradients<TypeParam>();
  EXPECT_EQ(measure_on_gpu(this->queue_, all, {}, {.loss = std::numeric_limits<double>::quiet_NaN()}).found_nonfinite, 1);
  EXPECT_EQ(measure_on_gpu(this->queue_, all, {}, {.found_nonfinite = 1}).found_nonfinite, 1);
}

TYPED_TEST(GpuOptimizer, TheLossScaleFallsAndGrowsAsOnTheCpu) {
  constexpr LossScaling kScaling{.enabled = true, .growth_interval = 2, .floor = 2.0};
  auto good = gradients<TypeParam>(), bad = good;
  bad[0](0, 0) = std::numeric_limits<TypeParam>::infinity();
  StepState cpu{.loss_scale = 8.0}, gpu = cpu;
  for (const bool finite : {true, false, true, true, true, false, false, false, true}) {
    auto& all = finite ? good : bad;
    std::vector<MatrixView> views;
    for (auto& gradient : all) views.push_back(gradient.view());
    run(this->cpu_, GradientNormArgs{.gradients = views, .scaling = kScaling, .state = &cpu});
    gpu = measure_on_gpu(this->queue_, all, {.scaling = kScaling}, gpu);
    EXPECT_EQ(gpu.loss_scale, cpu.loss_scale);
    EXPECT_EQ(gpu.gradient_scale, cpu.gradient_scale);
    EXPECT_EQ(gpu.good_steps, cpu.good_steps);
    EXPECT_EQ(gpu.found_nonfinite, finite ? 0 : 1);
    EXPECT_EQ(gpu.scale_exhausted, cpu.scale_exhausted);
  }
  EXPECT_EQ(gpu.scale_exhausted, 1);
}

template <class T>
struct Parameter {
  Parameter(std::int64_t rows, std::int64_t cols, DType compute_dtype, WeightDecay weight_decay, Random& random)
      : master(Matrix<T>::uniform(rows, cols, random)),
        first(Matrix<T>::uniform(rows, cols, random)),
        second(Matrix<T>::uniform(rows, cols, random, 0.0, 1.0)),
        gradient(Matrix<T>::uniform(rows, cols, random)),
        compute(compute_dtype),
        decay(weight_decay) {}
  Matrix<T> master, first, second, gradient;
  DType compute;  // i32 for none
  WeightDecay decay;
};

template <class T>
std::vector<Parameter<T>> parameters() {
  Random random(8);
  std::vector<Parameter<T>> all;
  all.emplace_back(37, 19, DType::bf16, WeightDecay::yes, random);
  all.emplace_back(1, 1, DType::i32, WeightDecay::no, random);
  all.emplace_back(300, 129, DType::f16, WeightDecay::yes, random);
  all.emplace_back(1, 5130, DType::f32, WeightDecay::no, random);
  all.emplace_back(7, 5, DType::f64, WeightDecay::no, random);
  for (int i = 0; i < 300; ++i) all.emplace_back(1 + i % 3, 1 + i % 7, i % 2 == 0 ? DType::bf16 : DType::i32, WeightDecay::yes, random);
  return all;
}

template <class T>
struct Updated {
  std::vector<std::vector<double>> masters, firsts, seconds, computes;
};

// gap: between rows; 0 makes every tensor one long row.
template <class T>
class DeviceParameter {
 public:
  DeviceParameter(Queue& queue, const Parameter<T>& p, std::int64_t gap)
      : host_(p),
        master_(queue, host_.master = converted<T>(p.master, gap)),
        first_(queue, host_.first = converted<T>(p.first, gap)),
        second_(queue, host_.second = converted<T>(p.second, gap)),
        gradient_(queue, host_.gradient = converted<T>(p.gradient, gap)) {
    const std::int64_t rows = p.master.rows(), cols = p.master.cols();
    if (p.compute == DType::f64) make(queue, f64_, rows, cols, gap);
    if (p.compute == DType::f32) make(queue, f32_, rows, cols, gap);
    if (p.compute == DType::bf16) make(queue, bf16_, rows, cols, gap);
    if (p.compute == DType::f16) make(queue, f16_, rows, cols, gap);
  }
  AdamWTensor tensor() const {
    return {.master = master_.view(),
            .gradient = gradient_.view(),
            .first_moment = first_.view(),
            .second_moment = second_.view(),
            .compute = compute_,
            .decay = host_.decay};
  }
  void fetch(Updated<T>& updated) {
    master_.fetch();
    first_.fetch();
    second_.fetch();
    EXPECT_TRUE(host_.master.guards_intact() && host_.first.guards_intact() && host_.second.guards_intact());
    updated.masters.push_back(host_.master.values());
    updated.firsts.push_back(host_.first.values());
    updated.seconds.push_back(host_.second.values());
    fetch_compute(f64_, updated);
    fetch_compute(f32_, updated);
    fetch_compute(bf16_, updated);
    fetch_compute(f16_, updated);
  }

 private:
  template <class C>
  struct Copy {
    std::unique_ptr<Matrix<C>> host;
    std::unique_ptr<OnDevice<C>> device;
  };
  template <class C>
  void make(Queue& queue, Copy<C>& copy, std::int64_t rows, std::int64_t cols, std::int64_t gap) {
    copy.host = std::make_unique<Matrix<C>>(rows, cols, gap);
    copy.device = std::make_unique<OnDevice<C>>(queue, *copy.host);
    compute_ = copy.device->view();
  }
  // The copy is the master, rounded as the host rounds.
  template <class C>
  void fetch_compute(Copy<C>& copy, Updated<T>& updated) {
    if (!copy.host) return;
    copy.device->fetch();
    EXPECT_TRUE(copy.host->guards_intact());
    EXPECT_EQ(copy.host->values(), converted<C>(host_.master).values());
    updated.computes.push_back(copy.host->values());
  }

  Parameter<T> host_;
  OnDevice<T> master_, first_, second_, gradient_;
  Copy<double> f64_;
  Copy<float> f32_;
  Copy<bf16> bf16_;
  Copy<f16> f16_;
  MatrixView compute_;
};

constexpr StepState kState{.step = 3, .learning_rate = 0.03, .gradient_scale = 4.0, .clip_factor = 0.5};

template <class T>
Updated<T> update_on_gpu(Queue& queue, const std::vector<Parameter<T>>& all, std::int64_t gap) {
  std::vector<std::unique_ptr<DeviceParameter<T>>> twins;
  std::vector<AdamWTensor> tensors;
  for (const Parameter<T>& p : all) {
    twins.push_back(std::make_unique<DeviceParameter<T>>(queue, p, gap));
    tensors.push_back(twins.back()->tensor());
  }
  DeviceState state(queue, kState);
  run(queue, AdamWArgs{.tensors = tensors, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1, .state = state.get()});
  Updated<T> updated;
  for (const auto& twin : twins) twin->fetch(updated);
  return updated;
}

TYPED_TEST(GpuOptimizer, AdamWIsTheCpus) {
  using T = TypeParam;
  const auto all = parameters<T>();
  std::vector<Parameter<T>> expected = all;
  std::vector<AdamWTensor> tensors;
  for (Parameter<T>& p : expected) {
    tensors.push_back({.master = p.master.view(),
                       .gradient = p.gradient.view(),
                       .first_moment = p.first.view(),
                       .second_moment = p.second.view(),
                       .compute = {},
                       .decay = p.decay});
  }
  run(this->cpu_, AdamWArgs{.tensors = tensors, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1, .state = &kState});
  const Updated<T> packed = update_on_gpu(this->queue_, all, 0), odd = update_on_gpu(this->queue_, all, 3);
  const auto expect_near = [](const std::vector<double>& actual, const std::vector<double>& wanted) {
    ASSERT_EQ(actual.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(actual[i], wanted[i], tolerance<T>(3)) << "element " << i;  // all are about 1
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(concat("tensor ", i));
    ASSERT_GT(relative_error(expected[i].master.values(), all[i].master.values()), 1e-4) << "nothing was updated";
    expect_near(packed.masters[i], expected[i].master.values());
    expect_near(packed.firsts[i], expected[i].first.values());
    expect_near(packed.seconds[i], expected[i].second.values());
  }
  EXPECT_EQ(packed.masters, odd.masters) << "bits depend on the pitch";
  EXPECT_EQ(packed.computes, odd.computes);
}

class GpuAdamW : public GpuTest {};

TEST_F(GpuAdamW, WritesNothingWhereSomethingWasNotFiniteAndReadsTheStateOfEachReplay) {
  Random random(9);
  Parameter<float> p(33, 20, DType::bf16, WeightDecay::yes, random);
  DeviceParameter<float> twin(queue_, p, 0);
  const std::vector<AdamWTensor> tensors{twin.tensor()};
  StepState stopped = kState;
  stopped.found_nonfinite = 1;
  DeviceState state(queue_, stopped);
  const Graph graph = capture(queue_, [&] { run(queue_, AdamWArgs{.tensors = tensors, .state = state.get()}); });
  const auto fetch = [&]<class T>(const MatrixView& view, T) {
    std::vector<T> values(static_cast<std::size_t>(view.rows * view.cols));
    copy_to_host(queue_, values.data(), view.data, view.bytes());
    return values;
  };
  const auto masters_and_moments = [&] {
    const AdamWTensor& of = tensors[0];
    return std::array{fetch(of.master, 0.0F), fetch(of.first_moment, 0.0F), fetch(of.second_moment, 0.0F)};
  };
  const auto is_zero = [](bf16 value) { return value.bits == 0; };
  const auto before = masters_and_moments();
  const MatrixView compute = twin.tensor().compute;
  fill_bytes(queue_, compute.data, 0, compute.bytes());
  graph.replay();
  EXPECT_EQ(masters_and_moments(), before);
  EXPECT_TRUE(std::ranges::all_of(fetch(compute, bf16()), is_zero));
  state.write(kState);
  graph.replay();
  const auto after = masters_and_moments();
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_NE(after[i], before[i]) << i;
  EXPECT_FALSE(std::ranges::any_of(fetch(compute, bf16()), is_zero));
}

}  // namespace
}  // namespace tilewave
