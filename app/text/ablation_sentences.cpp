#include "app/text/ablation_sentences.h"

#include <cstdint>

#include "app/text/json_fields.h"
#include "app/text/units.h"
#include "framework/measure/interleave.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

bool ran(const Json& variant) { return variant.at("ran").get<bool>(); }
bool has_baseline(const Json& variant) { return variant.at("baseline") != variant.at("name"); }
bool measured(const Json& variant) { return ran(variant) && has_baseline(variant) && !variant.at("measured_gain_fraction").is_null(); }

enum class Told : std::uint8_t { gain, noise, too_few_rounds };
Told told(const Json& variant) {
  if (number_at(variant, "measured_gain_confidence_fraction") < kConfidence) return Told::too_few_rounds;
  const bool zero = number_at(variant, "measured_gain_low_fraction") <= 0.0 && number_at(variant, "measured_gain_high_fraction") >= 0.0;
  return zero ? Told::noise : Told::gain;
}

std::string range_text(const Json& variant) {
  return concat(gain_text(number_at(variant, "measured_gain_low_fraction")), " to ",
                gain_text(number_at(variant, "measured_gain_high_fraction")));
}

std::string loss_text(const Json& variant) {
  const std::string verdict = text_at(variant.at("same_loss"), "verdict");
  if (verdict == "DIFFERS") return "; its loss DIFFERS from its baseline's";
  return verdict == "not compared" ? "; its loss was not compared: " + text_at(variant.at("same_loss"), "how") : std::string();
}

std::string gain_sentence(const Json& variant) {
  const std::string name = text_at(variant, "name"), baseline = text_at(variant, "baseline");
  if (!ran(variant)) return concat(name, ": did not run: ", text_at(variant, "refused"));
  if (!measured(variant)) return concat(name, ": has no gain to tell, since ", baseline, " did not run.");
  if (variant.contains("same_launches_as") && variant.at("same_launches_as") == baseline) {
    return concat(name, ": no gain, since it makes the same launches as ", baseline, loss_text(variant), '.');
  }
  const std::string gain = concat(name, ": ", gain_text(number_at(variant, "measured_gain_fraction")), " over ", baseline);
  const std::string rounds = concat(variant.at("rounds").get<std::int64_t>(), variant.at("rounds") == 1 ? " round" : " rounds");
  const std::string interval = concat(" (", percent_text(number_at(variant, "measured_gain_confidence_fraction"), 0), " interval of ",
                                      rounds, ": ", range_text(variant), ')');
  switch (told(variant)) {
    case Told::too_few_rounds:
      return concat(gain, ", within noise as far as ", rounds, " can tell (", range_text(variant), "; --rounds 9 tells more)",
                    loss_text(variant), '.');
    case Told::noise:
      return concat(gain, ", within noise", interval, loss_text(variant), '.');
    case Told::gain:
      break;
  }
  return concat(gain, interval, loss_text(variant), '.');
}

std::string losses_text(const Json& ablation) {
  int refused = 0, differing = 0, unknown = 0, others = 0;
  for (const Json& variant : ablation.at("variants")) {
    if (!ran(variant)) {
      ++refused;
      continue;
    }
    const std::string verdict = text_at(variant.at("same_loss"), "verdict");
    differing += verdict == "DIFFERS" ? 1 : 0;
    unknown += verdict == "not compared" ? 1 : 0;
    others += verdict == "another model" ? 1 : 0;
  }
  std::string text;
  if (differing > 0) text += concat("; of ", differing, " the loss DIFFERS");
  if (unknown > 0) text += concat("; of ", unknown, " the loss was not compared");
  if (others > 0) text += concat("; ", others, others == 1 ? " is" : " are", " another model");
  if (refused > 0) text += concat("; ", refused, " did not run");
  return text.empty() ? "; every loss is its baseline's" : text;
}

}  // namespace

std::vector<std::string> gain_sentences(const Json& ablation) {
  std::vector<std::string> sentences;
  for (const Json& variant : ablation.at("variants")) {
    if (has_baseline(variant)) sentences.push_back(gain_sentence(variant));
  }
  return sentences;
}

std::string verdict(const Json& ablation) {
  const Json* best = nullptr;
  for (const Json& variant : ablation.at("variants")) {
    if (!measured(variant) || told(variant) != Told::gain || number_at(variant, "measured_gain_fraction") <= 0.0) continue;
    if (best == nullptr || variant.at("measured_gain_fraction") > best->at("measured_gain_fraction")) best = &variant;
  }
  const std::string gains = best == nullptr
                                ? "no setting gains more than noise"
                                : concat("most is gained by ", text_at(*best, "name"), ", ",
                                         gain_text(number_at(*best, "measured_gain_fraction")), " over ", text_at(*best, "baseline"));
  return gains + losses_text(ablation);
}

std::string settings_text(const std::vector<std::string>& names, std::size_t all) {
  if (names.size() == all && all > 1) return "every setting";
  std::string text;
  for (const std::string& name : names) text += concat(text.empty() ? "" : ", ", name);
  return text;
}

std::string training_loss_name(const Json& ablation) {
  const Json* first = nullptr;
  LossTerms terms;
  for (const Json& variant : ablation.at("variants")) {
    if (!ran(variant)) continue;
    const LossTerms own = {.smoothed = number_at(variant, "label_smoothing") > 0.0,
                           .dropout = number_at(variant, "dropout") > 0.0 || number_at(variant, "attention_dropout") > 0.0};
    if (first != nullptr && !(own == terms)) return concat(kTrainingLoss, " (smoothing and dropout as each setting has them)");
    first = &variant;
    terms = own;
  }
  return training_loss_name(terms);
}

}  // namespace tilewave
