// BLEU and chrF of translations, by sacrebleu where a Python has it (app/text/score.py).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tilewave {

struct TranslationScores {
  double bleu = 0.0, chrf = 0.0;               // of 100
  std::string bleu_signature, chrf_signature;  // how they were computed
};

struct ScoredTranslations {
  std::optional<TranslationScores> scores;
  std::string absent;  // why there are none, a sentence
};
ScoredTranslations score_translations(const std::vector<std::string>& translations, const std::vector<std::string>& references);

}  // namespace tilewave
