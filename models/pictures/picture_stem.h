// How pixels become an encoder's rows, one for each patch x patch square of a picture:
//   patch        each square through one linear layer, a convolution whose filter is as large as its stride
//   convolution  halvings until a side is patch times smaller (Xiao et al., "Early Convolutions Help Transformers See Better", 2021): 3x3
//   at
//                stride 2, a norm over each channel (batch_norm) or each pixel (layer_norm), ReLU; the last halving may be max pooling, 3x3
//                at stride 2 (ResNet's). Then 1x1 to d_model. Channels double from halving to halving.
// Parameters: stem.{weight, bias}; or stem.<halving>.weight [channels, 9 x channels before], stem.<halving>.norm.{weight, bias} with
// running_mean and running_variance of a batch_norm, stem.projection.{weight, bias}.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "framework/io/picture.h"
#include "framework/nn/batch_norm_layer.h"
#include "framework/nn/linear.h"
#include "framework/nn/norm.h"
#include "models/pictures/pixels.h"
#include "models/recipe/config.h"

namespace tilewave {

struct StemShape {
  PictureShape picture;
  std::int64_t patch = 4;

  std::int64_t patches() const { return picture.height / patch * (picture.width / patch); }  // of a picture
};

class PatchStem {
 public:
  PatchStem(Parameters& parameters, const ModelConfig& config, const StemShape& shape);
  Variable rows(Context& context, const Pixels& pixels, BatchNormMode mode) const;  // [pictures x patches, d_model]

 private:
  std::int64_t patch_;
  Linear linear_;
};

class ConvolutionStem {
 public:
  ConvolutionStem(Parameters& parameters, const ModelConfig& config, const StemShape& shape);
  Variable rows(Context& context, const Pixels& pixels, BatchNormMode mode) const;  // [pictures x patches, d_model]

 private:
  struct Halving {
    Variable weight;  // [channels, 9 x channels before]
    std::variant<BatchNormLayer, NormLayer> norm;
  };
  std::vector<Halving> halvings_;
  bool pools_;
  Linear projection_;
};

using PictureStem = std::variant<PatchStem, ConvolutionStem>;

// Error where there is none, or halving does not make such patches.
PictureStem make_stem(Parameters& parameters, const ModelConfig& config, const StemShape& shape);

// What an encoder reads of pictures: the stem's rows, and a trained row for each place of a picture added to them. Parameters: the stem's,
// position.weight [patches, d_model].
class PictureEmbedding {
 public:
  // Error where patches do not fill the picture.
  PictureEmbedding(Parameters& parameters, const ModelConfig& config, const StemShape& shape);

  struct Options {
    double dropout = 0.0;
    BatchNormMode mode = BatchNormMode::evaluation;
  };
  // position_ids [1, pictures x patches]: 0 to patches - 1 for each picture.   [pictures x patches, d_model]
  Variable embed(Context& context, const Pixels& pixels, const Tensor& position_ids, const Options& options) const;

 private:
  PictureStem stem_;
  Variable positions_;
};

}  // namespace tilewave
