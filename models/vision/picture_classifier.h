// The classifier that a recipe asks for: its parameters and its model.
#pragma once

#include <cstdint>

#include "framework/nn/parameters.h"
#include "models/recipe/recipe.h"
#include "models/vision/encoder_classifier.h"

namespace tilewave {

inline ClassifierShape classifier_shape(const Recipe& recipe) {
  return {.picture = pictures_of(recipe).value().shape, .patch = recipe.model.patch, .classes = recipe.model.classes};
}

class PictureClassifier {
 public:
  // Allocates and initialises the parameters in the context's precision.
  PictureClassifier(Context& context, const Recipe& recipe)
      : parameters_(context, static_cast<std::uint64_t>(recipe.run.seed)),
        model_(parameters_, recipe.model, classifier_shape(recipe)),
        seen_(pictures_of(recipe).value()) {
    parameters_.place();
  }

  // Memory for batches of so many pictures.
  PictureTensors make_batch(std::int64_t pictures) {
    Context& context = parameters_.context();
    return make_picture_tensors(context, make_pixels(context, seen_, pictures), model_.shape().patches());
  }

  Variable logits(const PictureTensors& batch, const DropoutRates& rates, BatchNormMode mode) const {  // [pictures, classes]
    return model_.logits(parameters_.context(), batch, rates, mode);
  }

  Parameters& parameters() { return parameters_; }

 private:
  mutable Parameters parameters_;
  EncoderClassifier model_;
  SeenPictures seen_;
};

}  // namespace tilewave
