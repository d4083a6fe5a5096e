// AdamW against its formulas, element by element in double, over several steps and tensors.
#include "kernels/ops/adamw.h"

#include "tests/kernels/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr double kBeta1 = 0.8, kBeta2 = 0.95, kEpsilon = 1e-6, kWeightDecay = 0.1;

template <class T>
struct Parameter {
  Parameter(std::int64_t rows, std::int64_t cols, WeightDecay weight_decay, Random& random)
      : master(Matrix<T>::uniform(rows, cols, random)),
        first(Matrix<T>::filled(rows, cols, T(0))),
        second(Matrix<T>::filled(rows, cols, T(0))),
        gradient(Matrix<T>::uniform(rows, cols, random)),
        compute(rows, cols),
        decay(weight_decay) {}
  AdamWTensor tensor() {
    return {.master = master.view(),
            .gradient = gradient.view(),
            .first_moment = first.view(),
            .second_moment = second.view(),
            .compute = compute.view(),
            .decay = decay};
  }
  Matrix<T> master, first, second, gradient;
  Matrix<bf16> compute;
  WeightDecay decay;
};

template <class T>
std::vector<Parameter<T>> parameters() {
  Random random(8);
  std::vector<Parameter<T>> all;
  all.emplace_back(37, 19, WeightDecay::yes, random);
  all.emplace_back(1, 1, WeightDecay::no, random);
  all.emplace_back(300, 129, WeightDecay::yes, random);
  all.emplace_back(1, 130, WeightDecay::no, random);
  return all;
}

template <class T>
void update(CpuQueue& queue, std::vector<Parameter<T>>& all, const StepState& state) {
  std::vector<AdamWTensor> tensors;
  for (Parameter<T>& parameter : all) tensors.push_back(parameter.tensor());
  run(queue,
      AdamWArgs{.tensors = tensors, .beta1 = kBeta1, .beta2 = kBeta2, .epsilon = kEpsilon, .weight_decay = kWeightDecay, .state = &state});
}

StepState state_of(std::int64_t step) {
  return {.step = step, .learning_rate = 0.01 * static_cast<double>(step), .gradient_scale = 4.0, .clip_factor = 0.5};
}

// One step of the reference for one tensor.
struct Reference {
  std::vector<double> weight, first, second;

  void step(const std::vector<double>& gradient, WeightDecay decay, const StepState& state) {
    const auto t = static_cast<double>(state.step);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double g = gradient[i] * state.clip_factor / state.gradient_scale;
      if (decay == WeightDecay::yes) weight[i] -= state.learning_rate * kWeightDecay * weight[i];
      first[i] = kBeta1 * first[i] + (1.0 - kBeta1) * g;
      second[i] = kBeta2 * second[i] + (1.0 - kBeta2) * g * g;
      const double root = std::sqrt(second[i]) / std::sqrt(1.0 - std::pow(kBeta2, t));
      weight[i] -= state.learning_rate / (1.0 - std::pow(kBeta1, t)) * first[i] / (root + kEpsilon);
    }
  }
};

template <class T>
class AdamW : public ::testing::Test {};
TYPED_TEST_SUITE(AdamW, Floats);

TYPED_TEST(AdamW, FollowsItsFormulasOverThreeSteps) {
  CpuQueue queue = make_cpu_queue(2);
  auto all = parameters<TypeParam>();
  std::vector<Reference> references;
  for (const auto& p : all) references.push_back({.weight = p.master.values(), .first = p.first.values(), .second = p.second.values()});
  const auto before = references;
  for (std::int64_t step = 1; step <= 3; ++step) {
    update(queue, all, state_of(step));
    for (std::size_t i = 0; i < all.size(); ++i) references[i].step(all[i].gradient.values(), all[i].decay, state_of(step));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(concat("tensor ", i));
    EXPECT_GT(relative_error(references[i].weight, before[i].weight), 0.01);
    expect_close(all[i].master, references[i].weight, 3);
    expect_close(all[i].first, references[i].first, 3);
    expect_close(all[i].second, references[i].second, 3);
    EXPECT_TRUE(all[i].compute.guards_intact());
    for (std::int64_t r = 0; r < all[i].master.rows(); ++r) {
      for (std::int64_t c = 0; c < all[i].master.cols(); ++c) {
        EXPECT_EQ(all[i].compute(r, c).bits, bf16(static_cast<float>(all[i].master(r, c))).bits);
      }
    }
  }
}

TYPED_TEST(AdamW, WritesNothingOnceANonfiniteGradientWasFound) {
  CpuQueue queue = make_cpu_queue(2);
  auto all = parameters<TypeParam>();
  const auto before = parameters<TypeParam>();
  StepState state = state_of(1);
  state.found_nonfinite = 1;
  update(queue, all, state);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(same_bits(all[i].master, before[i].master));
    EXPECT_TRUE(same_bits(all[i].first, before[i].first));
    EXPECT_TRUE(same_bits(all[i].second, before[i].second));
    EXPECT_TRUE(same_bits(all[i].compute, before[i].compute));
  }
}

TYPED_TEST(AdamW, ResultsDoNotDependOnTheNumberOfThreads) {
  expect_same_bits_for_every_thread_count<TypeParam>([](CpuQueue& queue) {
    auto all = parameters<TypeParam>();
    update(queue, all, state_of(1));
    std::vector<Matrix<TypeParam>> results;
    for (const auto& p : all) results.insert(results.end(), {p.master, p.first, p.second});
    return results;
  });
}

TEST(AdamWContract, CountsStepsFromOne) {
  CpuQueue queue = make_cpu_queue(1);
  auto all = parameters<float>();
  expect_error([&] { update(queue, all, state_of(0)); }, "adamw: step 0 is not an update; they count from 1.");
}

}  // namespace
}  // namespace tilewave
