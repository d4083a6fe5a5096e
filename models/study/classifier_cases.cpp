// The layers of a model that sees, on a few random pictures, the last of which is padding.
#include <deque>

#include "framework/data/pictures.h"
#include "framework/tensor/random.h"
#include "models/study/layer_cases.h"
#include "models/transformer/initialization.h"
#include "models/vision/picture_classifier.h"

namespace tilewave {
namespace {

Recipe seeded(Recipe recipe, std::uint64_t seed) {
  recipe.run.seed = static_cast<std::int64_t>(seed);
  return recipe;
}

class ClassifierCases final : public LayerCases {
 public:
  ClassifierCases(Context& context, const ResolvedRecipe& resolved, std::uint64_t seed)
      : LayerCases(context, resolved, seed), shape_(classifier_shape(resolved.recipe)), model_(context, seeded(resolved.recipe, seed)) {
    const std::int64_t pictures = resolved.shapes.target_rows;
    batch_ = model_.make_batch(pictures);
    Random random(random_key(seed, 1));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(pictures));
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(shape_.classes)));
    labels.back() = kNoLabel;
    upload_pictures(context, random_shades(pictures * shape_.picture.values()), labels, batch_);
    context.write_step_state({.step = 1, .seed = seed, .real_tokens = pictures - 1});
  }

  LayerCase make(const std::string& layer) override {
    if (layer == "stem") return stem_case();
    if (layer == name_of(config().norm_kind)) return norm_case(layer);
    if (layer == "self_attention") return self_attention_case();
    if (layer == "ffn") return ffn_case();
    if (layer == "head") return head_case();
    return {"model",
            [this](Context& context) { return loss(context, model_.logits(batch_, rates(), BatchNormMode::training), batch_.labels); },
            leaves(model_.parameters(), "model")};
  }

 private:
  std::int64_t rows() const { return batch_.position_ids.cols(); }

  LayerCase stem_case() {
    Parameters& parameters = new_parameters();
    const PictureEmbedding embedding(parameters, config(), {.picture = shape_.picture, .patch = shape_.patch});
    return {"stem",
            [this, embedding](Context& context) {
              return embedding.embed(context, batch_.pixels, batch_.position_ids,
                                     {.dropout = rates().hidden, .mode = BatchNormMode::training});
            },
            leaves(parameters, "stem")};
  }

  LayerCase norm_case(const std::string& name) {
    Parameters& parameters = new_parameters();
    const NormLayer layer(parameters, norm_spec(config(), name));
    const Variable x = input(rows());  // [pictures x patches, d_model]
    return {name, [layer, x](Context& context) { return layer.forward(context, x); }, with(leaves(parameters, name), x)};
  }

  LayerCase self_attention_case() {
    Parameters& parameters = new_parameters();
    const SelfAttention layer(parameters, "self_attention", config(), Tensor());
    const Variable x = input(rows());  // [pictures x patches, d_model]
    return {"self_attention",
            [this, layer, x](Context& context) { return layer.forward(context, x, picture_segments(batch_), Mask::none, rates()); },
            with(leaves(parameters, "self_attention"), x)};
  }

  LayerCase ffn_case() {
    Parameters& parameters = new_parameters();
    const FeedForward layer(parameters, "ffn", config());
    const Variable x = input(rows());  // [pictures x patches, d_model]
    return {"ffn", [this, layer, x](Context& context) { return layer.forward(context, x, rates()); }, with(leaves(parameters, "ffn"), x)};
  }

  LayerCase head_case() {
    Parameters& parameters = new_parameters();
    const ClassifierHead head(parameters, config(), shape_);
    const Variable x = input(rows());  // [pictures x patches, d_model]
    return {"head", [this, head, x](Context& context) { return loss(context, head.logits(context, x), batch_.labels); },
            with(leaves(parameters, "head"), x)};
  }

  static std::vector<NamedVariable> with(std::vector<NamedVariable> variables, const Variable& x) {
    variables.push_back({"x", x});
    return variables;
  }

  ClassifierShape shape_;
  PictureClassifier model_;
  PictureTensors batch_;
};

}  // namespace

std::unique_ptr<LayerCases> classifier_cases(Context& context, const ResolvedRecipe& resolved, std::uint64_t seed) {
  return std::make_unique<ClassifierCases>(context, resolved, seed);
}

}  // namespace tilewave
