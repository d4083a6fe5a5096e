// Sources: the guide's fully-connected layers, Transformer case study, steps 1 (vocabulary) and 2 (batch); aligned pitches are
// 128 bytes, what an H200's memory system wants of rows.
#include "models/recipe/guidelines.h"

#include <array>
#include <utility>

#include "framework/tensor/pitch.h"
#include "framework/tensor/precision.h"
#include "kernels/core/error.h"
#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

// One more row in the embedding, and in the projection where that is another matrix: master and computed copy, gradient, two moments.
std::int64_t bytes_a_token(const Recipe& recipe) {
  const PrecisionTable table = precision_table(recipe.run.precision);
  const std::int64_t element =
      3 * size_of(table.master) + size_of(table.gradient) + (table.compute == table.master ? 0 : size_of(table.compute));
  return (recipe.model.tied ? 1 : 2) * recipe.model.d_model * element;
}

}  // namespace

StepShapes asked_shapes(const Recipe& recipe) {
  if (classifies(recipe.model)) {
    return {.vocabulary = recipe.model.classes,
            .vocabulary_padded = recipe.model.classes,
            .source_rows = recipe.batch.pictures * patches_of(recipe.model, recipe.data),
            .target_rows = recipe.batch.pictures};
  }
  return {
      .vocabulary = recipe.model.vocabulary,
      .vocabulary_padded = recipe.model.vocabulary,
      .source_rows = captions(recipe.model) ? recipe.batch.pictures * patches_of(recipe.model, recipe.data) : recipe.batch.source_tokens,
      .target_rows = recipe.batch.target_tokens};
}

Guided pad_vocabulary(const Recipe& recipe, const StepShapes& shapes) {
  Guided guided{.shapes = shapes, .adjustments = {}};
  const std::int64_t from = shapes.vocabulary_padded, to = round_up(from, recipe.guidelines.pad_vocabulary_to);
  if (to == from) return guided;
  const std::int64_t element = size_of(precision_table(recipe.run.precision).logits);
  const std::int64_t before = alignment_of(0, from * element), after = alignment_of(0, to * element);
  std::string why = "the vocabulary is M of the projection and the logits' fastest-varying dimension: packed rows of ";
  if (after != before) {
    why += concat(to, " elements start on multiples of ", after, " bytes, rows of ", from, " on multiples of ", before);
  } else {
    why += concat(to, " elements start on multiples of ", after, " bytes as rows of ", from, " do, so no alignment is gained");
  }
  guided.shapes.vocabulary_padded = to;
  guided.adjustments.push_back({.rule = "pad_vocabulary_to",
                                .what = "vocabulary",
                                .from = from,
                                .to = to,
                                .why = std::move(why),
                                .cost_tokens = 0,
                                .cost_bytes = (to - from) * bytes_a_token(recipe)});
  return guided;
}

namespace {

Guided round_pictures(const Recipe& recipe, const StepShapes& shapes) {
  Guided guided{.shapes = shapes, .adjustments = {}};
  const std::int64_t patches = shapes.source_rows / shapes.target_rows, from = shapes.target_rows,
                     to = round_up(from, recipe.guidelines.batch_multiple_of);
  if (to == from) return guided;
  guided.shapes.source_rows = to * patches;
  guided.shapes.target_rows = to;
  guided.adjustments.push_back(
      {.rule = "batch_multiple_of",
       .what = "pictures",
       .from = from,
       .to = to,
       .why = concat("pictures are N of the head's forward and activation gradient and K of its weight gradient, and ", patches,
                     " rows each are so in the encoder; the added ones come from the data"),
       .cost_tokens = (to - from) * (patches + 1),
       .cost_bytes = 0});
  return guided;
}

}  // namespace

Guided round_batch(const Recipe& recipe, const StepShapes& shapes) {
  if (classifies(recipe.model)) return round_pictures(recipe, shapes);
  Guided guided{.shapes = shapes, .adjustments = {}};
  const auto round = [&](std::int64_t& rows, const char* what) {
    const std::int64_t from = rows;
    rows = round_up(from, recipe.guidelines.batch_multiple_of);
    if (rows == from) return;
    guided.adjustments.push_back(
        {.rule = "batch_multiple_of",
         .what = what,
         .from = from,
         .to = rows,
         .why = "tokens are N of forward and activation gradient and K of the weight gradient; added rows carry tokens "
                "where the corpus has them, else they are padding rows",
         .cost_tokens = rows - from,
         .cost_bytes = 0});
  };
  round(guided.shapes.source_rows, "source rows");
  round(guided.shapes.target_rows, "target rows");
  return guided;
}

Guided align_pitch(const Recipe& recipe, const StepShapes& shapes) {
  Guided guided{.shapes = shapes, .adjustments = {}};
  struct Matrix {
    const char* what;
    std::int64_t cols;
    DType dtype;
  };
  const PrecisionTable table = precision_table(recipe.run.precision);
  const std::array matrices = {Matrix{"pitch of the logits", shapes.vocabulary_padded, table.logits},
                               Matrix{"pitch of matrices d_model wide", recipe.model.d_model, table.activation},
                               Matrix{"pitch of matrices d_ff wide", recipe.model.d_ff, table.activation}};
  for (const Matrix& matrix : matrices) {
    const std::int64_t to = pitch_of(matrix.cols, matrix.dtype, recipe.guidelines.row_pitch);
    if (to == matrix.cols) continue;
    guided.adjustments.push_back({.rule = "row_pitch",
                                  .what = matrix.what,
                                  .from = matrix.cols,
                                  .to = to,
                                  .why = concat("every row starts on a multiple of ", kPitchBytes, " bytes, packed rows on multiples of ",
                                                alignment_of(0, matrix.cols * size_of(matrix.dtype))),
                                  .cost_tokens = 0,
                                  .cost_bytes = (to - matrix.cols) * size_of(matrix.dtype) * shapes.target_rows});
  }
  return guided;
}

Guided apply_guidelines(const Recipe& recipe) {
  Guided all{.shapes = asked_shapes(recipe), .adjustments = {}};
  for (const auto rule : {pad_vocabulary, round_batch, align_pitch}) {
    Guided next = rule(recipe, all.shapes);
    all.shapes = next.shapes;
    all.adjustments.insert(all.adjustments.end(), next.adjustments.begin(), next.adjustments.end());
  }
  return all;
}

}  // namespace tilewave
