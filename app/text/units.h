// Numbers as a person reads them: times in the unit that suits, thousands with separators, shares in percent. JSON has none of this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/device.h"

namespace tilewave {

std::string count_text(std::int64_t count);                 // "33,708"
std::string signed_count_text(std::int64_t count);          // "+320"
std::string time_text(double seconds);                      // "14.52 ms": four digits in s, ms, us or ns; "unknown" from 0 down
std::string duration_text(double seconds);                  // the same, of a run: "23.6 s"
std::string rate_text(double per_s);                        // "359,123"; three digits below 100
std::string flops_text(double flops_per_s);                 // "453.4 TFLOP/s", or GFLOP/s, MFLOP/s
std::string bytes_text(std::int64_t bytes);                 // "12.3 MiB"
std::string signed_bytes_text(std::int64_t bytes);          // "+12.3 MiB"
std::string percent_text(double fraction, int digits = 1);  // "98.8 %"
std::string gain_text(double fraction, int digits = 1);     // "+1.2 %"
std::string number_text(double value, const char* format);  // by printf's format
std::string known_text(double value, const char* format);   // the same; "unknown" from 0 down
std::string gain_or_nothing(const std::optional<double>& fraction, int digits = 1);

std::string device_text(const DeviceInfo& device);  // "NVIDIA H200 (132 SMs)"

// What a column of rates is in, since a column has one unit: GFLOP/s where none comes to 1 TFLOP/s.
struct RateUnit {
  const char* unit;
  double scale;  // of FLOP/s
};
RateUnit rate_unit(double largest_flops_per_s);
RateUnit rate_unit(Backend backend);

}  // namespace tilewave
