// Names by hand, names read back by a reader of its own, and a split whose three parts share nothing.
#include "framework/data/number_names.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "framework/tensor/random.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

struct Name {
  std::int32_t number;
  std::string_view english, german;
};

constexpr Name kSaid[] = {
    {0, "zero", "null"},
    {1, "one", "eins"},
    {7, "seven", "sieben"},
    {11, "eleven", "elf"},
    {12, "twelve", "zwölf"},
    {16, "sixteen", "sechzehn"},
    {17, "seventeen", "siebzehn"},
    {20, "twenty", "zwanzig"},
    {21, "twenty-one", "einundzwanzig"},
    {30, "thirty", "dreißig"},
    {31, "thirty-one", "einunddreißig"},
    {60, "sixty", "sechzig"},
    {66, "sixty-six", "sechsundsechzig"},
    {70, "seventy", "siebzig"},
    {77, "seventy-seven", "siebenundsiebzig"},
    {100, "one hundred", "einhundert"},
    {101, "one hundred one", "einhunderteins"},
    {111, "one hundred eleven", "einhundertelf"},
    {121, "one hundred twenty-one", "einhunderteinundzwanzig"},
    {616, "six hundred sixteen", "sechshundertsechzehn"},
    {717, "seven hundred seventeen", "siebenhundertsiebzehn"},
    {1000, "one thousand", "eintausend"},
    {1001, "one thousand one", "eintausendeins"},
    {1100, "one thousand one hundred", "eintausendeinhundert"},
    {2011, "two thousand eleven", "zweitausendelf"},
    {12000, "twelve thousand", "zwölftausend"},
    {21001, "twenty-one thousand one", "einundzwanzigtausendeins"},
    {42719, "forty-two thousand seven hundred nineteen", "zweiundvierzigtausendsiebenhundertneunzehn"},
    {100000, "one hundred thousand", "einhunderttausend"},
    {101101, "one hundred one thousand one hundred one", "einhunderteintausendeinhunderteins"},
    {999999, "nine hundred ninety-nine thousand nine hundred ninety-nine", "neunhundertneunundneunzigtausendneunhundertneunundneunzig"},
};

TEST(NumberNames, AreSpelledAsInTheTable) {
  for (const Name& name : kSaid) {
    EXPECT_EQ(english_name(name.number), name.english);
    EXPECT_EQ(german_name(name.number), name.german);
  }
}

TEST(NumberNames, RefuseWhatHasNone) {
  EXPECT_THROW(english_name(-1), Error);
  EXPECT_THROW(german_name(1'000'000), Error);
}

// Readers that work word by word, the other way round than the names are built.
std::int32_t read_english(const std::string& name) {
  static const std::map<std::string, std::int32_t> words = {
      {"zero", 0},      {"one", 1},      {"two", 2},      {"three", 3},      {"four", 4},      {"five", 5},      {"six", 6},
      {"seven", 7},     {"eight", 8},    {"nine", 9},     {"ten", 10},       {"eleven", 11},   {"twelve", 12},   {"thirteen", 13},
      {"fourteen", 14}, {"fifteen", 15}, {"sixteen", 16}, {"seventeen", 17}, {"eighteen", 18}, {"nineteen", 19}, {"twenty", 20},
      {"thirty", 30},   {"forty", 40},   {"fifty", 50},   {"sixty", 60},     {"seventy", 70},  {"eighty", 80},   {"ninety", 90}};
  std::string spaced = name;
  std::replace(spaced.begin(), spaced.end(), '-', ' ');
  std::istringstream stream(spaced);
  std::int32_t thousands = 0, below = 0;
  for (std::string word; stream >> word;) {
    if (word == "thousand") {
      thousands = below;
      below = 0;
    } else if (word == "hundred") {
      below *= 100;
    } else {
      below += words.at(word);
    }
  }
  return 1000 * thousands + below;
}

std::int32_t read_german(std::string name) {
  if (const std::size_t at = name.find("tausend"); at != std::string::npos) {
    const std::string rest = name.substr(at + 7);
    return 1000 * read_german(name.substr(0, at)) + (rest.empty() ? 0 : read_german(rest));
  }
  if (const std::size_t at = name.find("hundert"); at != std::string::npos) {
    const std::string rest = name.substr(at + 7);
    return 100 * read_german(name.substr(0, at)) + (rest.empty() ? 0 : read_german(rest));
  }
  if (const std::size_t at = name.find("und"); at != std::string::npos)
    return read_german(name.substr(0, at)) + read_german(name.substr(at + 3));
  static const std::map<std::string, std::int32_t> words = {
      {"null", 0},      {"ein", 1},       {"eins", 1},      {"zwei", 2},      {"drei", 3},      {"vier", 4},
      {"fünf", 5},      {"sechs", 6},     {"sieben", 7},    {"acht", 8},      {"neun", 9},      {"zehn", 10},
      {"elf", 11},      {"zwölf", 12},    {"dreizehn", 13}, {"vierzehn", 14}, {"fünfzehn", 15}, {"sechzehn", 16},
      {"siebzehn", 17}, {"achtzehn", 18}, {"neunzehn", 19}, {"zwanzig", 20},  {"dreißig", 30},  {"vierzig", 40},
      {"fünfzig", 50},  {"sechzig", 60},  {"siebzig", 70},  {"achtzig", 80},  {"neunzig", 90}};
  return words.at(name);
}

TEST(NumberNames, CanBeReadBack) {
  Random random(3);
  for (std::int32_t i = 0; i < 20'000; ++i) {
    const std::int32_t number = i < 2'000 ? i : static_cast<std::int32_t>(random.below(kNumberNames));
    EXPECT_EQ(read_english(english_name(number)), number);
    EXPECT_EQ(read_german(german_name(number)), number);
  }
}

TEST(NumberSplit, SharesNoNumberBetweenItsParts) {
  const NumberSplit split(1);
  std::set<std::int32_t> held_out(split.test().begin(), split.test().end());
  EXPECT_EQ(held_out.size(), 1'000u);
  held_out.insert(split.validation().begin(), split.validation().end());
  EXPECT_EQ(held_out.size(), 1'500u);
  for (std::int32_t number = 0; number < kNumberNames; ++number) ASSERT_EQ(split.trains(number), !held_out.contains(number));
  for (const NumberDistribution distribution :
       {NumberDistribution::over_numbers, NumberDistribution::over_digits, NumberDistribution::mixed}) {
    const NumberSplit drawn(1, distribution);
    EXPECT_EQ(drawn.test(), split.test());
    for (std::uint64_t draw = 0; draw < 50'000; ++draw) ASSERT_FALSE(held_out.contains(drawn.training(draw)));
  }
}

TEST(NumberSplit, HoldsOutNumbersOfTheWholeRange) {
  const NumberSplit split(2);
  int upper_half = 0;
  for (const std::int32_t number : split.test()) upper_half += number >= kNumberNames / 2 ? 1 : 0;
  EXPECT_NEAR(upper_half, 500, 80);
}

TEST(NumberSplit, DependsOnTheSeed) {
  EXPECT_EQ(NumberSplit(1).test(), NumberSplit(1).test());
  EXPECT_NE(NumberSplit(1).test(), NumberSplit(2).test());
  EXPECT_EQ(NumberSplit(1).training(5), NumberSplit(1).training(5));
  EXPECT_NE(NumberSplit(1).training(5), NumberSplit(2).training(5));
}

TEST(NumberSplit, DrawsNumbersOrDigitsUniformly) {
  const NumberSplit numbers(1, NumberDistribution::over_numbers), digits(1, NumberDistribution::over_digits),
      mixed(1, NumberDistribution::mixed);
  std::map<std::size_t, int> of_numbers, of_digits, of_mixed;
  for (std::uint64_t draw = 0; draw < 12'000; ++draw) {
    ++of_numbers[std::to_string(numbers.training(draw)).size()];
    ++of_digits[std::to_string(digits.training(draw)).size()];
    ++of_mixed[std::to_string(mixed.training(draw)).size()];
  }
  EXPECT_NEAR(of_numbers[6], 10'800, 200);
  EXPECT_NEAR(of_mixed[6], 0.7 * 10'800 + 0.3 * 2'000, 200);
  EXPECT_NEAR(of_mixed[2], 0.7 * 1 + 0.3 * 2'000, 100);
  for (std::size_t length = 1; length <= 6; ++length) EXPECT_NEAR(of_digits[length], 2'000, 200) << length << " digits";
}

}  // namespace
}  // namespace tilewave
