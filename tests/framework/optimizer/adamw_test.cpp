// AdamW and the gradient norm against torch.optim.AdamW's formula, over several steps: clipping, decay, loss scale, padding rows
// that stay zero, and updates that do not happen.
#include "framework/optimizer/adamw.h"

#include <cmath>
#include <limits>

#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

constexpr AdamWOptions kOptions{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1, .clip_norm = 1.5};
constexpr double kLearningRate = 0.02;

// An operation without effect: its backward pass adds zero to the gradient that stands there.
struct GradientSlotWriter {
  void operator()(Context& ctx, const Variable& variable) const {
    const HostMatrix gradient(ctx, variable.gradient());
    const Variable y =
        make_variable(ctx, variable.value(), "set", {variable}, [gradient](Context& c, const Tensor&, std::span<GradientSlot> slots) {
          const GradientSlot::Target target = slots[0].open(c);
          write_elements(c, target.gradient, gradient.elements());
        });
    const Tensor seed = ctx.tensor(y.shape(), variable.value().dtype());
    write_elements(ctx, seed, [](std::int64_t, std::int64_t) { return 0.0; });
    backward(ctx, y, seed);
  }
};

class AdamWTest : public Fp64Test {
 protected:
  AdamWTest() {
    parameters.add({.name = "weight", .shape = {5, 3}, .padded_rows = 8, .initialization = {.deviation = 1.0}});
    parameters.add({.name = "bias", .shape = {1, 4}, .kind = ParameterKind::bias, .initialization = {.deviation = 1.0}});
    optimizer.emplace(parameters, kOptions);
  }
  // Gradients as a backward pass leaves them: padding rows are zero.
  void set_gradients(std::uint64_t seed, double scale) {
    for (const Parameter& parameter : parameters.all()) {
      const Shape shape = parameter.shape();
      const HostMatrix values(context, leaf(shape, seed + static_cast<std::uint64_t>(shape.cols)));
      write_elements(context, parameter.logical_gradient(), [&](std::int64_t r, std::int64_t c) { return scale * values(r, c); });
    }
    mark_written();
  }
  void mark_written() {
    for (const Parameter& parameter : parameters.all()) GradientSlotWriter{}(context, parameter.variable);
  }
  std::vector<std::vector<double>> masters() {
    std::vector<std::vector<double>> all;
    for (const Parameter& parameter : parameters.all()) all.push_back(read_elements(context, parameter.logical_master()));
    return all;
  }

  Parameters parameters{context, 1};
  std::optional<AdamW> optimizer;
};

TEST_F(AdamWTest, FollowsTheFormula) {
  std::vector<std::vector<double>> w = masters(), m, v;
  for (const auto& values : w) {
    m.emplace_back(values.size());
    v.emplace_back(values.size());
  }
  bool clipped = false, free = false;
  for (std::int64_t step = 1; step <= 4; ++step) {
    const double loss_scale = step == 2 ? 16.0 : 1.0;
    set_gradients(static_cast<std::uint64_t>(step) * 10, loss_scale * (step % 2 == 0 ? 2.0 : 0.05));
    context.write_step_state({.step = step, .learning_rate = kLearningRate, .loss_scale = loss_scale});
    optimizer->update();

    double sum = 0.0;
    std::vector<std::vector<double>> gradients;
    for (const Parameter& parameter : parameters.all()) {
      gradients.push_back(read_elements(context, parameter.logical_gradient()));
      for (double& element : gradients.back()) {
        element /= loss_scale;
        sum += element * element;
      }
    }
    const double norm = std::sqrt(sum), factor = std::min(1.0, kOptions.clip_norm / norm);
    (factor < 1.0 ? clipped : free) = true;
    const StepState state = context.read_step_state();
    EXPECT_NEAR(state.gradient_norm, norm, 1e-12 * norm);
    EXPECT_NEAR(state.clip_factor, factor, 1e-12);
    EXPECT_EQ(state.found_nonfinite, 0);
    const double t = static_cast<double>(step);
    for (std::size_t p = 0; p < w.size(); ++p) {
      for (std::size_t i = 0; i < w[p].size(); ++i) {
        const double g = gradients[p][i] * factor;
        if (p == 0) w[p][i] -= kLearningRate * kOptions.weight_decay * w[p][i];
        m[p][i] = kOptions.beta1 * m[p][i] + (1.0 - kOptions.beta1) * g;
        v[p][i] = kOptions.beta2 * v[p][i] + (1.0 - kOptions.beta2) * g * g;
        const double corrected = std::sqrt(v[p][i]) / std::sqrt(1.0 - std::pow(kOptions.beta2, t));
        w[p][i] -= kLearningRate / (1.0 - std::pow(kOptions.beta1, t)) * m[p][i] / (corrected + kOptions.epsilon);
      }
    }
    const std::vector<std::vector<double>> actual = masters();
    for (std::size_t p = 0; p < w.size(); ++p) {
      for (std::size_t i = 0; i < w[p].size(); ++i) EXPECT_NEAR(actual[p][i], w[p][i], 1e-12) << "step " << step;
    }
  }
  EXPECT_TRUE(clipped && free);
}

TEST_F(AdamWTest, PaddingRowsStayZero) {
  for (std::int64_t step = 1; step <= 3; ++step) {
    set_gradients(static_cast<std::uint64_t>(step), 1.0);
    context.write_step_state({.step = step, .learning_rate = kLearningRate});
    optimizer->update();
  }
  const std::vector<double> zeros(9, 0.0);
  EXPECT_EQ(read_elements(context, parameters.find("weight")->master.slice_rows(5, 3)), zeros);
  EXPECT_EQ(read_elements(context, optimizer->first_moment(0).whole().slice_rows(5, 3)), zeros);
  EXPECT_EQ(read_elements(context, optimizer->second_moment(0).whole().slice_rows(5, 3)), zeros);
  EXPECT_GT(norm(HostMatrix(context, optimizer->first_moment(0).whole())), 0.0);
}

TEST_F(AdamWTest, PaddingChangesNoBitOfTheNorm) {
  const auto measured = [&](std::int64_t padded_rows) {
    Parameters set(context, 1);
    set.add({.name = "weight", .shape = {5, 3}, .padded_rows = padded_rows});
    AdamW adamw(set, kOptions);
    write_elements(context, set.find("weight")->logical_gradient(), HostMatrix(context, leaf({5, 3}, 1)).elements());
    GradientSlotWriter{}(context, set.find("weight")->variable);
    context.write_step_state({.step = 1});
    adamw.update();
    return context.read_step_state().gradient_norm;
  };
  EXPECT_GT(measured(0), 0.0);
  EXPECT_EQ(measured(0), measured(64));
}

TEST_F(AdamWTest, WritesNothingOnceSomethingIsNotFinite) {
  const std::vector<std::vector<double>> before = masters();
  set_gradients(1, 1.0);
  write_elements(context, parameters.find("bias")->logical_gradient(),
                 std::vector<double>{1.0, std::numeric_limits<double>::quiet_NaN(), 0.0, 0.0});
  context.write_step_state({.step = 1, .learning_rate = kLearningRate});
  optimizer->update();
  EXPECT_EQ(context.read_step_state().found_nonfinite, 1);
  EXPECT_EQ(masters(), before);
  EXPECT_EQ(norm(HostMatrix(context, optimizer->first_moment(0).whole())), 0.0);
  // The flag is sticky: a good gradient changes nothing until the host clears it.
  set_gradients(1, 1.0);
  optimizer->update();
  EXPECT_EQ(masters(), before);
  context.write_step_state({.step = 1, .learning_rate = kLearningRate});
  optimizer->update();
  EXPECT_NE(masters(), before);
}

TEST_F(AdamWTest, WithoutClippingTakesGradientsAsTheyAre) {
  Parameters set(context, 2);
  set.add({.name = "weight", .shape = {5, 3}});
  AdamW adamw(set, {.clip_norm = 0.0});
  write_elements(context, set.find("weight")->logical_gradient(), std::vector<double>(15, 100.0));
  GradientSlotWriter{}(context, set.find("weight")->variable);
  context.write_step_state({.step = 1, .learning_rate = kLearningRate});
  adamw.update();
  EXPECT_EQ(context.read_step_state().clip_factor, 1.0);
  EXPECT_NEAR(context.read_step_state().gradient_norm, 100.0 * std::sqrt(15.0), 1e-9);
}

// A small model whose optimizer goes over tensors, or over shares of layers; a share of one rank is the whole.
struct Updated {
  Updated(Precision precision, Sharding sharding)
      : context(make_cpu_queue(1), probe_cpu(1), {.precision = precision, .sharding = sharding}),
        parameters(context, 7, sharding == Sharding::none ? ParameterStorage::separate : ParameterStorage::by_layer) {
    parameters.add({.name = "embedding.weight", .shape = {37, 19}, .padded_rows = 40, .initialization = {.deviation = 1.0}});
    for (const std::string layer : {"decoder.0", "decoder.1", "decoder.2"}) {
      parameters.add({.name = layer + ".ffn.weight", .shape = {50, 19}, .initialization = {.deviation = 1.0}});
      parameters.add({.name = layer + ".ffn.bias", .shape = {1, 50}, .kind = ParameterKind::bias, .initialization = {.deviation = 1.0}});
    }
    if (sharding != Sharding::none) parameters.place();
    AdamWOptions options = kOptions;
    options.clip_norm = 1e30;  // sums of squares run in another order
    optimizer.emplace(parameters, options);
  }
  void update(std::int64_t step) {
    context.write_step_state({.step = step, .learning_rate = kLearningRate, .real_tokens = 1});
    for (const Parameter& parameter : parameters.all()) {
      parameter.variable.reset_gradient();
      write_elements(context, parameter.logical_gradient(), [&](std::int64_t row, std::int64_t column) {
        return std::sin(static_cast<double>(step * 1000 + row * 19 + column)) + 0.25;
      });
      GradientSlotWriter{}(context, parameter.variable);
    }
    optimizer->update();
  }
  std::vector<double> of(const ParameterState& state) {
    std::vector<double> all;
    state.read(context, [&](const Tensor& rows) {
      const std::vector<double> some = read_elements(context, rows);
      all.insert(all.end(), some.begin(), some.end());
    });
    return all;
  }

  Context context;
  Parameters parameters;
  std::optional<AdamW> optimizer;
};

// Every element once, with its own gradient, moments, decay and compute copy.
TEST(AdamWOfShares, UpdatesAsOfTensors) {
  for (const Precision precision : {Precision::fp64, Precision::fp32}) {
    SCOPED_TRACE(name_of(precision));
    Updated tensors(precision, Sharding::none), shares(precision, Sharding::optimizer);
    for (std::int64_t step = 1; step <= 3; ++step) {
      for (Updated* const each : {&tensors, &shares}) each->update(step);
    }
    for (std::size_t i = 0; i < tensors.parameters.all().size(); ++i) {
      SCOPED_TRACE(tensors.parameters.all()[i].spec.name);
      EXPECT_EQ(shares.of(shares.parameters.master(i)), tensors.of(tensors.parameters.master(i)));
      EXPECT_EQ(shares.of(shares.optimizer->first_moment(i)), tensors.of(tensors.optimizer->first_moment(i)));
      EXPECT_EQ(shares.of(shares.optimizer->second_moment(i)), tensors.of(tensors.optimizer->second_moment(i)));
      const HostMatrix own(shares.context, shares.parameters.all()[i].variable.value()),
          expected(tensors.context, tensors.parameters.all()[i].variable.value());
      EXPECT_EQ(own.elements(), expected.elements());
    }
  }
}

}  // namespace
}  // namespace tilewave
