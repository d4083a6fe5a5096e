// Batch normalization's arguments with matrices of their own, for its tests on a CPU and on a GPU.
#pragma once

#include "kernels/ops/batch_norm.h"
#include "tests/kernels/ops/image_matrix.h"

namespace tilewave::testing_support {

template <class T, class A = T>
struct BatchNormMatrices {
  BatchNormMatrices(const Images& of, std::uint64_t seed) : images(of) {
    Random random(seed);
    x = Matrix<T>::uniform(images.rows(), images.cols(), random, -1.0, 3.0);
    dy = Matrix<T>::uniform(images.rows(), images.cols(), random);
    dx = Matrix<T>::uniform(images.rows(), images.cols(), random);
    gamma = Matrix<T>::uniform(1, images.channels, random, 0.5, 1.5);
    beta = Matrix<T>::uniform(1, images.channels, random);
    running_mean = Matrix<A>::uniform(1, images.channels, random);
    running_variance = Matrix<A>::uniform(1, images.channels, random, 0.5, 2.0);
    dgamma = Matrix<A>::uniform(1, images.channels, random);
    dbeta = Matrix<A>::uniform(1, images.channels, random);
    y = Matrix<T>(images.rows(), images.cols());
    mean = rstd = Matrix<A>(1, images.channels);
    partial = Matrix<A>(batch_norm_partial_rows(images.rows(), images.cols(), images.channels, images.layout), images.channels);
  }

  BatchNormArgs forward(BatchNormMode mode = BatchNormMode::training, BatchNormPasses passes = BatchNormPasses::one) {
    return {.x = x.view(),
            .gamma = gamma.view(),
            .beta = beta.view(),
            .y = y.view(),
            .mean = mean.view(),
            .rstd = rstd.view(),
            .running_mean = running_mean.view(),
            .running_variance = running_variance.view(),
            .layout = images.layout,
            .mode = mode,
            .passes = passes,
            .partial = mode == BatchNormMode::training ? partial.view() : MatrixView()};
  }
  BatchNormBackwardArgs backward(bool accumulate, BatchNormMode mode = BatchNormMode::training,
                                 BatchNormPasses passes = BatchNormPasses::one) {
    return {.x = x.view(),
            .gamma = gamma.view(),
            .mean = mean.view(),
            .rstd = rstd.view(),
            .dy = dy.view(),
            .dx = dx.view(),
            .accumulate = accumulate,
            .dgamma = dgamma.view(),
            .dbeta = dbeta.view(),
            .accumulate_gamma = accumulate,
            .accumulate_beta = accumulate,
            .layout = images.layout,
            .mode = mode,
            .passes = passes,
            .partial = partial.view()};
  }

  Images images;
  Matrix<T> x{0, 0}, dy{0, 0}, dx{0, 0}, gamma{0, 0}, beta{0, 0}, y{0, 0};
  Matrix<A> running_mean{0, 0}, running_variance{0, 0}, dgamma{0, 0}, dbeta{0, 0}, mean{0, 0}, rstd{0, 0}, partial{0, 0};
};

// y, mean, rstd, running mean and variance, dx, dgamma, dbeta
inline constexpr const char* kBatchNormResults[] = {"y", "mean", "rstd", "running mean", "running variance", "dx", "dgamma", "dbeta"};

template <class T, class A>
std::vector<std::vector<double>> batch_norm_results(const BatchNormMatrices<T, A>& m) {
  return {m.y.values(),  m.mean.values(),   m.rstd.values(), m.running_mean.values(), m.running_variance.values(),
          m.dx.values(), m.dgamma.values(), m.dbeta.values()};
}

}  // namespace tilewave::testing_support
