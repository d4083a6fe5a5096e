// A 64-bit summary of a corpus, so that a run is not resumed on another one: every word that went in, in order, and how many.
// It tells accidents apart, not attacks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "framework/tensor/random.h"

namespace tilewave {

class Fingerprint {
 public:
  void add(std::uint64_t word) { value_ = mix64(value_ ^ (word + kGolden64)); }
  void add(std::string_view bytes) {
    add(std::uint64_t{bytes.size()});
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      std::uint64_t word = 0;
      for (const char byte : bytes.substr(at, 8)) word = word << 8 | static_cast<unsigned char>(byte);
      add(word);
    }
  }
  void add(std::span<const std::int32_t> ids) {
    add(std::uint64_t{ids.size()});
    for (const std::int32_t id : ids) add(static_cast<std::uint64_t>(id));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace tilewave
