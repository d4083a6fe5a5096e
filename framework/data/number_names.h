// English and German names of the numbers 0 .. 999,999 by rule, and their split for learning to translate one into the other.
//   42,719   "forty-two thousand seven hundred nineteen"   "zweiundvierzigtausendsiebenhundertneunzehn" (UTF-8)
// English is written without "and". A seed chooses the test and validation numbers, uniform over the range; every other number
// is a training number, and draw i of the training numbers is a function of (seed, i) alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewave {

inline constexpr std::int32_t kNumberNames = 1'000'000;

std::string english_name(std::int32_t number);
std::string german_name(std::int32_t number);

// Nine numbers in ten have six digits: `over_digits` draws the count of digits first, then a number that has as many. `mixed` does
// so for three draws in ten, so that a model meets short names too.
enum class NumberDistribution : std::uint8_t { over_numbers, over_digits, mixed };
inline constexpr NumberDistribution kTrainingNumbers = NumberDistribution::mixed;

class NumberSplit {
 public:
  static constexpr std::int32_t kTest = 1'000, kValidation = 500;

  explicit NumberSplit(std::uint64_t seed, NumberDistribution distribution = kTrainingNumbers);

  const std::vector<std::int32_t>& test() const { return test_; }
  const std::vector<std::int32_t>& validation() const { return validation_; }
  bool trains(std::int32_t number) const { return !held_out_[static_cast<std::size_t>(number)]; }
  std::int32_t training(std::uint64_t draw) const;

 private:
  std::uint64_t seed_;
  NumberDistribution distribution_;
  std::vector<std::int32_t> test_, validation_;
  std::vector<bool> held_out_;
};

}  // namespace tilewave
