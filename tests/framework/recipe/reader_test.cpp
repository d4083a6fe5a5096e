// Strict reading: what is wrong is one sentence that says what, where and what to try.
#include "framework/recipe/reader.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/error.h"
#include "tests/framework/recipe/bakery.h"

namespace tilewave {
namespace {

Bakery read(const std::string& text) {
  Bakery bakery;
  std::vector<Section> sections = sections_of(bakery);
  read_toml({.source = "b.toml", .text = text}, sections, kBakeryAliases);
  return bakery;
}

Bakery set(const std::string& assignment) {
  Bakery bakery;
  std::vector<Section> sections = sections_of(bakery);
  set_key(assignment, sections, kBakeryAliases);
  return bakery;
}

template <class Fn>
std::string message_of(Fn&& fn) {
  try {
    fn();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(const std::string& text) {
  return message_of([&] { read(text); });
}
std::string set_refusal(const std::string& assignment) {
  return message_of([&] { set(assignment); });
}

TEST(Reader, SetsWhatIsNamedAndLeavesTheRest) {
  Bakery expected;
  expected.dough.grain = Grain::spelt;
  expected.oven.heat = 230.5;
  EXPECT_EQ(read("[dough]\ngrain = \"spelt\"  # good\n[oven]\nheat = 230.5\n"), expected);
  EXPECT_EQ(read("dough.grain = 'spelt'\noven = {heat = 230.5}"), expected);
}

TEST(Reader, TakesIntegersForFloats) { EXPECT_EQ(read("[oven]\nheat = 230\n").oven.heat, 230.0); }

TEST(Reader, TakesCrLfAndAByteOrderMark) {
  EXPECT_EQ(read("\xEF\xBB\xBF[dough]\r\nloaves = 3\r\nlabel = \"a\"\r\n").dough.loaves, 3);
  EXPECT_EQ(read("[dough]\r\nlabel = \"a\"\r\n").dough.label, "a");
}

TEST(Reader, NamesTheNearestKey) {
  EXPECT_EQ(refusal("[dough]\nloafs = 3\n"), "b.toml:2:1: unknown key dough.loafs; did you mean dough.loaves?");
  EXPECT_EQ(refusal("[dough]\n  temperature = 3\n"), "b.toml:2:3: unknown key dough.temperature; did you mean oven.heat?");
  EXPECT_EQ(refusal("loaves = 3\n"), "b.toml:1:1: unknown key loaves; did you mean dough.loaves?");
  EXPECT_EQ(refusal("[oven]\nchimney = 3\n"), "b.toml:2:1: unknown key oven.chimney; the keys of [oven] are heat and minutes.");
  EXPECT_EQ(refusal("chimney = 3\n"), "b.toml:1:1: unknown key chimney; keys stand in the sections dough and oven.");
  EXPECT_EQ(refusal("[oven]\n\"a\\nb\" = 3\n"), "b.toml:2:1: unknown key \"oven.a\\nb\"; the keys of [oven] are heat and minutes.");
}

TEST(Reader, NamesTheNearestSection) {
  EXPECT_EQ(refusal("[dough]\n[ovens]\nheat = 3\n"), "b.toml:2:2: unknown section [ovens]; did you mean [oven]?");
  EXPECT_EQ(refusal("[chimney]\n"), "b.toml:1:2: unknown section [chimney]; there are dough and oven.");
  EXPECT_EQ(refusal("oven = 3\n"), "b.toml:1:1: oven is the integer 3; it must be the section [oven].");
  EXPECT_EQ(refusal("[[oven]]\nheat = 3\n"), "b.toml:1:3: oven is an array; it must be the section [oven].");
}

TEST(Reader, SaysWhatWasFoundAndWhatIsExpected) {
  EXPECT_EQ(refusal("[dough]\nloaves = \"3\"\n"), "b.toml:2:10: dough.loaves is the string \"3\"; it must be an integer from 1 to 100.");
  EXPECT_EQ(refusal("[dough]\nloaves = 3.0\n"), "b.toml:2:10: dough.loaves is the float 3.0; it must be an integer from 1 to 100.");
  EXPECT_EQ(refusal("[dough]\nloaves = [3]\n"), "b.toml:2:10: dough.loaves is an array; it must be an integer from 1 to 100.");
  EXPECT_EQ(refusal("[dough]\nloaves = {}\n"), "b.toml:2:10: dough.loaves is a table; it must be an integer from 1 to 100.");
  EXPECT_EQ(refusal("[dough]\nloaves = 2020-01-01\n"),
            "b.toml:2:10: dough.loaves is a date or a time; it must be an integer from 1 to 100.");
  EXPECT_EQ(refusal("[dough]\nlabel = true\n"), "b.toml:2:9: dough.label is true; it must be a string.");
  EXPECT_EQ(refusal("[dough]\nsourdough = 1\n"), "b.toml:2:13: dough.sourdough is the integer 1; it must be true or false.");
  EXPECT_EQ(refusal("[dough]\nsalt = false\n"), "b.toml:2:8: dough.salt is false; it must be a number of at least 0 and below 1.");
  EXPECT_EQ(refusal("[dough]\nlabel = \"a\\u0000b\"\n"), "b.toml:2:9: dough.label is the string \"a\\u0000b\"; it must be a string.");
}

TEST(Reader, HoldsRanges) {
  EXPECT_EQ(read("[dough]\nloaves = 1\n").dough.loaves, 1);
  EXPECT_EQ(read("[dough]\nloaves = 100\n").dough.loaves, 100);
  EXPECT_EQ(refusal("[dough]\nloaves = 0\n"), "b.toml:2:10: dough.loaves is the integer 0; it must be an integer from 1 to 100.");
  EXPECT_EQ(refusal("[dough]\nloaves = 101\n"), "b.toml:2:10: dough.loaves is the integer 101; it must be an integer from 1 to 100.");
  EXPECT_EQ(refusal("[dough]\nsalt = 1.0\n"), "b.toml:2:8: dough.salt is the float 1.0; it must be a number of at least 0 and below 1.");
  EXPECT_EQ(refusal("[oven]\nheat = 0\n"), "b.toml:2:8: oven.heat is the integer 0; it must be a number above 0.");
  EXPECT_EQ(refusal("[oven]\nheat = nan\n"), "b.toml:2:8: oven.heat is the float nan; it must be a number above 0.");
  EXPECT_EQ(refusal("[oven]\nheat = inf\n"), "b.toml:2:8: oven.heat is the float inf; it must be a number above 0.");
  EXPECT_EQ(refusal("[oven]\nminutes = -1\n"), "b.toml:2:11: oven.minutes is the integer -1; it must be an integer of at least 0.");
}

TEST(Reader, NamesTheAllowedWords) {
  EXPECT_EQ(refusal("[dough]\ngrain = \"why\"\n"),
            "b.toml:2:9: dough.grain is the string \"why\"; it must be \"wheat\", \"rye\" or \"spelt\".");
  EXPECT_EQ(refusal("[dough]\ngrain = \"Wheet\"\n"),
            "b.toml:2:9: dough.grain is the string \"Wheet\"; it must be \"wheat\", \"rye\" or \"spelt\" (did you mean \"wheat\"?).");
  EXPECT_EQ(refusal("[dough]\ngrain = 2\n"), "b.toml:2:9: dough.grain is the integer 2; it must be \"wheat\", \"rye\" or \"spelt\".");
}

TEST(Reader, CutsLongValues) {
  const std::string message = refusal("[dough]\nloaves = \"" + std::string(79, 'a') + "€" + std::string(5000, 'b') + "\"\n");
  EXPECT_EQ(message, "b.toml:2:10: dough.loaves is the string \"" + std::string(79, 'a') + "\"...; it must be an integer from 1 to 100.");
}

TEST(Reader, ThrowsTheFirstErrorOfTheText) {
  EXPECT_EQ(refusal("[oven]\nheat = -1\n[dough]\nloaves = 0\nbasket = 1\n"),
            "b.toml:2:8: oven.heat is the integer -1; it must be a number above 0.");
}

TEST(Reader, LocatesSyntaxErrors) {
  const std::string duplicate = refusal("[oven]\nheat = 1\nheat = 2\n");
  EXPECT_TRUE(duplicate.starts_with("b.toml:3:")) << duplicate;
  EXPECT_NE(duplicate.find("heat"), std::string::npos) << duplicate;
  EXPECT_TRUE(refusal("[oven]\nheat 1\n").starts_with("b.toml:2:6: not TOML: ")) << refusal("[oven]\nheat 1\n");
  EXPECT_TRUE(refusal("[oven]\nheat = n\ne").find('\n') == std::string::npos) << refusal("[oven]\nheat = n\ne");
  EXPECT_TRUE(refusal("[oven\nheat = 1\n").starts_with("b.toml:1:6: not TOML: ")) << refusal("[oven\nheat = 1\n");
  EXPECT_TRUE(refusal("[oven]\nminutes = 99999999999999999999\n").starts_with("b.toml:2:"))
      << refusal("[oven]\nminutes = 99999999999999999999\n");
}

TEST(Reader, RefusesWhatIsNoText) {
  EXPECT_EQ(refusal(""), "b.toml is empty; recipes/ holds recipes to start from.");
  EXPECT_EQ(refusal(" \r\n\t\n"), "b.toml is empty; recipes/ holds recipes to start from.");
  EXPECT_EQ(refusal(std::string("ELF\0\1\2", 6)), "b.toml is a binary file: byte 3 is zero; a recipe is TOML text.");
  const std::string latin1 = refusal("[dough]\nlabel = \"caf\xE9\"\n");
  EXPECT_TRUE(latin1.starts_with("b.toml:2:") && latin1.find("utf-8") != std::string::npos) << latin1;
  EXPECT_EQ(refusal(std::string(kRecipeBytes + 1, '#')), "b.toml is larger than a recipe may be, 1048576 bytes; is it another file?");
  EXPECT_EQ(read("[dough]\nloaves = 3\n" + std::string(kRecipeBytes - 19, '#')).dough.loaves, 3);
}

TEST(Reader, TakesUnicodeInStringsAndCommentsAlone) {
  EXPECT_EQ(read("# für\n[dough]\nlabel = \"a\\\"ü€#\"  # ü\n").dough.label, "a\"ü€#");
  EXPECT_EQ(read("[dough]\nlabel = 'ü\\'\nloaves = 3\n").dough.loaves, 3);
  EXPECT_EQ(refusal("[dough]\nlabel = \"ü\" ﺿ\n"), "b.toml:2:13: a character beyond ASCII stands outside strings and comments.");
  EXPECT_EQ(refusal("[dough]\nﺿ = 1\n"), "b.toml:2:1: a character beyond ASCII stands outside strings and comments.");
  EXPECT_EQ(refusal("[dough]\nlabel = \"\"\"\\\n ﺿ\"\"\"\n"), "b.toml:2:9: a string over several lines; a recipe has none.");
  EXPECT_TRUE(set_refusal("dough.loaves=ﺿ").ends_with("is no value of dough.loaves; it must be an integer from 1 to 100."));
  EXPECT_TRUE(refusal("[dough]\nlabel = \"a\\\nü = 1").starts_with("b.toml:")) << "an escaped end of line ends no line";
}

TEST(Reader, RefusesTablesThatNestTooDeeply) {
  std::string deep;
  for (std::size_t i = 0; i < kRecipeBytes / 2 - 8; ++i) deep += "a.";
  EXPECT_TRUE(refusal(deep + "a = 1\n").find(" dots, more than 8192: its tables could nest too deeply.") != std::string::npos);
  EXPECT_TRUE(refusal(deep.substr(0, 2 * kRecipeDots) + "a = 1\n").starts_with("b.toml:1:1: unknown section [a]"));
  EXPECT_TRUE(refusal("[oven]\nheat = " + std::string(100000, '[') + "\n").starts_with("b.toml:2:"));
}

TEST(Reader, OverridesReadLikeTheFile) {
  EXPECT_EQ(set("dough.loaves=7").dough.loaves, 7);
  EXPECT_EQ(set("oven.heat=7").oven.heat, 7.0);
  EXPECT_EQ(set("oven.heat=1e-3").oven.heat, 1e-3);
  EXPECT_EQ(set("dough.sourdough=false").dough.sourdough, false);
}

TEST(Reader, OverriddenStringsMayDoWithoutQuotes) {
  EXPECT_EQ(set("dough.grain=spelt").dough.grain, Grain::spelt);
  EXPECT_EQ(set("dough.grain=\"spelt\"").dough.grain, Grain::spelt);
  EXPECT_EQ(set("dough.label=../a b/c=d.txt").dough.label, "../a b/c=d.txt");
  EXPECT_EQ(set("dough.label=C:\\new").dough.label, "C:\\new");
  EXPECT_EQ(set("dough.label='C:\\new'").dough.label, "C:\\new");
  EXPECT_EQ(set("dough.label=2024").dough.label, "2024");
  EXPECT_EQ(set("dough.label=").dough.label, "");
}

TEST(Reader, OverridesAreRefusedLikeTheFile) {
  EXPECT_EQ(set_refusal("dough.loaves"), "--set \"dough.loaves\" lacks a value; write --set section.key=value.");
  EXPECT_EQ(set_refusal("dough.loafs=3"), "--set \"dough.loafs=3\": unknown key dough.loafs; did you mean dough.loaves?");
  EXPECT_EQ(set_refusal("loaves=3"), "--set \"loaves=3\": unknown key loaves; did you mean dough.loaves?");
  EXPECT_EQ(set_refusal("=3"), "--set \"=3\": unknown key \"\"; keys stand in the sections dough and oven.");
  EXPECT_EQ(set_refusal("dough.loaves=0"), "--set dough.loaves is the integer 0; it must be an integer from 1 to 100.");
  EXPECT_EQ(set_refusal("dough.grain=why"), "--set dough.grain is the string \"why\"; it must be \"wheat\", \"rye\" or \"spelt\".");
  const std::string malformed = "--set \"dough.loaves=3x\": \"3x\" is no value of dough.loaves; it must be an integer from 1 to 100.";
  EXPECT_EQ(set_refusal("dough.loaves=3x"), malformed);
  for (const char* value : {"", "3\nsalt=1", "3\n", "nonsense", "\"3"}) {
    EXPECT_TRUE(
        set_refusal("dough.loaves=" + std::string(value)).ends_with("is no value of dough.loaves; it must be an integer from 1 to 100."))
        << value;
  }
  EXPECT_TRUE(set_refusal("dough.label=caf\xE9").ends_with("it must be a string.")) << set_refusal("dough.label=caf\xE9");
  EXPECT_TRUE(set_refusal("dough.loaves=" + std::string(1 << 20, '[')).ends_with("it must be an integer from 1 to 100."));
}

class RecipeFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tilewave_recipe_file_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(RecipeFile, IsReadWhole) {
  const std::string text("[oven]\r\nheat = 1\0\n", 18);
  std::ofstream(folder_ / "a.toml", std::ios::binary) << text;
  const RecipeText recipe = read_recipe_file(folder_ / "a.toml");
  EXPECT_EQ(recipe.text, text);
  EXPECT_EQ(recipe.source, (folder_ / "a.toml").string());
}

TEST_F(RecipeFile, ThatCannotBeReadIsNamed) {
  const std::string missing = (folder_ / "missing.toml").string(), large = (folder_ / "large.toml").string();
  std::ofstream(large) << std::string(kRecipeBytes + 1, ' ');
  for (const std::string& path : {missing, large, folder_.string(), std::string("/dev/zero")}) {
    EXPECT_TRUE(message_of([&] { read_recipe_file(path); }).starts_with(path + ": ")) << path;
  }
}

}  // namespace
}  // namespace tilewave
