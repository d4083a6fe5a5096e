// A Transformer's encoder that says which class a picture is of (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020):
//   stem       a picture cut into patches of patch x patch pixels, each a row through one linear layer, plus a trained row a position
//   encoder    layers as a translation model's; a picture is one segment of attention
//   head       the mean over a picture's patches, through a linear layer, are the logits of its classes
// The mean takes the place of a class token: a picture then has patches^2 rows and not one more, which would leave every GEMM's rows off
// the multiples that tiles have, and all patches learn from the first step on. Parameters: stem.{weight, bias}, position.weight [patches,
// d_model], encoder.<layer>.{self_attention, ffn}.*, with pre-norm encoder.norm, head.{weight, bias}.
#pragma once

#include <optional>
#include <vector>

#include "framework/autograd/variable.h"
#include "framework/io/picture.h"
#include "framework/nn/parameters.h"
#include "models/recipe/config.h"
#include "models/transformer/attention.h"
#include "models/transformer/feed_forward.h"
#include "models/vision/picture_tensors.h"

namespace tilewave {

struct ClassifierShape {
  PictureShape picture;  // of every picture
  std::int64_t patch = 4;
  std::int64_t classes = 10;

  std::int64_t patches() const { return picture.height / patch * (picture.width / patch); }  // of a picture
};

class EncoderClassifier {
 public:
  // Error where patches do not fill the picture.
  EncoderClassifier(Parameters& parameters, const ModelConfig& config, const ClassifierShape& shape);

  Variable logits(Context& context, const PictureTensors& batch, const DropoutRates& rates) const;  // [pictures, classes]

  const ClassifierShape& shape() const { return shape_; }

 private:
  struct Layer {
    SelfAttention self_attention;
    FeedForward ffn;
  };

  Variable patches(Context& context, const PictureTensors& batch, double rate) const;               // [pictures x patches, d_model]
  Variable encode(Context& context, const PictureTensors& batch, const DropoutRates& rates) const;  // the same

  ClassifierShape shape_;
  Linear stem_;
  Variable positions_;
  std::vector<Layer> layers_;
  std::optional<NormLayer> norm_;
  Linear head_;
};

}  // namespace tilewave
