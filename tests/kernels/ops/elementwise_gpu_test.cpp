// add, fill, activation and dropout on a GPU against the CPU in double, at pitches that allow wide accesses and at such that do not.
#include "kernels/ops/activation.h"
#include "kernels/ops/add.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/fill.h"
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
constexpr StepState kState{.step = 12, .seed = 0x123456789abcdef0, .first_site = 31};

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

}  // namespace
}  // namespace tilewave
