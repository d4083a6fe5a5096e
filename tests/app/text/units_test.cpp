// The unit that suits, and separators.
#include "app/text/units.h"

#include <cmath>
#include <gtest/gtest.h>

namespace tilewave {
namespace {

TEST(Units, TimesAreInTheUnitThatSuits) {
  EXPECT_EQ(time_text(1.5e-9), "1.500 ns");
  EXPECT_EQ(time_text(123.44e-9), "123.4 ns");
  EXPECT_EQ(time_text(1.2344e-6), "1.234 us");
  EXPECT_EQ(time_text(57.6e-6), "57.60 us");
  EXPECT_EQ(time_text(14.5212e-3), "14.52 ms");
  EXPECT_EQ(time_text(23.61), "23.61 s");
  EXPECT_EQ(time_text(12345.6), "12,346 s");
  EXPECT_EQ(duration_text(23.61), "23.6 s");
  EXPECT_EQ(duration_text(0.18321), "183.2 ms");
  EXPECT_EQ(duration_text(3723.4), "3,723 s");
  EXPECT_EQ(time_text(0.0), "unknown");
  EXPECT_EQ(time_text(NAN), "unknown");
}

// What rounds up to a thousand of one unit is one of the next.
TEST(Units, RoundingKeepsFourDigits) {
  EXPECT_EQ(time_text(999.94e-6), "999.9 us");
  EXPECT_EQ(time_text(999.96e-6), "1.000 ms");
  EXPECT_EQ(time_text(9.99949e-3), "9.999 ms");
  EXPECT_EQ(time_text(9.9996e-3), "10.00 ms");
  EXPECT_EQ(time_text(99.996e-3), "100.0 ms");
  EXPECT_EQ(time_text(999.96e-3), "1.000 s");
}

TEST(Units, ThousandsHaveSeparators) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(33708), "33,708");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
  EXPECT_EQ(signed_count_text(320), "+320");
  EXPECT_EQ(signed_count_text(1320), "+1,320");
  EXPECT_EQ(signed_count_text(-1320), "-1,320");
  EXPECT_EQ(rate_text(359123.4), "359,123");
  EXPECT_EQ(rate_text(999.7), "1,000");
  EXPECT_EQ(rate_text(12.345), "12.3");
}

TEST(Units, RatesOfFlopsToo) {
  EXPECT_EQ(flops_text(453.41e12), "453.4 TFLOP/s");
  EXPECT_EQ(flops_text(148.4e9), "148.4 GFLOP/s");
  EXPECT_EQ(flops_text(999.96e9), "1.000 TFLOP/s");
  EXPECT_EQ(flops_text(2.5e6), "2.500 MFLOP/s");
  EXPECT_EQ(flops_text(1.5e15), "1,500 TFLOP/s");
}

TEST(Units, SharesGainsAndBytes) {
  EXPECT_EQ(percent_text(0.98765), "98.8 %");
  EXPECT_EQ(percent_text(0.5, 0), "50 %");
  EXPECT_EQ(gain_text(0.0123), "+1.2 %");
  EXPECT_EQ(gain_text(-0.0123, 2), "-1.23 %");
  EXPECT_EQ(gain_or_nothing(std::nullopt), "");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1 << 20), "1.0 MiB");
  EXPECT_EQ(signed_bytes_text(-(1 << 20)), "-1.0 MiB");
  EXPECT_EQ(signed_bytes_text(512), "+512 B");
}

TEST(Units, ADeviceHasAsManySMsOrThreads) {
  EXPECT_EQ(device_text({.backend = Backend::cpu, .name = "a CPU", .sm_count = 1}), "a CPU (1 thread)");
  EXPECT_EQ(device_text({.backend = Backend::cpu, .name = "a CPU", .sm_count = 2}), "a CPU (2 threads)");
  EXPECT_EQ(device_text({.backend = Backend::cuda, .name = "a GPU", .sm_count = 132}), "a GPU (132 SMs)");
}

}  // namespace
}  // namespace tilewave
