// add, fill, activation, squash, silu, rope, repeat_heads and dropout on a GPU against the CPU in double, at pitches that allow wide
// accesses and at such that do not.
#include "kernels/ops/activation.h"
#include "kernels/ops/add.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/fill.h"
#include "kernels/ops/repeat_heads.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/silu.h"
#include "kernels/ops/squash.h"
#include "tests/kernels/gpu_operations.h"

namespace tilewave {
namespace {

using namespace testing_support;

struct Size {
  std::int64_t rows, cols;
};
// Around a pack's 2, 4 and 8 elements and the 512 packs of a block.
constexpr Size kSizes[] = {{1, 1}, {3, 7}, {5, 8}, {2, 9}, {130, 257}, {1, 4097}, {700, 64}};
constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu_tanh, Activation::gelu_erf};
constexpr StepState kState{.step = 12, .seed = 0x123456789abcdef0, .place = {.first_site = 31, .first_target_row = 12}};

template <class T>
class GpuElementwise : public GpuOperation<T> {
 protected:
  Random random_{7};
  CpuQueue cpu_ = make_cpu_queue(1);

  Matrix<T> uniform(Size size, double low = -3.0, double high = 3.0) {
    return Matrix<T>::uniform(size.rows, size.cols, random_, low, high);
  }

  // Bodies run for every size at every pitch.
  template <class Body>
  void each(const Body& body) {
    for (const Size size : kSizes) {
      for (const Pitch pitch : kPitches) {
        SCOPED_TRACE(concat(size.rows, " x ", size.cols, pitch == Pitch::odd ? ", odd pitch" : ", aligned pitch"));
        body(size, pitch);
      }
    }
  }
};
TYPED_TEST_SUITE(GpuElementwise, DeviceFloats);

TYPED_TEST(GpuElementwise, AddsCopiesAndFills) {
  using T = TypeParam;
  this->each([&](Size size, Pitch pitch) {
    const Matrix<T> a = this->uniform(size), b = this->uniform(size);
    Twin<T> da(this->queue_, a, pitch), db(this->queue_, b, pitch), sum(this->queue_, size.rows, size.cols, pitch),
        copy(this->queue_, size.rows, size.cols, pitch), filled(this->queue_, size.rows, size.cols, pitch);
    run(this->queue_, AddArgs{.a = da.view(), .b = db.view(), .y = sum.view()});
    run(this->queue_, AddArgs{.a = da.view(), .b = {}, .y = copy.view()});
    run(this->queue_, AddArgs{.a = da.view(), .b = db.view(), .y = db.view()});
    run(this->queue_, FillArgs{.y = filled.view(), .value = -1.5});
    const auto as = a.values(), bs = b.values();
    std::vector<double> expected;
    for (std::size_t i = 0; i < as.size(); ++i) expected.push_back(to_double(from_double<T>(as[i] + bs[i])));
    EXPECT_EQ(sum.fetch().values(), expected);
    EXPECT_EQ(db.fetch().values(), expected);
    EXPECT_EQ(copy.fetch().values(), as);
    EXPECT_EQ(filled.fetch().values(), std::vector<double>(as.size(), -1.5));
    EXPECT_TRUE(sum.fetch().guards_intact() && copy.fetch().guards_intact() && filled.fetch().guards_intact());
  });
}

TYPED_TEST(GpuElementwise, ActivationsAndTheirDerivativesAreTheCpus) {
  using T = TypeParam;
  for (const Activation activation : kActivations) {
    SCOPED_TRACE(name_of(activation));
    this->each([&](Size size, Pitch pitch) {
      const Matrix<T> x = this->uniform(size, 0.01, 6.0), dy = this->uniform(size), earlier = this->uniform(size);
      const Matrix<double> wide_x = converted<double>(x), wide_dy = converted<double>(dy);
      Matrix<double> y(size.rows, size.cols), dx(size.rows, size.cols), added = converted<double>(earlier);
      run(this->cpu_, ActivationArgs{.x = wide_x.view(), .y = y.view(), .activation = activation});
      run(this->cpu_, ActivationBackwardArgs{.x = wide_x.view(), .dy = wide_dy.view(), .dx = dx.view(), .activation = activation});
      run(this->cpu_, ActivationBackwardArgs{
                          .x = wide_x.view(), .dy = wide_dy.view(), .dx = added.view(), .activation = activation, .accumulate = true});
      Twin<T> device_x(this->queue_, x, pitch), device_dy(this->queue_, dy, pitch), device_y(this->queue_, size.rows, size.cols, pitch),
          device_dx(this->queue_, size.rows, size.cols, pitch), device_added(this->queue_, earlier, pitch);
      run(this->queue_, ActivationArgs{.x = device_x.view(), .y = device_y.view(), .activation = activation});
      run(this->queue_,
          ActivationBackwardArgs{.x = device_x.view(), .dy = device_dy.view(), .dx = device_dx.view(), .activation = activation});
      run(this->queue_,
          ActivationBackwardArgs{
              .x = device_x.view(), .dy = device_dy.view(), .dx = device_added.view(), .activation = activation, .accumulate = true});
      run(this->queue_,
          ActivationBackwardArgs{.x = device_x.view(), .dy = device_dy.view(), .dx = device_dy.view(), .activation = activation});
      expect_rounded(device_y.fetch(), y.values(), 4);
      expect_rounded(device_dx.fetch(), dx.values(), 4);
      expect_rounded(device_added.fetch(), added.values(), 4);
      EXPECT_EQ(device_dy.fetch().values(), device_dx.fetch().values()) << "in place";
    });
  }
}

// Where x is negative, values are as small as one likes: they are compared by their difference.
TYPED_TEST(GpuElementwise, ActivationsOfNegativeNumbersAreNearTheCpus) {
  using T = TypeParam;
  const double allowed = 16.0 * epsilon<T>();
  const auto expect_near = [&](const Matrix<T>& actual, const Matrix<double>& expected) {
    const std::vector<double> a = actual.values(), e = expected.values();
    for (std::size_t i = 0; i < e.size(); ++i) ASSERT_NEAR(a[i], e[i], allowed) << "element " << i;
  };
  for (const Activation activation : kActivations) {
    SCOPED_TRACE(name_of(activation));
    this->each([&](Size size, Pitch pitch) {
      const Matrix<T> x = this->uniform(size, -6.0, -0.01), dy = this->uniform(size, -1.0, 1.0);
      const Matrix<double> wide_x = converted<double>(x), wide_dy = converted<double>(dy);
      Matrix<double> y(size.rows, size.cols), dx(size.rows, size.cols);
      run(this->cpu_, ActivationArgs{.x = wide_x.view(), .y = y.view(), .activation = activation});
      run(this->cpu_, ActivationBackwardArgs{.x = wide_x.view(), .dy = wide_dy.view(), .dx = dx.view(), .activation = activation});
      Twin<T> device_x(this->queue_, x, pitch), device_dy(this->queue_, dy, pitch), device_y(this->queue_, size.rows, size.cols, pitch),
          device_dx(this->queue_, size.rows, size.cols, pitch);
      run(this->queue_, ActivationArgs{.x = device_x.view(), .y = device_y.view(), .activation = activation});
      run(this->queue_,
          ActivationBackwardArgs{.x = device_x.view(), .dy = device_dy.view(), .dx = device_dx.view(), .activation = activation});
      expect_near(device_y.fetch(), y);
      expect_near(device_dx.fetch(), dx);
    });
  }
}

TYPED_TEST(GpuElementwise, ActivationsKeepNansAndStayFinite) {
  using T = TypeParam;
  for (const Activation activation : kActivations) {
    Matrix<T> x = Matrix<T>::filled(1, 4, from_double<T>(60000.0));
    x(0, 1) = from_double<T>(-60000.0);
    x(0, 2) = from_double<T>(std::numeric_limits<double>::quiet_NaN());
    x(0, 3) = from_double<T>(0.0);
    Twin<T> device_x(this->queue_, x), y(this->queue_, 1, 4), dx(this->queue_, 1, 4),
        ones(this->queue_, Matrix<T>::filled(1, 4, from_double<T>(1.0)));
    run(this->queue_, ActivationArgs{.x = device_x.view(), .y = y.view(), .activation = activation});
    run(this->queue_, ActivationBackwardArgs{.x = device_x.view(), .dy = ones.view(), .dx = dx.view(), .activation = activation});
    for (const std::int64_t c : {0, 1, 3}) {
      EXPECT_TRUE(std::isfinite(to_double(y.fetch()(0, c)))) << name_of(activation) << " at " << c;
      EXPECT_TRUE(std::isfinite(to_double(dx.fetch()(0, c)))) << name_of(activation) << "'s derivative at " << c;
    }
    EXPECT_TRUE(std::isnan(to_double(y.fetch()(0, 2)))) << name_of(activation);
  }
}

TYPED_TEST(GpuElementwise, DropoutDrawsAsTheCpuDoes) {
  using T = TypeParam;
  DeviceState state(this->queue_, kState);
  for (const double probability : {0.0, 0.1, 0.5}) {
    this->each([&](Size size, Pitch pitch) {
      const Matrix<T> x = this->uniform(size, 0.5, 1.5), residual = this->uniform(size);
      const Matrix<double> wide_x = converted<double>(x), wide_residual = converted<double>(residual);
      Matrix<double> plain(size.rows, size.cols), added(size.rows, size.cols);
      DropoutArgs args{.x = wide_x.view(), .y = plain.view(), .probability = probability, .site = 9, .state = &kState};
      run(this->cpu_, args);
      args.residual = wide_residual.view();
      args.y = added.view();
      run(this->cpu_, args);
      Twin<T> device_x(this->queue_, x, pitch), device_residual(this->queue_, residual, pitch),
          y(this->queue_, size.rows, size.cols, pitch), z(this->queue_, size.rows, size.cols, pitch);
      args = {.x = device_x.view(), .y = y.view(), .probability = probability, .site = 9, .state = state.get()};
      run(this->queue_, args);
      args.residual = device_residual.view();
      args.y = z.view();
      run(this->queue_, args);
      const auto actual = y.fetch().values(), expected = plain.values();
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(actual[i] == 0.0, expected[i] == 0.0) << "element " << i;
      if (norm(expected) > 0.0) expect_rounded(y.fetch(), expected, 1);
      expect_rounded(z.fetch(), added.values(), 2);
    });
  }
}

TYPED_TEST(GpuElementwise, SquashesAreTheCpus) {
  using T = TypeParam;
  for (const Squash kind : {Squash::sigmoid, Squash::tanh}) {
    SCOPED_TRACE(name_of(kind));
    this->each([&](Size size, Pitch pitch) {
      const Matrix<T> x = this->uniform(size, -5.0, 5.0), given = this->uniform(size, -0.99, 0.99), dy = this->uniform(size),
                      earlier = this->uniform(size);
      const Matrix<double> wide_x = converted<double>(x), wide_given = converted<double>(given), wide_dy = converted<double>(dy);
      Matrix<double> y(size.rows, size.cols), dx(size.rows, size.cols), added = converted<double>(earlier);
      run(this->cpu_, SquashArgs{.x = wide_x.view(), .y = y.view(), .kind = kind});
      run(this->cpu_, SquashBackwardArgs{.y = wide_given.view(), .dy = wide_dy.view(), .dx = dx.view(), .kind = kind});
      run(this->cpu_,
          SquashBackwardArgs{.y = wide_given.view(), .dy = wide_dy.view(), .dx = added.view(), .kind = kind, .accumulate = true});
      Twin<T> device_x(this->queue_, x, pitch), device_given(this->queue_, given, pitch), device_dy(this->queue_, dy, pitch),
          device_y(this->queue_, size.rows, size.cols, pitch), device_dx(this->queue_, size.rows, size.cols, pitch),
          device_added(this->queue_, earlier, pitch);
      run(this->queue_, SquashArgs{.x = device_x.view(), .y = device_y.view(), .kind = kind});
      run(this->queue_, SquashArgs{.x = device_x.view(), .y = device_x.view(), .kind = kind});
      run(this->queue_, SquashBackwardArgs{.y = device_given.view(), .dy = device_dy.view(), .dx = device_dx.view(), .kind = kind});
      run(this->queue_, SquashBackwardArgs{
                            .y = device_given.view(), .dy = device_dy.view(), .dx = device_added.view(), .kind = kind, .accumulate = true});
      run(this->queue_, SquashBackwardArgs{.y = device_given.view(), .dy = device_dy.view(), .dx = device_dy.view(), .kind = kind});
      expect_rounded(device_y.fetch(), y.values(), 8);
      expect_rounded(device_dx.fetch(), dx.values(), 8);
      expect_rounded(device_added.fetch(), added.values(), 8);
      EXPECT_EQ(device_x.fetch().values(), device_y.fetch().values()) << "in place";
      EXPECT_EQ(device_dy.fetch().values(), device_dx.fetch().values()) << "in place";
    });
  }
}

TYPED_TEST(GpuElementwise, SquashesFarOutAreTheirLimitsAndANanIsSeen) {
  using T = TypeParam;
  Matrix<T> host(1, 5);
  const double inputs[] = {-1e4, 1e4, std::nan(""), 0.0, 1e-3};
  for (std::int64_t c = 0; c < 5; ++c) host(0, c) = from_double<T>(inputs[c]);
  for (const Squash kind : {Squash::sigmoid, Squash::tanh}) {
    Twin<T> x(this->queue_, host), y(this->queue_, 1, 5);
    run(this->queue_, SquashArgs{.x = x.view(), .y = y.view(), .kind = kind});
    const auto values = y.fetch().values();
    EXPECT_NEAR(values[0], kind == Squash::sigmoid ? 0.0 : -1.0, 1e-6);
    EXPECT_EQ(values[1], 1.0);
    EXPECT_TRUE(std::isnan(values[2]));
    EXPECT_EQ(values[3], kind == Squash::sigmoid ? 0.5 : 0.0);
    const double small = to_double(host(0, 4)), expected = kind == Squash::sigmoid ? 1.0 / (1.0 + std::exp(-small)) : std::tanh(small);
    EXPECT_NEAR(values[4], expected, 4.0 * epsilon<T>() * expected) << "relative to a small value";
  }
}

TYPED_TEST(GpuElementwise, SiluIsTheCpusWithAGateAndWithout) {
  using T = TypeParam;
  this->each([&](Size size, Pitch pitch) {
    const Matrix<T> x = this->uniform(size, 0.01, 6.0), up = this->uniform(size), dy = this->uniform(size);
    const Matrix<double> wide_x = converted<double>(x), wide_up = converted<double>(up), wide_dy = converted<double>(dy);
    Matrix<double> plain(size.rows, size.cols), gated(size.rows, size.cols), dplain(size.rows, size.cols), dgate(size.rows, size.cols),
        dup(size.rows, size.cols);
    run(this->cpu_, SiluArgs{.x = wide_x.view(), .up = {}, .y = plain.view()});
    run(this->cpu_, SiluArgs{.x = wide_x.view(), .up = wide_up.view(), .y = gated.view()});
    run(this->cpu_, SiluBackwardArgs{.x = wide_x.view(), .up = {}, .dy = wide_dy.view(), .dx = dplain.view(), .dup = {}});
    run(this->cpu_,
        SiluBackwardArgs{.x = wide_x.view(), .up = wide_up.view(), .dy = wide_dy.view(), .dx = dgate.view(), .dup = dup.view()});
    Twin<T> device_x(this->queue_, x, pitch), device_up(this->queue_, up, pitch), device_dy(this->queue_, dy, pitch),
        y(this->queue_, size.rows, size.cols, pitch), z(this->queue_, size.rows, size.cols, pitch), in_place(this->queue_, dy, pitch),
        dx(this->queue_, size.rows, size.cols, pitch), du(this->queue_, size.rows, size.cols, pitch);
    run(this->queue_, SiluArgs{.x = device_x.view(), .up = {}, .y = y.view()});
    run(this->queue_, SiluArgs{.x = device_x.view(), .up = device_up.view(), .y = z.view()});
    run(this->queue_, SiluBackwardArgs{.x = device_x.view(), .up = {}, .dy = in_place.view(), .dx = in_place.view(), .dup = {}});
    run(this->queue_,
        SiluBackwardArgs{.x = device_x.view(), .up = device_up.view(), .dy = device_dy.view(), .dx = dx.view(), .dup = du.view()});
    expect_rounded(y.fetch(), plain.values(), 8);
    expect_rounded(z.fetch(), gated.values(), 8);
    expect_rounded(in_place.fetch(), dplain.values(), 8);
    expect_rounded(dx.fetch(), dgate.values(), 8);
    expect_rounded(du.fetch(), dup.values(), 8);
  });
}

TYPED_TEST(GpuElementwise, SiluFarOutIsZeroOrItsInputAndANanIsSeen) {
  using T = TypeParam;
  Matrix<T> host(1, 4);
  const double inputs[] = {-1e4, 1e4, std::nan(""), 0.0};
  for (std::int64_t c = 0; c < 4; ++c) host(0, c) = from_double<T>(inputs[c]);
  Twin<T> x(this->queue_, host), y(this->queue_, 1, 4), slope(this->queue_, Matrix<T>::filled(1, 4, from_double<T>(1.0)));
  run(this->queue_, SiluArgs{.x = x.view(), .up = {}, .y = y.view()});
  run(this->queue_, SiluBackwardArgs{.x = x.view(), .up = {}, .dy = slope.view(), .dx = slope.view(), .dup = {}});
  const auto values = y.fetch().values(), slopes = slope.fetch().values();
  EXPECT_NEAR(values[0], 0.0, 1e-6);
  EXPECT_EQ(values[1], to_double(host(0, 1)));
  EXPECT_TRUE(std::isnan(values[2]) && std::isnan(slopes[2]));
  EXPECT_NEAR(slopes[0], 0.0, 1e-6);
  EXPECT_EQ(slopes[1], 1.0);
  EXPECT_EQ(slopes[3], 0.5);
}

// Heads of whole packs, of half ones and of pairs alone; in place as models have it.
TYPED_TEST(GpuElementwise, RopeIsTheCpus) {
  using T = TypeParam;
  using A = Statistics<T>;
  for (const auto& [rows, heads, d] : {std::tuple{1, 1, 2}, {7, 3, 10}, {33, 2, 64}, {130, 5, 128}, {9, 2, 24}}) {
    for (const Pitch pitch : kPitches) {
      SCOPED_TRACE(concat(rows, " x ", heads, " x ", d));
      const Matrix<T> x = this->uniform({rows, heads * d});
      const Matrix<A> table = Matrix<A>::uniform(17, d, this->random_);
      Matrix<std::int32_t> ids(1, rows);
      for (std::int64_t r = 0; r < rows; ++r) ids(0, r) = static_cast<std::int32_t>((5 * r) % 17);
      const Matrix<double> wide_x = converted<double>(x), wide_table = converted<double>(table);
      Matrix<double> turned(rows, heads * d), back(rows, heads * d);
      const auto args = [](const ConstMatrixView& from, const ConstMatrixView& rotations, const ConstMatrixView& positions,
                           const MatrixView& to, Rotation rotation) {
        return RopeArgs{.x = from, .table = rotations, .position_ids = positions, .y = to, .rotation = rotation};
      };
      run(this->cpu_, args(wide_x.view(), wide_table.view(), ids.view(), turned.view(), Rotation::forward));
      run(this->cpu_, args(wide_x.view(), wide_table.view(), ids.view(), back.view(), Rotation::backward));
      Twin<T> in_place(this->queue_, x, pitch), from(this->queue_, x, pitch), y(this->queue_, rows, heads * d, pitch);
      Twin<A> device_table(this->queue_, table);
      Twin<std::int32_t> device_ids(this->queue_, ids);
      run(this->queue_, args(in_place.view(), device_table.view(), device_ids.view(), in_place.view(), Rotation::forward));
      run(this->queue_, args(from.view(), device_table.view(), device_ids.view(), y.view(), Rotation::backward));
      expect_rounded(in_place.fetch(), turned.values(), 2);
      expect_rounded(y.fetch(), back.values(), 2);
    }
  }
}

TYPED_TEST(GpuElementwise, RepeatedHeadsAreTheCpus) {
  using T = TypeParam;
  for (const auto& [rows, heads, times, d] : {std::tuple{1, 1, 1, 1}, {5, 2, 3, 7}, {130, 4, 2, 64}, {33, 2, 4, 24}}) {
    for (const Pitch pitch : kPitches) {
      SCOPED_TRACE(concat(rows, " x ", heads, " x ", times, " x ", d));
      const Matrix<T> x = this->uniform({rows, heads * d}), dy = this->uniform({rows, heads * times * d});
      const Matrix<double> wide_x = converted<double>(x), wide_dy = converted<double>(dy);
      Matrix<double> y(rows, heads * times * d), dx(rows, heads * d);
      run(this->cpu_, RepeatHeadsArgs{.x = wide_x.view(), .y = y.view(), .head_size = d, .times = times});
      run(this->cpu_, RepeatHeadsBackwardArgs{.dy = wide_dy.view(), .dx = dx.view(), .head_size = d, .times = times});
      Twin<T> device_x(this->queue_, x, pitch), device_dy(this->queue_, dy, pitch), device_y(this->queue_, rows, heads * times * d, pitch),
          device_dx(this->queue_, rows, heads * d, pitch);
      run(this->queue_, RepeatHeadsArgs{.x = device_x.view(), .y = device_y.view(), .head_size = d, .times = times});
      run(this->queue_, RepeatHeadsBackwardArgs{.dy = device_dy.view(), .dx = device_dx.view(), .head_size = d, .times = times});
      EXPECT_EQ(device_y.fetch().values(), y.values());
      EXPECT_TRUE(device_y.fetch().guards_intact());
      expect_rounded(device_dx.fetch(), dx.values(), times);
    }
  }
}

}  // namespace
}  // namespace tilewave
