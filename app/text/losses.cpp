#include "app/text/losses.h"

#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {

LossTerms loss_terms(const Recipe& recipe) {
  return {.smoothed = recipe.optimizer.label_smoothing > 0.0,
          .dropout = recipe.model.dropout > 0.0 || recipe.model.attention_dropout > 0.0};
}

std::string training_loss_name(const LossTerms& terms) {
  if (!terms.smoothed && !terms.dropout) return kTrainingLoss;
  return std::string(kTrainingLoss) + (!terms.dropout ? " (smoothed)" : terms.smoothed ? " (smoothed, with dropout)" : " (with dropout)");
}

std::string accuracy_text(const ValidationLoss& validation) {
  return concat(percent_text(validation.accuracy().value(), 2), " (", count_text(validation.right.value()), " of ",
                count_text(validation.target_tokens), " pictures)");
}

std::string losses_legend(const Recipe& recipe) {
  const LossTerms terms = loss_terms(recipe);
  if (terms == LossTerms()) return "";
  const bool both = terms.smoothed && terms.dropout;
  return "losses shown: " + training_loss_name(terms) + "; " + kValidationLoss + (both ? ", which has neither" : ", which has none of it");
}

}  // namespace tilewave
