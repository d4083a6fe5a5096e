// What a loss is called where a person reads it. The training loss has what training adds: smoothed labels, dropout; the validation loss
// has neither, so that the two are no two readings of one number.
#pragma once

#include <string>

#include "models/recipe/config.h"
#include "models/step/train_step.h"

namespace tilewave {

struct LossTerms {
  bool smoothed = false, dropout = false;

  friend bool operator==(const LossTerms&, const LossTerms&) = default;
};
LossTerms loss_terms(const Recipe& recipe);

// "training loss (smoothed, with dropout)": what is on is named.
std::string training_loss_name(const LossTerms& terms);
inline std::string training_loss_name(const Recipe& recipe) { return training_loss_name(loss_terms(recipe)); }

// "losses shown: training loss (smoothed, with dropout); validation loss, which has neither"; nothing where both are the same.
std::string losses_legend(const Recipe& recipe);

inline constexpr const char* kTrainingLoss = "training loss";
inline constexpr const char* kValidationLoss = "validation loss";
inline constexpr const char* kValidationAccuracy = "validation accuracy";

// Of pictures: "99.2 % (1,984 of 2,000 pictures)".
std::string accuracy_text(const ValidationLoss& validation);

}  // namespace tilewave
