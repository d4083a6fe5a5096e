// Text that reads back bit for bit.
#include "framework/recipe/writer.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "framework/recipe/reader.h"
#include "kernels/core/error.h"
#include "tests/framework/recipe/bakery.h"

namespace tilewave {
namespace {

Bakery read_back(const std::string& text) {
  Bakery bakery;
  std::vector<Section> sections = sections_of(bakery);
  read_toml({.source = "written.toml", .text = text}, sections);
  return bakery;
}

TEST(Writer, WritesEverySectionAndKey) {
  Bakery bakery;
  EXPECT_EQ(
      to_toml(sections_of(bakery)),
      "[dough]\ngrain = \"rye\"\nloaves = 12\nsalt = 0.02\nlabel = \"plain\"\nsourdough = true\n\n[oven]\nheat = 250.0\nminutes = 40\n");
}

TEST(Writer, FloatsStayFloatsAndExact) {
  EXPECT_EQ(toml_float(1.0), "1.0");
  EXPECT_EQ(toml_float(0.1), "0.1");
  EXPECT_EQ(toml_float(-0.0), "-0.0");
  EXPECT_EQ(toml_float(1e-9), "1e-09");
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    Bakery bakery;
    do {
      bakery.oven.heat = std::abs(std::bit_cast<double>(random()));
    } while (!std::isfinite(bakery.oven.heat) || bakery.oven.heat == 0.0);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read_back(to_toml(sections_of(bakery))).oven.heat),
              std::bit_cast<std::uint64_t>(bakery.oven.heat));
  }
}

TEST(Writer, EdgesReadBack) {
  for (const double heat : {std::numeric_limits<double>::min(), std::numeric_limits<double>::denorm_min(),
                            std::numeric_limits<double>::max(), 1e15, 1e16, 123456789012345680.0}) {
    Bakery bakery;
    bakery.oven.heat = heat;
    bakery.oven.minutes = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(read_back(to_toml(sections_of(bakery))), bakery) << heat;
  }
}

TEST(Writer, AnyStringReadsBack) {
  std::mt19937 random(13);
  const std::string alphabet[] = {"\"", "\\", "\n", "\r", "\t", "\x01", "\x1f", "\x7f", "#", "=", "]", "a", " ", "ä", "€", "😀", "'"};
  for (int i = 0; i < 500; ++i) {
    Bakery bakery;
    bakery.dough.label.clear();
    for (std::size_t c = random() % 12; c > 0; --c) bakery.dough.label += alphabet[random() % std::size(alphabet)];
    EXPECT_EQ(read_back(to_toml(sections_of(bakery))), bakery) << bakery.dough.label;
  }
}

TEST(Writer, DifferencesNameKeysAndValues) {
  Bakery a, b;
  EXPECT_TRUE(differences(sections_of(a), sections_of(b)).empty());
  b.dough.grain = Grain::spelt;
  b.oven.heat = std::nextafter(250.0, 300.0);
  const std::vector<KeyDifference> expected = {{"dough.grain", "\"rye\"", "\"spelt\""}, {"oven.heat", "250.0", "250.00000000000003"}};
  EXPECT_EQ(differences(sections_of(a), sections_of(b)), expected);
}

TEST(Writer, RefusesToCompareTwoTypes) {
  Bakery bakery;
  std::vector<Section> fewer = sections_of(bakery);
  fewer.pop_back();
  EXPECT_THROW(differences(sections_of(bakery), fewer), Error);
}

}  // namespace
}  // namespace tilewave
