#include "framework/data/number_names.h"

#include <array>
#include <numeric>
#include <string_view>

#include "framework/tensor/random.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::array<std::string_view, 20> kEnglish = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                                       "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                                       "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<std::string_view, 10> kEnglishTens = {"",      "",      "twenty",  "thirty", "forty",
                                                           "fifty", "sixty", "seventy", "eighty", "ninety"};

constexpr std::array<std::string_view, 20> kGerman = {"null",     "ein",      "zwei",     "drei",     "vier",     "fünf",    "sechs",
                                                      "sieben",   "acht",     "neun",     "zehn",     "elf",      "zwölf",   "dreizehn",
                                                      "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr std::array<std::string_view, 10> kGermanTens = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                                          "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

void append_word(std::string& name, std::string_view word) {
  if (!name.empty()) name += ' ';
  name += word;
}

// 1 .. 999
void append_english(std::string& name, std::int32_t number) {
  const auto hundreds = static_cast<std::size_t>(number / 100), rest = static_cast<std::size_t>(number % 100);
  if (hundreds > 0) {
    append_word(name, kEnglish[hundreds]);
    append_word(name, "hundred");
  }
  if (rest >= 20) {
    append_word(name, kEnglishTens[rest / 10]);
    if (rest % 10 > 0) (name += '-') += kEnglish[rest % 10];
  } else if (rest > 0) {
    append_word(name, kEnglish[rest]);
  }
}

// 1 .. 999, as it stands before "tausend": a final one is "ein"
void append_german(std::string& name, std::int32_t number) {
  const auto hundreds = static_cast<std::size_t>(number / 100), rest = static_cast<std::size_t>(number % 100);
  if (hundreds > 0) (name += kGerman[hundreds]) += "hundert";
  if (rest >= 20) {
    if (rest % 10 > 0) (name += kGerman[rest % 10]) += "und";
    name += kGermanTens[rest / 10];
  } else if (rest > 0) {
    name += kGerman[rest];
  }
}

void check_range(std::int32_t number) {
  TW_CHECK(number >= 0 && number < kNumberNames, "number ", number, " has no name here; numbers from 0 to 999,999 have.");
}

}  // namespace

std::string english_name(std::int32_t number) {
  check_range(number);
  if (number == 0) return std::string(kEnglish[0]);
  std::string name;
  if (number >= 1000) {
    append_english(name, number / 1000);
    append_word(name, "thousand");
  }
  append_english(name, number % 1000);
  return name;
}

std::string german_name(std::int32_t number) {
  check_range(number);
  if (number == 0) return std::string(kGerman[0]);
  std::string name;
  if (number >= 1000) {
    append_german(name, number / 1000);
    name += "tausend";
  }
  append_german(name, number % 1000);
  if (number % 100 == 1) name += 's';
  return name;
}

NumberSplit::NumberSplit(std::uint64_t seed, NumberDistribution distribution)
    : seed_(seed), distribution_(distribution), held_out_(kNumberNames, false) {
  std::vector<std::int32_t> numbers(kNumberNames);
  std::iota(numbers.begin(), numbers.end(), 0);
  Random random(random_key(seed, 'h'));
  shuffle(std::span(numbers), random);
  test_.assign(numbers.begin(), numbers.begin() + kTest);
  validation_.assign(numbers.begin() + kTest, numbers.begin() + kTest + kValidation);
  for (std::int32_t i = 0; i < kTest + kValidation; ++i) held_out_[static_cast<std::size_t>(numbers[static_cast<std::size_t>(i)])] = true;
}

std::int32_t NumberSplit::training(std::uint64_t draw) const {
  Random random(random_key(seed_, 't', draw));
  for (;;) {
    std::uint32_t first = 0, end = kNumberNames;
    const bool over_digits =
        distribution_ == NumberDistribution::mixed ? random.below(10) < 3 : distribution_ == NumberDistribution::over_digits;
    if (over_digits) {
      end = 10;
      for (std::uint32_t digits = 1 + random.below(6); digits > 1; --digits) {
        first = end;
        end *= 10;
      }
    }
    const auto number = static_cast<std::int32_t>(first + random.below(end - first));
    if (trains(number)) return number;
  }
}

}  // namespace tilewave
