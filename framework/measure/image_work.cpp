#include "framework/measure/image_work.h"

#include "framework/measure/work_of.h"
#include "kernels/core/error.h"
#include "kernels/ops/batch_norm.h"
#include "kernels/ops/pool.h"

namespace tilewave {
namespace {

constexpr std::int64_t kEdge = 32;
constexpr PoolWindow kWindow{.height = 3, .width = 3, .stride_down = 1, .stride_across = 1, .padding_down = 1, .padding_across = 1};

Shape matrix_of(const Images& images) { return {images.rows(), images.cols()}; }

struct BatchNormKind {
  BatchNormPasses passes = BatchNormPasses::one;
  bool backward = false;
};

OperationWork prepare_batch_norm(Context& context, const Images& images, BatchNormKind kind) {
  const PrecisionTable& types = context.precision();
  const Shape shape = matrix_of(images), parameter{1, images.channels};
  const Tensor x = random_tensor(context, shape, types.activation, 1), y = context.tensor(shape, types.activation);
  const Tensor gamma = random_tensor(context, parameter, types.compute, 2), beta = random_tensor(context, parameter, types.compute, 3);
  const Tensor mean = context.tensor(parameter, types.statistics), rstd = context.tensor(parameter, types.statistics),
               running_mean = context.persistent(parameter, types.statistics),
               running_variance = context.persistent(parameter, types.statistics);
  const Tensor partial =
      context.tensor({batch_norm_partial_rows(shape.rows, shape.cols, images.channels, images.layout), images.channels}, types.statistics);
  const BatchNormArgs forward{.x = x.view(),
                              .gamma = gamma.view(),
                              .beta = beta.view(),
                              .y = y.view(),
                              .mean = mean.view(),
                              .rstd = rstd.view(),
                              .running_mean = running_mean.view(),
                              .running_variance = running_variance.view(),
                              .layout = images.layout,
                              .passes = kind.passes,
                              .partial = partial.view()};
  if (!kind.backward) return work_of(context, forward, {x, gamma, beta, y, mean, rstd, running_mean, running_variance, partial});
  context.launch(forward);
  const Tensor dy = random_tensor(context, shape, types.activation, 4), dgamma = context.tensor(parameter, types.gradient),
               dbeta = context.tensor(parameter, types.gradient);
  const BatchNormBackwardArgs args{.x = x.view(),
                                   .gamma = gamma.view(),
                                   .mean = mean.view(),
                                   .rstd = rstd.view(),
                                   .dy = dy.view(),
                                   .dx = y.view(),
                                   .dgamma = dgamma.view(),
                                   .dbeta = dbeta.view(),
                                   .layout = images.layout,
                                   .passes = kind.passes,
                                   .partial = partial.view()};
  return work_of(context, args, {x, gamma, mean, rstd, dy, y, dgamma, dbeta, partial});
}

OperationWork prepare_max_pool(Context& context, const Images& images, bool backward) {
  const DType dtype = context.precision().activation;
  const Shape shape = matrix_of(images), result = matrix_of(pooled(images, kWindow));
  const Tensor x = random_tensor(context, shape, dtype, 1), y = context.tensor(result, dtype);
  MaxPoolArgs forward{.x = x.view(), .y = y.view(), .images = images, .window = kWindow};
  if (!backward) return work_of(context, forward, {x, y});
  const Tensor indices = context.tensor(result, DType::i32), dy = random_tensor(context, result, dtype, 2);
  forward.indices = indices.view();
  context.launch(forward);
  const MaxPoolBackwardArgs args{.dy = dy.view(), .indices = indices.view(), .dx = x.view(), .images = images, .window = kWindow};
  return work_of(context, args, {dy, indices, x, y});
}

OperationWork prepare_average_pool(Context& context, const Images& images, bool backward) {
  const DType dtype = context.precision().activation;
  const Tensor x = random_tensor(context, matrix_of(images), dtype, 1),
               y = random_tensor(context, matrix_of(pooled(images, kWindow)), dtype, 2);
  if (!backward) return work_of(context, AveragePoolArgs{.x = x.view(), .y = y.view(), .images = images, .window = kWindow}, {x, y});
  return work_of(context, AveragePoolBackwardArgs{.dy = y.view(), .dx = x.view(), .images = images, .window = kWindow}, {x, y});
}

}  // namespace

Images benched_images(Shape pixels_by_channels, ImageLayout layout) {
  std::int64_t edge = kEdge;
  while (pixels_by_channels.rows % (edge * edge) != 0) edge /= 2;
  return {.count = pixels_by_channels.rows / (edge * edge),
          .channels = pixels_by_channels.cols,
          .height = edge,
          .width = edge,
          .layout = layout};
}

OperationWork prepare_images(Context& context, Shape shape, std::string_view name) {
  const bool backward = name.ends_with("_backward");
  const Images images = benched_images(shape, name.find("nchw") == std::string_view::npos ? ImageLayout::nhwc : ImageLayout::nchw);
  if (name.starts_with("batch_norm")) {
    const bool several = name.find("_several") != std::string_view::npos;
    return prepare_batch_norm(context, images, {.passes = several ? BatchNormPasses::several : BatchNormPasses::one, .backward = backward});
  }
  if (name.starts_with("max_pool")) return prepare_max_pool(context, images, backward);
  TW_CHECK(name.starts_with("average_pool"), "no operation on images is called ", name, ".");
  return prepare_average_pool(context, images, backward);
}

}  // namespace tilewave
