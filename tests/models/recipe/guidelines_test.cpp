// Guidelines as arithmetic on shapes: worked examples of the guide's case study, then properties over random recipes.
#include "models/recipe/guidelines.h"

#include <gtest/gtest.h>
#include <random>
#include <tuple>

#include "framework/tensor/pitch.h"
#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

Recipe with_vocabulary(std::int64_t vocabulary) {
  Recipe recipe;
  recipe.model.vocabulary = vocabulary;
  recipe.model.d_model = 1024;
  recipe.model.d_ff = 4096;
  recipe.run.precision = Precision::bf16;
  recipe.batch.source_tokens = 4095;
  recipe.batch.target_tokens = 4095;
  recipe.guidelines.row_pitch = PitchPolicy::packed;
  return recipe;
}

TEST(Guidelines, DefaultsLeaveShapesAlone) {
  const Recipe recipe;
  const Guided guided = apply_guidelines(recipe);
  EXPECT_EQ(guided.shapes, asked_shapes(recipe));
  EXPECT_TRUE(guided.adjustments.empty());
  const StepShapes expected{.vocabulary = 128, .vocabulary_padded = 128, .source_rows = 1536, .target_rows = 1536};
  EXPECT_EQ(guided.shapes, expected);
}

TEST(Guidelines, StepOnePadsTheVocabulary) {
  Recipe recipe = with_vocabulary(33708);
  recipe.guidelines.pad_vocabulary_to = 8;
  const Guided guided = pad_vocabulary(recipe, asked_shapes(recipe));
  EXPECT_EQ(guided.shapes.vocabulary, 33708);
  EXPECT_EQ(guided.shapes.vocabulary_padded, 33712);
  ASSERT_EQ(guided.adjustments.size(), 1u);
  const Adjustment& padded = guided.adjustments.front();
  EXPECT_EQ(padded.rule, "pad_vocabulary_to");
  EXPECT_EQ(padded.from, 33708);
  EXPECT_EQ(padded.to, 33712);
  EXPECT_EQ(padded.cost_tokens, 0);
  EXPECT_EQ(padded.cost_bytes, 4 * 1024 * (4 + 4 + 4 + 4 + 2));  // master, gradient, two moments, bf16 copy
  EXPECT_NE(padded.why.find("rows of 33712 elements start on multiples of 32 bytes, rows of 33708 on multiples of 8"), std::string::npos)
      << padded.why;
}

// Rows of 96 elements of 4 bytes start on multiples of 128 bytes already, and 1,004 are as well aligned as 1,020.
TEST(Guidelines, PaddingThatAlignsNothingSaysSo) {
  for (const auto& [vocabulary, multiple, bytes] : {std::tuple{96, 64, 128}, std::tuple{1004, 60, 16}}) {
    Recipe recipe = with_vocabulary(vocabulary);
    recipe.run.precision = Precision::fp32;
    recipe.guidelines.pad_vocabulary_to = multiple;
    const Guided guided = pad_vocabulary(recipe, asked_shapes(recipe));
    ASSERT_EQ(guided.adjustments.size(), 1u);
    EXPECT_NE(guided.adjustments[0].why.find(
                  concat("elements start on multiples of ", bytes, " bytes as rows of ", vocabulary, " do, so no alignment is gained")),
              std::string::npos)
        << guided.adjustments[0].why;
  }
}

TEST(Guidelines, AnAlignedVocabularyIsLeftAlone) {
  Recipe recipe = with_vocabulary(33712);
  recipe.guidelines.pad_vocabulary_to = 8;
  EXPECT_TRUE(pad_vocabulary(recipe, asked_shapes(recipe)).adjustments.empty());
}

TEST(Guidelines, UntiedMatricesAndWiderTypesCostMore) {
  Recipe recipe = with_vocabulary(1001);
  recipe.guidelines.pad_vocabulary_to = 8;
  recipe.model.tied = false;
  recipe.run.precision = Precision::fp32;
  EXPECT_EQ(pad_vocabulary(recipe, asked_shapes(recipe)).adjustments.at(0).cost_bytes, 2 * 7 * 1024 * 16);
  recipe.run.precision = Precision::fp64;
  EXPECT_EQ(pad_vocabulary(recipe, asked_shapes(recipe)).adjustments.at(0).cost_bytes, 2 * 7 * 1024 * 32);
}

TEST(Guidelines, StepTwoRoundsRowsUp) {
  Recipe recipe = with_vocabulary(33708);
  recipe.guidelines.batch_multiple_of = 8;
  recipe.batch.source_tokens = 4096;
  const Guided guided = round_batch(recipe, asked_shapes(recipe));
  EXPECT_EQ(guided.shapes.source_rows, 4096);
  EXPECT_EQ(guided.shapes.target_rows, 4096);
  ASSERT_EQ(guided.adjustments.size(), 1u);
  EXPECT_EQ(guided.adjustments.front().what, "target rows");
  EXPECT_EQ(guided.adjustments.front().from, 4095);
  EXPECT_EQ(guided.adjustments.front().cost_tokens, 1);
}

TEST(Guidelines, NoSourceIsNotRounded) {
  Recipe recipe = with_vocabulary(256);
  recipe.batch.source_tokens = 0;
  recipe.guidelines.batch_multiple_of = 64;
  EXPECT_EQ(round_batch(recipe, asked_shapes(recipe)).shapes.source_rows, 0);
}

TEST(Guidelines, PitchAlignsRowsAndKeepsShapes) {
  Recipe recipe = with_vocabulary(33708);
  EXPECT_TRUE(align_pitch(recipe, asked_shapes(recipe)).adjustments.empty());
  recipe.guidelines.row_pitch = PitchPolicy::aligned;
  const Guided guided = align_pitch(recipe, asked_shapes(recipe));
  EXPECT_EQ(guided.shapes, asked_shapes(recipe));
  ASSERT_EQ(guided.adjustments.size(), 1u);
  const Adjustment& pitch = guided.adjustments.front();
  EXPECT_EQ(pitch.what, "pitch of the logits");
  EXPECT_EQ(pitch.from, 33708);
  EXPECT_EQ(pitch.to, 33728);
  EXPECT_EQ(pitch.cost_bytes, 20 * 2 * 4095);
}

TEST(Guidelines, PitchIsOfThePaddedVocabulary) {
  Recipe recipe = with_vocabulary(33708);
  recipe.guidelines.pad_vocabulary_to = 8;
  recipe.guidelines.row_pitch = PitchPolicy::aligned;
  const Guided guided = apply_guidelines(recipe);
  ASSERT_EQ(guided.adjustments.size(), 2u);
  EXPECT_EQ(guided.adjustments[1].from, 33712);
  EXPECT_EQ(guided.adjustments[1].to, 33728);
}

TEST(Guidelines, NeverShrinkAndNeverAddAWholeMultiple) {
  std::mt19937 random(17);
  const auto draw = [&](std::int64_t least, std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(least, most)(random); };
  for (int i = 0; i < 1000; ++i) {
    Recipe recipe;
    recipe.model.vocabulary = draw(2, 70000);
    recipe.model.d_model = draw(1, 2000);
    recipe.model.d_ff = draw(1, 8000);
    recipe.batch.source_tokens = draw(0, 9000);
    recipe.batch.target_tokens = draw(1, 9000);
    recipe.run.precision = kNames<Precision>[static_cast<std::size_t>(draw(0, 4))].value;
    recipe.guidelines.pad_vocabulary_to = draw(1, 200);
    recipe.guidelines.batch_multiple_of = draw(1, 200);
    recipe.guidelines.row_pitch = draw(0, 1) == 0 ? PitchPolicy::aligned : PitchPolicy::packed;
    const Guided guided = apply_guidelines(recipe);
    const auto rounded = [](std::int64_t from, std::int64_t to, std::int64_t multiple) {
      return to >= from && to - from < multiple && to % multiple == 0;
    };
    EXPECT_EQ(guided.shapes.vocabulary, recipe.model.vocabulary);
    EXPECT_TRUE(rounded(recipe.model.vocabulary, guided.shapes.vocabulary_padded, recipe.guidelines.pad_vocabulary_to));
    EXPECT_TRUE(rounded(recipe.batch.source_tokens, guided.shapes.source_rows, recipe.guidelines.batch_multiple_of));
    EXPECT_TRUE(rounded(recipe.batch.target_tokens, guided.shapes.target_rows, recipe.guidelines.batch_multiple_of));
    for (const Adjustment& adjustment : guided.adjustments) {
      EXPECT_GT(adjustment.to, adjustment.from) << adjustment.what;
      EXPECT_GT(adjustment.cost_tokens + adjustment.cost_bytes, 0) << adjustment.what;
      EXPECT_FALSE(adjustment.why.empty());
    }
  }
}

TEST(Pitch, IsTheLeastMultipleOf128Bytes) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32}) {
    for (std::int64_t cols = 1; cols < 300; ++cols) {
      const std::int64_t pitch = pitch_of(cols, dtype, PitchPolicy::aligned);
      EXPECT_GE(pitch, cols);
      EXPECT_EQ(pitch * size_of(dtype) % 128, 0);
      EXPECT_LT((pitch - cols) * size_of(dtype), 128);
      EXPECT_EQ(pitch_of(cols, dtype, PitchPolicy::packed), cols);
    }
  }
}

}  // namespace
}  // namespace tilewave
