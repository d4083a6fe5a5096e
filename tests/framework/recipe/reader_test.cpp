// Strict reading: what is wrong is one sentence that says what, where and what to try.
#include "framework/recipe/reader.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/core/error.h"
#include "tests/framework/recipe/bakery.h"

namespace tilewave {
namespace {

Bakery read(const std::string& text) {
  Bakery bakery;
  std::vector<Section> sections = sections_of(bakery);
  read_toml({.source = "b.toml", .text = text}, sections, kBakeryNames);
  return bakery;
}

Bakery set(const std::string& assignment) {
  Bakery bakery;
  std::vector<Section> sections = sections_of(bakery);
  set_key(assignment, sections, kBakeryNames);
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
  EXPECT_EQ(refusal("[dough]\nloaves = \"3\"\n"),
            "b.toml:2:10: dough.loaves is the string \"3\"; it must be an integer from 1 to 100 (loaves); write 3.");
  EXPECT_EQ(refusal("[dough]\nloaves = 3.0\n"),
            "b.toml:2:10: dough.loaves is the float 3.0; it must be an integer from 1 to 100 (loaves); write 3.");
  EXPECT_EQ(refusal("[dough]\nloaves = [3]\n"), "b.toml:2:10: dough.loaves is an array; it must be an integer from 1 to 100 (loaves).");
  EXPECT_EQ(refusal("[dough]\nloaves = {}\n"), "b.toml:2:10: dough.loaves is a table; it must be an integer from 1 to 100 (loaves).");
  EXPECT_EQ(refusal("[dough]\nloaves = 2020-01-01\n"),
            "b.toml:2:10: dough.loaves is a date or a time; it must be an integer from 1 to 100 (loaves).");
  EXPECT_EQ(refusal("[dough]\nlabel = true\n"), "b.toml:2:9: dough.label is true; it must be a string.");
  EXPECT_EQ(refusal("[dough]\nsourdough = 1\n"), "b.toml:2:13: dough.sourdough is the integer 1; it must be true or false; write true.");
  EXPECT_EQ(refusal("[dough]\nsalt = false\n"),
            "b.toml:2:8: dough.salt is false; it must be a number of at least 0 and below 1 (fraction).");
  EXPECT_EQ(refusal("[dough]\nlabel = \"a\\u0000b\"\n"), "b.toml:2:9: dough.label is the string \"a\\u0000b\"; it must be a string.");
}

TEST(Reader, HoldsRanges) {
  EXPECT_EQ(read("[dough]\nloaves = 1\n").dough.loaves, 1);
  EXPECT_EQ(read("[dough]\nloaves = 100\n").dough.loaves, 100);
  EXPECT_EQ(refusal("[dough]\nloaves = 0\n"), "b.toml:2:10: dough.loaves is the integer 0; it must be an integer from 1 to 100 (loaves).");
  EXPECT_EQ(refusal("[dough]\nloaves = 101\n"),
            "b.toml:2:10: dough.loaves is the integer 101; it must be an integer from 1 to 100 (loaves).");
  EXPECT_EQ(refusal("[dough]\nsalt = 1.0\n"),
            "b.toml:2:8: dough.salt is the float 1.0; it must be a number of at least 0 and below 1 (fraction).");
  EXPECT_EQ(refusal("[oven]\nheat = 0\n"), "b.toml:2:8: oven.heat is the integer 0; it must be a number above 0 (degrees).");
  EXPECT_EQ(refusal("[oven]\nheat = nan\n"), "b.toml:2:8: oven.heat is the float nan; it must be a number above 0 (degrees).");
  EXPECT_EQ(refusal("[oven]\nheat = inf\n"), "b.toml:2:8: oven.heat is the float inf; it must be a number above 0 (degrees).");
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
  EXPECT_EQ(message,
            "b.toml:2:10: dough.loaves is the string \"" + std::string(79, 'a') + "\"...; it must be an integer from 1 to 100 (loaves).");
}

TEST(Reader, ThrowsTheFirstErrorOfTheText) {
  EXPECT_EQ(refusal("[oven]\nheat = -1\n[dough]\nloaves = 0\nbasket = 1\n"),
            "b.toml:2:8: oven.heat is the integer -1; it must be a number above 0 (degrees).");
}

TEST(Reader, KnowsForeignWordsForValues) {
  const std::string write_spelt = "; it must be \"wheat\", \"rye\" or \"spelt\". Write \"spelt\".";
  EXPECT_EQ(refusal("[dough]\ngrain = \"Dinkel\"\n"), "b.toml:2:9: dough.grain is the string \"Dinkel\"" + write_spelt);
  EXPECT_EQ(set_refusal("dough.grain=dinkel"), "--set dough.grain is the string \"dinkel\"" + write_spelt);
  EXPECT_EQ(refusal("[dough]\ngrain = dinkel\n"), "b.toml:2:9: dough.grain is \"dinkel\"" + write_spelt);
  EXPECT_EQ(refusal("[dough]\ngrain = 630\n"), "b.toml:2:9: dough.grain is the integer 630" + write_spelt);
}

TEST(Reader, KnowsForeignKeysAndSections) {
  EXPECT_EQ(refusal("[dough]\nflour-g = 500\n"),
            "b.toml:2:1: unknown key dough.flour-g; did you mean dough.loaves? It counts loaves: write the grams over 500.");
  EXPECT_EQ(refusal("[oven]\nsteam = 1\n"), "b.toml:2:1: unknown key oven.steam; tilewave has no such key. The oven is dry.");
  EXPECT_EQ(refusal("[dough]\nsteam = 1\n"), "b.toml:2:1: unknown key dough.steam; did you mean oven.minutes? Steamed dough takes longer.");
  EXPECT_EQ(refusal("[temperature]\nx = 1\n"), "b.toml:1:2: unknown section [temperature]; did you mean [oven]?");
}

TEST(Reader, LocatesSyntaxErrors) {
  EXPECT_EQ(refusal("[oven]\nheat = 1\n# again\nheat = 2\n"),
            "b.toml:4:1: oven.heat stands twice, first in line 2; leave one of them out.");
  EXPECT_EQ(refusal("[oven]\nheat = 1\n[dough]\n[oven]\n"), "b.toml:4:1: [oven] stands twice, first in line 1; put its keys together.");
  const std::string grammar = "; a recipe's lines are [section], key = value and # comments.";
  EXPECT_EQ(refusal("[oven]\nheat 1\n"), "b.toml:2:6: this is not TOML: \"heat 1\"" + grammar);
  EXPECT_EQ(refusal("[oven]\nheat: 1\n"), "b.toml:2:5: \"heat: 1\" has : for =" + grammar);
  EXPECT_EQ(refusal("{\"oven\": {\"heat\": 1}}\n"), "b.toml:1:1: this is JSON" + grammar);
  EXPECT_EQ(refusal("[oven\nheat = 1\n"), "b.toml:1:6: the ] of a section's name is missing.");
  EXPECT_EQ(refusal("[oven]\nheat = n\ne"), "b.toml:2:8: oven.heat is \"n\"; it must be a number above 0 (degrees).");
  EXPECT_EQ(refusal("[oven]\nheat =\n"), "b.toml:2:7: oven.heat has no value; it must be a number above 0 (degrees).");
  EXPECT_EQ(refusal("[oven]\nheet = .5\n"), "b.toml:2:8: unknown key oven.heet; did you mean oven.heat?");
  EXPECT_EQ(refusal("[dough]\nlabel = \"plain\n"),
            "b.toml:2:9: dough.label is \"\\\"plain\", a string that is not closed; end it with \".");
  EXPECT_EQ(refusal("[dough]\nlabel = \"C:\\data\"\n"),
            "b.toml:2:9: dough.label is \"\\\"C:\\\\data\\\"\", which is no string of one line: a backslash is written twice between "
            "\", and once between '.");
}

// Numbers, truths and words as people and other languages write them: what to write, where that is known; else what is possible.
TEST(Reader, SaysHowToWriteWhatWasMeant) {
  const struct {
    std::string line, said;
  } cases[] = {
      {"salt = .001", "dough.salt is \".001\", but a point has digits on both sides; write 0.001."},
      {"salt = +.5", "dough.salt is \"+.5\", but a point has digits on both sides; write +0.5."},
      {"salt = 0.", "dough.salt is \"0.\", but a point has digits on both sides; write 0.0."},
      {"salt = 0.e-3", "dough.salt is \"0.e-3\", but a point has digits on both sides; write 0.0e-3."},
      {"salt = .5e-3 # little", "dough.salt is \".5e-3\", but a point has digits on both sides; write 0.5e-3."},
      {"salt = 00.5", "dough.salt is \"00.5\", but a number begins with no 0 too many; write 0.5."},
      {"salt = 1e-3f", "dough.salt is \"1e-3f\", but a number has no letter at its end; write 1e-3."},
      {"loaves = 010", "dough.loaves is \"010\", but a number begins with no 0 too many; write 10."},
      {"loaves = _10", "dough.loaves is \"_10\", but a _ stands between two digits; write 10."},
      {"loaves = .5", "dough.loaves is \".5\"; it must be an integer from 1 to 100 (loaves)."},
      {"loaves = 1,000", "dough.loaves is \"1,000\"; it must be an integer from 1 to 100 (loaves)."},
      {"loaves = 1e1", "dough.loaves is the float 10.0; it must be an integer from 1 to 100 (loaves); write 10."},
      {"loaves = 99999999999999999999",
       "dough.loaves is \"99999999999999999999\", too large a number to hold; it must be an integer from 1 to 100 (loaves)."},
      {"loaves = None", "dough.loaves is None, which TOML does not have; leave the key out for its default, 12."},
      {"loaves = 6*7", "dough.loaves is \"6*7\"; it must be an integer from 1 to 100 (loaves)."},
      {"loaves = '7'", "dough.loaves is the string \"7\"; it must be an integer from 1 to 100 (loaves); write 7."},
      {"sourdough = True", "dough.sourdough is \"True\"; it must be true or false; write true."},
      {"sourdough = off", "dough.sourdough is \"off\"; it must be true or false; write false."},
      {"sourdough = \"yes\"", "dough.sourdough is the string \"yes\"; it must be true or false; write true."},
      {"sourdough = maybe", "dough.sourdough is \"maybe\"; it must be true or false."},
      {"grain = spelt", "dough.grain is a word without quotes; write \"spelt\"."},
      {"grain = wheet", "dough.grain is \"wheet\"; it must be \"wheat\", \"rye\" or \"spelt\" (did you mean \"wheat\"?)."},
      {"label = data/a.txt", "dough.label is a word without quotes; write \"data/a.txt\"."},
      {"label = null", "dough.label is null, which TOML does not have; leave the key out for its default, \"plain\"."},
  };
  for (const auto& [line, said] : cases) {
    const std::string told = refusal("[dough]\n" + line + "\n");
    EXPECT_EQ(told.substr(std::min(told.find(": "), told.size() - 2) + 2), said) << line;
    EXPECT_TRUE(told.starts_with("b.toml:2:")) << told;
  }
  EXPECT_EQ(refusal("[oven]\nminutes = 1,000,000\n"),
            "b.toml:2:11: oven.minutes is \"1,000,000\", but a number has no commas; write 1000000.");
  EXPECT_EQ(refusal("[oven]\nheat = 1e400\n"),
            "b.toml:2:8: oven.heat is \"1e400\", too large a number to hold; it must be a number above 0 (degrees).");
  EXPECT_EQ(refusal("[oven]\nminutes = 99999999999999999999\n"),
            "b.toml:2:11: oven.minutes is \"99999999999999999999\", too large a number to hold; it must be an integer of at least 0.");
  EXPECT_EQ(refusal("[oven]\nheat = 1e-400\n"),
            "b.toml:2:8: oven.heat is \"1e-400\", too small a number to hold; it must be a number above 0 (degrees).");
  EXPECT_EQ(
      refusal("oven = {\"heat\" = 3, \"minutes\" = 4}\ndough = {label = \"é\", salt = -2.5E-9999}\n"),
      "b.toml:2:30: dough.salt is \"-2.5E-9999\", too small a number to hold; it must be a number of at least 0 and below 1 (fraction).");
  EXPECT_EQ(set_refusal("dough.salt=1e-400"),
            "--set dough.salt is \"1e-400\", too small a number to hold; it must be a number of at least 0 and below 1 (fraction).");
  EXPECT_EQ(set_refusal("dough.salt=.001"),
            "--set \"dough.salt=.001\": dough.salt is \".001\", but a point has digits on both sides; write 0.001.");
  EXPECT_EQ(set_refusal("dough.sourdough=True"),
            "--set \"dough.sourdough=True\": dough.sourdough is \"True\"; it must be true or false; write true.");
  for (const char* valid : {"salt = +0.5", "salt = 1e-3", "salt = 0.5E-0_1", "loaves = 1_0", "loaves = 0x10", "salt = 0.0e-400",
                            "salt = -0.0", "label = 'a'"}) {
    EXPECT_EQ(message_of([&] { read("[dough]\n" + std::string(valid) + "\n"); }), "no error") << valid;
  }
}

TEST(Reader, RefusesWhatIsNoText) {
  EXPECT_EQ(refusal(""), "b.toml is empty; recipes/ holds recipes to start from.");
  EXPECT_EQ(refusal(" \r\n\t\n"), "b.toml is empty; recipes/ holds recipes to start from.");
  EXPECT_EQ(refusal(std::string("ELF\0\1\2", 6)), "b.toml is a binary file: byte 3 is zero; a recipe is TOML text.");
  EXPECT_EQ(refusal("[dough]\nlabel = \"caf\xE9\"\n"), "b.toml:2:13: the bytes here are no UTF-8; save the file in that encoding.");
  EXPECT_EQ(refusal(std::string(kRecipeBytes + 1, '#')), "b.toml is larger than a recipe may be, 1048576 bytes; is it another file?");
  EXPECT_EQ(read("[dough]\nloaves = 3\n" + std::string(kRecipeBytes - 19, '#')).dough.loaves, 3);
}

TEST(Reader, TakesUnicodeInStringsAndCommentsAlone) {
  EXPECT_EQ(read("# für\n[dough]\nlabel = \"a\\\"ü€#\"  # ü\n").dough.label, "a\"ü€#");
  EXPECT_EQ(read("[dough]\nlabel = 'ü\\'\nloaves = 3\n").dough.loaves, 3);
  EXPECT_EQ(refusal("[dough]\nlabel = \"ü\" ﺿ\n"), "b.toml:2:13: a character beyond ASCII stands outside strings and comments.");
  EXPECT_EQ(refusal("[dough]\nﺿ = 1\n"), "b.toml:2:1: a character beyond ASCII stands outside strings and comments.");
  EXPECT_EQ(refusal("[dough]\nlabel = \"\"\"\\\n ﺿ\"\"\"\n"), "b.toml:2:9: a string over several lines; a recipe has none.");
  EXPECT_EQ(set_refusal("dough.loaves=ﺿ"),
            "--set \"dough.loaves=ﺿ\": dough.loaves is \"ﺿ\"; it must be an integer from 1 to 100 (loaves).");
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
  EXPECT_EQ(set_refusal("dough.loaves=0"), "--set dough.loaves is the integer 0; it must be an integer from 1 to 100 (loaves).");
  EXPECT_EQ(set_refusal("dough.grain=why"), "--set dough.grain is the string \"why\"; it must be \"wheat\", \"rye\" or \"spelt\".");
  EXPECT_EQ(set_refusal("dough.loaves=3x"),
            "--set \"dough.loaves=3x\": dough.loaves is \"3x\"; it must be an integer from 1 to 100 (loaves).");
  for (const std::string value : {"", "3\nsalt=1", "3\n", "nonsense", "\"3"}) {
    EXPECT_TRUE(set_refusal("dough.loaves=" + value).ends_with("; it must be an integer from 1 to 100 (loaves).")) << value;
  }
  EXPECT_TRUE(set_refusal("dough.label=caf\xE9").ends_with("the bytes of its value are no UTF-8; write it in that encoding."));
  EXPECT_TRUE(set_refusal("dough.loaves=" + std::string(1 << 20, '[')).ends_with("it must be an integer from 1 to 100 (loaves)."));
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
