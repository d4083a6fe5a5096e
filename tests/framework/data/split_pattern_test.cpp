// Patterns that cut words, each rule by what it matches.
#include "framework/data/split_pattern.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "framework/data/tokenizer_json.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using MatchedWords = std::vector<std::string>;

MatchedWords words_matched(const char* pattern, const std::string& text) {
  const SplitPattern read(pattern);
  MatchedWords words;
  for (auto match = read.find(text, 0); match; match = read.find(text, match->end))
    words.push_back(text.substr(match->begin, match->end - match->begin));
  return words;
}

std::string pattern_refusal(const char* pattern) {
  try {
    const SplitPattern read{pattern};
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

TEST(SplitPattern, FamiliesCutWords) {
  const std::string text = "It's 1234 \u00FCber!!\n\n  x";
  EXPECT_EQ(words_matched(kGpt2Pattern.data(), text), (MatchedWords{"It", "'s", " 1234", " \u00FCber", "!!", "\n\n ", " x"}));
  EXPECT_EQ(words_matched(kLlama3Pattern.data(), text), (MatchedWords{"It", "'s", " ", "123", "4", " \u00FCber", "!!\n\n", " ", " x"}));
  EXPECT_EQ(words_matched(kQwen2Pattern.data(), "a12"), (MatchedWords{"a", "1", "2"}));
}

TEST(SplitPattern, EachRule) {
  EXPECT_EQ(words_matched("a|ab", "ab"), (MatchedWords{"a"})) << "the first alternative, not the longest";
  EXPECT_EQ(words_matched("(?:a|ab)c", "abc"), (MatchedWords{"abc"})) << "the next one where the first leads nowhere";
  EXPECT_EQ(words_matched("(a|b)?c", "ac c"), (MatchedWords{"ac", "c"}));
  EXPECT_EQ(words_matched("(?i:'s)", "'S'\u017F's"), (MatchedWords{"'S", "'\u017F", "'s"}));
  EXPECT_EQ(words_matched("a{2}|b{2,}|c{1,2}", "aaabbbccc"), (MatchedWords{"aa", "bbb", "cc", "c"}));
  EXPECT_EQ(words_matched("a++a|a", "aaa"), (MatchedWords{"a", "a", "a"})) << "possessive";
  EXPECT_EQ(words_matched("a+a", "aaa"), (MatchedWords{"aaa"})) << "gives back";
  EXPECT_EQ(words_matched("a(?=b)", "aab"), (MatchedWords{"a"}));
  EXPECT_EQ(words_matched("a(?!b)", "aab"), (MatchedWords{"a"}));
  EXPECT_EQ(words_matched("[^\\s\\p{L}]", "a\u3000\u0663-"), (MatchedWords{"\u0663", "-"}));
  EXPECT_EQ(words_matched("[a-c\\-]+", "xb-cd"), (MatchedWords{"b-c"}));
  EXPECT_EQ(words_matched("[\u3041-\u3043]+", "\u3040\u3041\u3043\u3044"), (MatchedWords{"\u3041\u3043"}));
  EXPECT_EQ(words_matched(".+", "ab\ncd"), (MatchedWords{"ab", "cd"}));
  EXPECT_EQ(words_matched("\\P{N}\\D\\d", "ab1"), (MatchedWords{"ab1"}));
  EXPECT_EQ(words_matched("b*", "abba"), (MatchedWords{"bb"})) << "what takes no character is no match";
  EXPECT_EQ(words_matched("\\.|\\[|\t|\\t", ".[\t"), (MatchedWords{".", "[", "\t"}));
}

TEST(SplitPattern, TheRestIsRefusedByName) {
  for (const auto& [pattern, named] : std::vector<std::pair<const char*, const char*>>{{"", "empty"},
                                                                                       {"^a", "a ^"},
                                                                                       {"a$", "a $"},
                                                                                       {"a**", "a * behind a quantifier"},
                                                                                       {"a{2}+", "a + behind"},
                                                                                       {"a{,2}", "no count"},
                                                                                       {"a{3,2}", "no count"},
                                                                                       {"a{9999}", "a count"},
                                                                                       {"(?:a)*", "quantifier *"},
                                                                                       {"(?<n>a)", "(?<n"},
                                                                                       {"(?s:a)", "(?s:"},
                                                                                       {"a)", "closes nothing"},
                                                                                       {"(a", "not closed"},
                                                                                       {"[a", "too early"},
                                                                                       {"[]a]", "empty class"},
                                                                                       {"[a[b]]", "[ in a class"},
                                                                                       {"[a&&b]", "&&"},
                                                                                       {"\\w", "\\w"},
                                                                                       {"\\b", "\\b"},
                                                                                       {"\\1", "\\1"},
                                                                                       {"\\p{Greek}", "\\p{Greek}"},
                                                                                       {"\\pL", "no {name}"},
                                                                                       {"(?i:[a-z])", "(?i:"},
                                                                                       {"(?i:\u00E9)", "(?i:"},
                                                                                       {"a\\", "too early"}}) {
    const std::string sentence = pattern_refusal(pattern);
    EXPECT_NE(sentence.find(named), std::string::npos) << pattern << ": " << sentence;
    EXPECT_TRUE(sentence.ends_with('.')) << sentence;
  }
}

TEST(SplitPattern, WaysWithoutEndAreGivenUp) {
  const SplitPattern pattern(".*.*.*.*.*.*x");
  EXPECT_THROW(pattern.find(std::string(2000, 'a'), 0), InputError);
}

}  // namespace
}  // namespace tilewave
