// What came of an ablation, in sentences: one for each setting that is compared with another, and which of them gains most. From its JSON,
// so that the terminal and the page say the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/text/losses.h"

namespace tilewave {

// "pad_vocabulary_to=8: +1.5 % over pad_vocabulary_to=1 (96 % interval of 9 rounds: +1.2 % to +1.8 %)."
std::vector<std::string> gain_sentences(const nlohmann::ordered_json& ablation);
// "most is gained by ...; every loss is its baseline's"
std::string verdict(const nlohmann::ordered_json& ablation);

// "baseline, padded", or that it is every one of so many settings.
std::string settings_text(const std::vector<std::string>& names, std::size_t all);

// Says so where the settings that ran differ in smoothing or dropout.
std::string training_loss_name(const nlohmann::ordered_json& ablation);

// What kind of interval it is, for a legend.
inline constexpr const char* kIntervalLegend =
    "Gains are of real target tokens, or of pictures, per second. An interval holds the median of the rounds' own gains, each round "
    "against its baseline's same round, by their order alone (a sign test); a gain whose interval holds 0 is within noise.";

}  // namespace tilewave
