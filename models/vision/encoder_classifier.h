// A Transformer's encoder that says which class a picture is of (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020):
//   stem       a row for each patch x patch pixels, plus a trained row a position (models/pictures/picture_stem.h)
//   encoder    layers as a translation model's; a picture is one segment of attention
//   head       the mean over a picture's patches, through a linear layer, are the logits of its classes
// The mean takes the place of a class token: a picture then has patches^2 rows and not one more, which would leave every GEMM's rows off
// the multiples that tiles have, and all patches learn from the first step on. Parameters: the stem's, encoder.<layer>.{self_attention,
// ffn}.*, with pre-norm encoder.norm, head.{weight, bias}.
#pragma once

#include <optional>
#include <vector>

#include "framework/autograd/variable.h"
#include "framework/nn/parameters.h"
#include "models/pictures/picture_stem.h"
#include "models/recipe/config.h"
#include "models/transformer/attention.h"
#include "models/transformer/feed_forward.h"
#include "models/vision/classifier_head.h"
#include "models/vision/classifier_shape.h"
#include "models/vision/picture_tensors.h"

namespace tilewave {

class EncoderClassifier {
 public:
  // Error where patches do not fill the picture.
  EncoderClassifier(Parameters& parameters, const ModelConfig& config, const ClassifierShape& shape);

  // [pictures, classes]. The mode is that of the stem's batch normalization.
  Variable logits(Context& context, const PictureTensors& batch, const DropoutRates& rates, BatchNormMode mode) const;

  const ClassifierShape& shape() const { return shape_; }

 private:
  struct Layer {
    SelfAttention self_attention;
    FeedForward ffn;
  };

  ClassifierShape shape_;
  PictureEmbedding embedding_;
  std::vector<Layer> layers_;
  std::optional<NormLayer> norm_;
  ClassifierHead head_;
};

}  // namespace tilewave
