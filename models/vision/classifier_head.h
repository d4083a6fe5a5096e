// The mean over a picture's patches, through a linear layer: a logit for each class. Parameters: head.{weight, bias}.
#pragma once

#include "framework/nn/linear.h"
#include "framework/ops/pool.h"
#include "models/transformer/initialization.h"
#include "models/vision/classifier_shape.h"

namespace tilewave {

class ClassifierHead {
 public:
  ClassifierHead(Parameters& parameters, const ModelConfig& config, const ClassifierShape& shape)
      : down_(shape.picture.height / shape.patch),
        across_(shape.picture.width / shape.patch),
        linear_(parameters, {.name = "head", .in = config.d_model, .out = shape.classes, .deviation = weight_deviation(config)}) {}

  Variable logits(Context& context, const Variable& x) const {  // [pictures x patches, d_model] -> [pictures, classes]
    const Images patches{.count = x.rows() / (down_ * across_), .channels = x.cols(), .height = down_, .width = across_};
    const Variable mean =
        average_pool(context, {.x = x,  // [pictures, d_model]
                               .images = patches,
                               .window = {.height = down_, .width = across_, .stride_down = down_, .stride_across = across_}});
    return linear_.forward(context, mean);
  }

 private:
  std::int64_t down_, across_;
  Linear linear_;
};

}  // namespace tilewave
