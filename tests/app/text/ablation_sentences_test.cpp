// One sentence for each setting that is compared: gain, interval, and where it is noise.
#include "app/text/ablation_sentences.h"

#include <gtest/gtest.h>

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

struct Measured {
  const char* name = "";
  double gain = 0.0, low = 0.0, high = 0.0;
  double confidence = 0.9609375;
  int rounds = 9;
  const char* verdict = "equal bit for bit";
};
Json variant(const Measured& one) {
  return {{"name", one.name},
          {"baseline", "off"},
          {"ran", true},
          {"measured_gain_fraction", one.gain},
          {"measured_gain_low_fraction", one.low},
          {"measured_gain_high_fraction", one.high},
          {"measured_gain_confidence_fraction", one.confidence},
          {"rounds", one.rounds},
          {"same_loss", {{"verdict", one.verdict}, {"how", "why not"}}},
          {"label_smoothing", 0.1},
          {"dropout", 0.0},
          {"attention_dropout", 0.1}};
}
Json ablation(const std::vector<Measured>& all) {
  Json json = {{"variants", Json::array({variant({.name = "off", .verdict = "baseline"})})}};
  for (const Measured& one : all) json["variants"].push_back(variant(one));
  return json;
}
std::string sentence_of(const Measured& one) {
  const std::vector<std::string> sentences = gain_sentences(ablation({one}));
  EXPECT_EQ(sentences.size(), 1U) << "a baseline is compared with nobody";
  return sentences.empty() ? "" : sentences.front();
}

TEST(AblationSentences, AGainHasItsInterval) {
  EXPECT_EQ(sentence_of({.name = "on", .gain = 0.015, .low = 0.012, .high = 0.018}),
            "on: +1.5 % over off (96 % interval of 9 rounds: +1.2 % to +1.8 %).");
  EXPECT_EQ(sentence_of({.name = "on", .gain = -0.015, .low = -0.018, .high = -0.012}),
            "on: -1.5 % over off (96 % interval of 9 rounds: -1.8 % to -1.2 %).");
}

TEST(AblationSentences, WhatHoldsZeroIsWithinNoise) {
  EXPECT_EQ(sentence_of({.name = "on", .gain = 0.001, .low = -0.003, .high = 0.004}),
            "on: +0.1 % over off, within noise (96 % interval of 9 rounds: -0.3 % to +0.4 %).");
  EXPECT_NE(sentence_of({.name = "on", .gain = 0.001, .low = 0.0, .high = 0.004}).find("within noise"), std::string::npos);
}

TEST(AblationSentences, FewRoundsTellNothing) {
  EXPECT_EQ(sentence_of({.name = "on", .gain = 0.03, .low = 0.02, .high = 0.04, .confidence = 0.5, .rounds = 2}),
            "on: +3.0 % over off, within noise as far as 2 rounds can tell (+2.0 % to +4.0 %; --rounds 9 tells more).");
  EXPECT_NE(sentence_of({.name = "on", .gain = 0.03, .confidence = 0.0, .rounds = 1}).find("as far as 1 round can tell"),
            std::string::npos);
}

TEST(AblationSentences, AnotherLossIsSaid) {
  EXPECT_EQ(sentence_of({.name = "on", .gain = 0.015, .low = 0.012, .high = 0.018, .verdict = "DIFFERS"}),
            "on: +1.5 % over off (96 % interval of 9 rounds: +1.2 % to +1.8 %); its loss DIFFERS from its baseline's.");
  EXPECT_NE(sentence_of({.name = "on", .gain = 0.2, .low = 0.1, .high = 0.3, .verdict = "not compared"}).find("not compared: why not."),
            std::string::npos);
}

TEST(AblationSentences, WhatDidNotRunOrLaunchesTheSameSaysSo) {
  Json json = ablation({{.name = "alike"}, {.name = "alone"}});
  json["variants"][1]["same_launches_as"] = "off";
  json["variants"][2]["measured_gain_fraction"] = nullptr;
  json["variants"].push_back({{"name", "huge"}, {"baseline", "off"}, {"ran", false}, {"refused", "it does not fit."}});
  EXPECT_EQ(gain_sentences(json),
            (std::vector<std::string>{"alike: no gain, since it makes the same launches as off.",
                                      "alone: has no gain to tell, since off did not run.", "huge: did not run: it does not fit."}));
}

TEST(AblationSentences, TheVerdictNamesTheBestThatIsNoNoise) {
  EXPECT_EQ(verdict(ablation({{.name = "a", .gain = 0.05, .low = 0.04, .high = 0.06},
                              {.name = "noisy", .gain = 0.5, .low = -0.1, .high = 0.9},
                              {.name = "b", .gain = 0.07, .low = 0.06, .high = 0.08}})),
            "most is gained by b, +7.0 % over off; every loss is its baseline's");
  EXPECT_EQ(verdict(ablation({{.name = "a", .gain = -0.05, .low = -0.06, .high = -0.04}})),
            "no setting gains more than noise; every loss is its baseline's");
  EXPECT_EQ(verdict(ablation({{.name = "a", .verdict = "DIFFERS"}, {.name = "b", .verdict = "another model"}})),
            "no setting gains more than noise; of 1 the loss DIFFERS; 1 is another model");
}

TEST(AblationSentences, TheLossIsNamedByWhatAllSettingsHave) {
  Json json = ablation({{.name = "on"}});
  EXPECT_EQ(training_loss_name(json), "training loss (smoothed, with dropout)");
  json["variants"][1]["label_smoothing"] = 0.0;
  EXPECT_EQ(training_loss_name(json), "training loss (smoothing and dropout as each setting has them)");
}

}  // namespace
}  // namespace tilewave
