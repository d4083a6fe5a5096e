// A training loss names what the validation loss has not.
#include "app/text/losses.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

Recipe recipe_with(double smoothing, double dropout, double attention_dropout) {
  Recipe recipe;
  recipe.optimizer.label_smoothing = smoothing;
  recipe.model.dropout = dropout;
  recipe.model.attention_dropout = attention_dropout;
  return recipe;
}

TEST(Losses, OnlyWhatIsOnIsNamed) {
  EXPECT_EQ(training_loss_name(recipe_with(0.0, 0.0, 0.0)), "training loss");
  EXPECT_EQ(training_loss_name(recipe_with(0.1, 0.0, 0.0)), "training loss (smoothed)");
  EXPECT_EQ(training_loss_name(recipe_with(0.0, 0.1, 0.0)), "training loss (with dropout)");
  EXPECT_EQ(training_loss_name(recipe_with(0.0, 0.0, 0.1)), "training loss (with dropout)");
  EXPECT_EQ(training_loss_name(recipe_with(0.1, 0.1, 0.0)), "training loss (smoothed, with dropout)");
}

TEST(Losses, ALegendTellsTheTwoApart) {
  EXPECT_EQ(losses_legend(recipe_with(0.0, 0.0, 0.0)), "");
  EXPECT_EQ(losses_legend(recipe_with(0.1, 0.1, 0.0)),
            "losses shown: training loss (smoothed, with dropout); validation loss, which has neither");
  EXPECT_EQ(losses_legend(recipe_with(0.1, 0.0, 0.0)), "losses shown: training loss (smoothed); validation loss, which has none of it");
}

}  // namespace
}  // namespace tilewave
