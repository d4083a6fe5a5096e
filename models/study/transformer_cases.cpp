// The layers of models of tokens, on few packed rows: sequences of uneven lengths, padding rows, an ignored label.
#include <deque>
#include <set>

#include "framework/tensor/random.h"
#include "models/step/train_step.h"
#include "models/study/layer_cases.h"
#include "models/transformer/initialization.h"

namespace tilewave {
namespace {

class TransformerCases final : public LayerCases {
 public:
  TransformerCases(Context& context, const ResolvedRecipe& resolved, const CheckedSequences& sequences, std::uint64_t seed)
      : LayerCases(context, resolved, seed), batch_(make_batch_tensors(context, batch_shape(resolved))) {
    Batch batch = random_batch(sequences);
    if (const std::optional<SeenPictures> seen = pictures_of(resolved.recipe)) {
      batch_.pixels = make_pixels(context, *seen, resolved.recipe.batch.pictures);
      batch.pixels = random_shades(batch_.pixels->values.shape().elements());
    }
    upload(context_, batch, batch_);
    context_.write_step_state({.step = 1, .seed = seed_, .real_tokens = batch.real_tokens});
  }

  LayerCase make(const std::string& layer) override {
    if (layer == name_of(config().norm_kind)) return norm_case(layer);
    if (layer == "stem") return stem_case();
    if (layer == "embedding") return embedding_case();
    if (layer == "self_attention") return self_attention_case(layer, source_rows(), source_segments(batch_, sequence()), Mask::none);
    if (layer == "causal_self_attention")
      return self_attention_case(layer, target_rows(), target_segments(batch_, sequence()), Mask::causal);
    if (layer == "cross_attention") return cross_attention_case();
    if (layer == "ffn") return ffn_case();
    if (layer == "projection") return projection_case();
    return model_case();
  }

 private:
  std::int64_t sequence() const { return longest_segment(resolved_.recipe); }
  std::int64_t source_rows() const { return resolved_.shapes.source_rows; }
  std::int64_t target_rows() const { return resolved_.shapes.target_rows; }

  Batch random_batch(const CheckedSequences& sequences) const {
    Random random(random_key(seed_, 1));
    const auto draw = [&](std::int64_t count) {
      std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
      for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(config().vocabulary)));
      return ids;
    };
    Packer packer(batch_shape(resolved_));
    for (std::size_t s = 0; s < sequences.target.size(); ++s) {
      const std::vector<std::int32_t> source = draw(source_rows() > 0 ? sequences.source[s] : 0), in = draw(sequences.target[s]);
      std::vector<std::int32_t> out = draw(sequences.target[s]);
      if (s > 0) out.front() = kPaddingId;  // a row that is computed and ignored
      TW_CHECK(packer.add({.source = source, .target_in = in, .target_out = out}),
               "the sequences of a gradient check do not fit its rows.");
    }
    return std::move(packer).take();
  }

  static std::vector<NamedVariable> only(std::vector<NamedVariable> variables, const std::set<std::string>& names) {
    std::erase_if(variables, [&](const NamedVariable& variable) { return names.count(variable.name) == 0; });
    return variables;
  }

  LayerCase norm_case(const std::string& name) {
    Parameters& parameters = new_parameters();
    const NormLayer layer(parameters, norm_spec(config(), name));
    const Variable x = input(target_rows());  // [tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, name);
    variables.push_back({"x", x});
    return {name, [layer, x](Context& context) { return layer.forward(context, x); }, variables};
  }

  LayerCase self_attention_case(const std::string& name, std::int64_t rows, const Segments& segments, Mask mask) {
    Parameters& parameters = new_parameters();
    const SelfAttention layer(parameters, name, config(), rotations_of(context_, config()));
    const Variable x = input(rows);  // [tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, name);
    variables.push_back({"x", x});
    return {name, [this, layer, x, segments, mask](Context& context) { return layer.forward(context, x, segments, mask, rates()); },
            variables};
  }

  LayerCase cross_attention_case() {
    Parameters& parameters = new_parameters();
    const CrossAttention layer(parameters, "cross_attention", config());
    const Variable x = input(target_rows()), memory = input(source_rows());  // [target tokens, d_model], [source tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, "cross_attention");
    variables.push_back({"x", x});
    variables.push_back({"memory", memory});
    return {"cross_attention",
            [this, layer, x, memory](Context& context) {
              return layer.forward(context, x, memory, cross_segments(batch_, sequence()), rates());
            },
            variables};
  }

  LayerCase ffn_case() {
    Parameters& parameters = new_parameters();
    const FeedForward layer(parameters, "ffn", config());
    const Variable x = input(target_rows());  // [tokens, d_model]
    std::vector<NamedVariable> variables = leaves(parameters, "ffn");
    variables.push_back({"x", x});
    return {"ffn", [this, layer, x](Context& context) { return layer.forward(context, x, rates()); }, variables};
  }

  LayerCase stem_case() {
    Parameters& parameters = new_parameters();
    const PictureEmbedding embedding(parameters, config(),
                                     {.picture = pictures_of(resolved_.recipe).value().shape, .patch = config().patch});
    return {"stem",
            [this, embedding](Context& context) {
              return embedding.embed(context, *batch_.pixels, batch_.source_positions,
                                     {.dropout = rates().hidden, .mode = BatchNormMode::training});
            },
            leaves(parameters, "stem")};
  }

  LayerCase embedding_case() {
    Parameters& parameters = new_parameters();
    const Vocabulary layer(parameters, config(), resolved_.shapes.vocabulary_padded);
    return {"embedding",
            [this, layer](Context& context) { return layer.embed(context, batch_.target_in, batch_.target_positions, rates().hidden); },
            only(leaves(parameters, "embedding"), {"token.weight", "position.weight"})};
  }

  LayerCase projection_case() {
    Parameters& parameters = new_parameters();
    const Vocabulary layer(parameters, config(), resolved_.shapes.vocabulary_padded);
    const Variable x = input(target_rows());  // [tokens, d_model]
    std::vector<NamedVariable> variables = only(leaves(parameters, "projection"), {config().tied ? "embedding.token.weight" : "weight"});
    variables.push_back({"x", x});
    return {"projection", [this, layer, x](Context& context) { return loss(context, layer.logits(context, x), batch_.target_out); },
            variables};
  }

  LayerCase model_case() {
    const Transformer& model = models_.emplace_back(
        context_, config(), ModelData{.padded_vocabulary = resolved_.shapes.vocabulary_padded, .picture = pictures_of(resolved_.recipe)},
        seed_);
    return {"model",
            [this, &model](Context& context) {
              return loss(context, model.logits(batch_, sequence(), {.rates = rates(), .mode = BatchNormMode::training}),
                          batch_.target_out);
            },
            leaves(model.parameters(), "model")};
  }

  BatchTensors batch_;
  std::deque<Transformer> models_;
};

}  // namespace

std::unique_ptr<LayerCases> transformer_cases(Context& context, const ResolvedRecipe& resolved, const CheckedSequences& sequences,
                                              std::uint64_t seed) {
  return std::make_unique<TransformerCases>(context, resolved, sequences, seed);
}

}  // namespace tilewave
