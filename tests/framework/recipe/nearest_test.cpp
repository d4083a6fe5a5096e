// The nearest word and the nearest key.
#include "framework/recipe/nearest.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>

#include "tests/framework/recipe/bakery.h"

namespace tilewave {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "heads"), 5);
  EXPECT_EQ(edit_distance("heads", "heads"), 0);
  EXPECT_EQ(edit_distance("head", "heads"), 1);
  EXPECT_EQ(edit_distance("haeds", "heads"), 1);
  EXPECT_EQ(edit_distance("beads", "heads"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // a swapped pair is not edited again
}

TEST(EditDistance, IsSymmetricAndKnowsItsBounds) {
  std::mt19937 random(7);
  const auto word = [&] {
    std::string result(random() % 9, 'a');
    for (char& c : result) c = static_cast<char>('a' + random() % 3);
    return result;
  };
  for (int i = 0; i < 500; ++i) {
    const std::string a = word(), b = word();
    const std::int64_t distance = edit_distance(a, b);
    EXPECT_EQ(distance, edit_distance(b, a)) << a << " " << b;
    EXPECT_EQ(distance == 0, a == b);
    EXPECT_LE(distance, static_cast<std::int64_t>(std::max(a.size(), b.size())));
    EXPECT_GE(distance, static_cast<std::int64_t>(std::max(a.size(), b.size()) - std::min(a.size(), b.size())));
  }
}

TEST(NearestWord, IsNearOrNothing) {
  const std::vector<std::string_view> words = {"in_house", "cublas", "cublaslt"};
  EXPECT_EQ(nearest_word("cublass", words), "cublas");
  EXPECT_EQ(nearest_word("cublas_lt", words), "cublaslt");
  EXPECT_EQ(nearest_word("In-House", words), "in_house");
  EXPECT_EQ(nearest_word("cutlass", words), "cublas");
  EXPECT_EQ(nearest_word("triton", words), "");
  EXPECT_EQ(nearest_word("gelu", std::array<std::string_view, 3>{"relu", "gelu_tanh", "gelu_erf"}), "gelu_tanh");
  EXPECT_EQ(nearest_word(std::string(100000, 'c'), words), "");
}

TEST(NearestKey, TriesAliasesThenOtherSectionsThenSpelling) {
  Bakery bakery;
  const std::vector<Section> sections = sections_of(bakery);
  const auto near = [&](std::string_view section, std::string_view key) { return nearest_key(section, key, sections, kBakeryAliases).key; };
  EXPECT_EQ(near("dough", "temperature"), "oven.heat");
  EXPECT_EQ(near("dough", "Temperature"), "oven.heat");
  EXPECT_EQ(near("oven", "loaves"), "dough.loaves");
  EXPECT_EQ(near("", "minutes"), "oven.minutes");
  EXPECT_EQ(near("dough", "loafes"), "dough.loaves");
  EXPECT_EQ(near("dough", "minuets"), "oven.minutes");
  EXPECT_EQ(near("nonsense", "salty"), "dough.salt");
  EXPECT_EQ(near("dough", "chimney"), "");
  EXPECT_EQ(near("dough", "DEGREES"), "oven.heat");
  EXPECT_EQ(nearest_key("oven", "steam", sections, kBakeryAliases), (MeantKey{.key = "", .note = "The oven is dry."}));
  EXPECT_EQ(near("dough", "steam"), "oven.minutes");
}

}  // namespace
}  // namespace tilewave
