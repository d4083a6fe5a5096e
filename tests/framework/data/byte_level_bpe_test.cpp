// Byte-level BPE against Hugging Face's tokenizers: stored answers (tests/fixtures/tokenizers), and 10,000 fresh lines for each family
// where python3 has tokenizers. TILEWAVE_PYTHON names another Python.
#include "framework/data/byte_level_bpe.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "framework/data/unicode.h"
#include "framework/io/utf8.h"
#include "kernels/core/error.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Answer = nlohmann::json;
using Ids = std::vector<std::int32_t>;

constexpr const char* kTokenizerFamilies[] = {"gpt2", "gpt2_prefix", "llama3", "qwen2", "o200k", "several"};

fs::path answers_file(const std::string& name) { return test_environment().data / "fixtures" / "tokenizers" / name; }

// Bytes that are no UTF-8 as Unicode advises to show them: U+FFFD for each longest beginning of a character.
std::string with_replaced_bytes(const std::string& bytes) {
  std::string shown = Answer(bytes).dump(-1, ' ', false, Answer::error_handler_t::replace);
  return Answer::parse(shown).get<std::string>();
}

// How many lines of a file of answers were compared.
int compare_answers(const fs::path& folder, const std::string& family) {
  const ByteLevelBpe tokenizer = ByteLevelBpe::load(folder / (family + ".json"));
  std::istringstream lines(file_text(folder / (family + ".jsonl")));
  int compared = 0;
  for (std::string line; std::getline(lines, line); ++compared) {
    const Answer row = Answer::parse(line);
    const auto text = row.at("text").get<std::string>();
    const auto ids = row.at("ids").get<Ids>();
    EXPECT_EQ(tokenizer.encode(text, SpecialIds::left_out), ids) << family << ": " << line;
    EXPECT_EQ(tokenizer.encode(text, SpecialIds::kept), row.value("with_special", ids)) << family << ": " << line;
    EXPECT_EQ(with_replaced_bytes(tokenizer.decode(ids, SpecialIds::left_out)), row.value("decoded", text)) << family << ": " << line;
    EXPECT_EQ(with_replaced_bytes(tokenizer.decode(ids, SpecialIds::kept)), row.value("whole", text)) << family << ": " << line;
    if (testing::Test::HasFailure()) break;
  }
  return compared;
}

TEST(ByteLevelBpe, StoredAnswersOfEveryFamily) {
  for (const char* family : kTokenizerFamilies) EXPECT_EQ(compare_answers(answers_file(""), family), 30) << family;
}

TEST(ByteLevelBpe, TenThousandLinesOfEveryFamilyAsTokenizersHasThem) {
  const TemporaryFolder folder;
  const char* named = std::getenv("TILEWAVE_PYTHON");
  const std::string python = quoted(named != nullptr ? named : "python3");
  if (shell(python + " -c 'import tokenizers'", folder.path()).status != 0)
    GTEST_SKIP() << "python3 has no tokenizers to compare with; TILEWAVE_PYTHON names one that has";
  const std::string script = fs::absolute(test_environment().data / "framework" / "data" / "hf_tokenizers.py").string();
  const Outcome made = shell(python + " " + quoted(script) + " answers 10000 \"$(date +%s)\"", folder.path());
  ASSERT_EQ(made.status, 0) << made.output;
  for (const char* family : kTokenizerFamilies) EXPECT_EQ(compare_answers(folder.path() / "answers", family), 10000) << family;
}

// A stored file with something changed in it, as text.
template <class Change>
std::string changed_file(const std::string& family, Change&& change) {
  Answer file = Answer::parse(file_text(answers_file(family + ".json")));
  change(file);
  return file.dump();
}

std::string refusal_of_tokenizer(const std::string& json) {
  try {
    ByteLevelBpe::parse(json, "my.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "it was accepted";
}

TEST(ByteLevelBpe, WhatIsNotHandledIsRefusedByName) {
  struct Case {
    std::function<void(Answer&)> change;
    std::string named;
  };
  const Answer unigram = {{"type", "Unigram"}, {"vocab", Answer::array()}};
  const std::vector<Case> cases = {
      {[&](Answer& file) { file["model"] = unigram; }, "model \"Unigram\""},
      {[](Answer& file) { file["model"]["dropout"] = 0.1; }, "dropout"},
      {[](Answer& file) { file["model"]["byte_fallback"] = true; }, "byte_fallback"},
      {[](Answer& file) { file["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
      {[](Answer& file) { file["model"]["novelty"] = 1; }, "\"novelty\" of the model"},
      {[](Answer& file) { file["novelty"] = 1; }, "\"novelty\" of the file"},
      {[](Answer& file) {
         file["truncation"] = {{"max_length", 8}};
       },
       "truncation"},
      {[](Answer& file) {
         file["padding"] = {{"length", 8}};
       },
       "padding"},
      {[](Answer& file) {
         file["normalizer"] = {{"type", "NFKC"}};
       },
       "normalizer \"NFKC\""},
      {[](Answer& file) {
         file["normalizer"] = {{"type", "Lowercase"}};
       },
       "normalizer \"Lowercase\""},
      {[](Answer& file) {
         file["pre_tokenizer"] = {{"type", "Whitespace"}};
       },
       "pre_tokenizer \"Whitespace\""},
      {[](Answer& file) { file["pre_tokenizer"] = nullptr; }, "no pre_tokenizer"},
      {[](Answer& file) {
         file["decoder"] = {{"type", "Metaspace"}};
       },
       "decoder \"Metaspace\""},
      {[](Answer& file) {
         file["post_processor"] = {{"type", "RobertaProcessing"}};
       },
       "post_processor \"RobertaProcessing\""},
      {[](Answer& file) { file["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "MergedWithNext"; }, "\"MergedWithNext\""},
      {[](Answer& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\p{Han}+)"; }, "\\p{Han}"},
      {[](Answer& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"((?<=a)b)"; }, "(?<="},
      {[](Answer& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(ab)+"; }, "quantifier +"},
      {[](Answer& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "a+?"; }, "a ? behind a quantifier"},
      {[](Answer& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(?:a"; }, "not closed"},
      {[](Answer& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[b-a]"; }, "a range"},
      {[](Answer& file) { file["model"]["vocab"].erase("A"); }, "no token for byte 65"},
      {[](Answer& file) { file["model"]["vocab"]["A"] = 1 << 20; }, "far beyond"},
      {[](Answer& file) { file["model"]["vocab"]["A"] = -1; }, "\"A\" is -1"},
      {[](Answer& file) { file["model"]["vocab"]["A"] = 1; }, "two tokens have id 1"},
      {[](Answer& file) {
         file["model"]["merges"].push_back({"A", "novelty"});
       },
       "takes \"novelty\""},
      {[](Answer& file) { file["model"]["merges"].push_back("A"); }, "not two tokens"},
      {[](Answer& file) { file["added_tokens"][0]["single_word"] = true; }, "single_word"},
      {[](Answer& file) { file["added_tokens"][0]["id"] = 3; }, "two tokens have id 3"},
      {[](Answer& file) { file.erase("model"); }, "no \"model\""},
      {[](Answer& file) { file["model"]["vocab"] = "text"; }, "another kind"},
  };
  EXPECT_EQ(refusal_of_tokenizer(file_text(answers_file("llama3.json"))), "it was accepted");
  for (const Case& one : cases) {
    const std::string sentence = refusal_of_tokenizer(changed_file("llama3", one.change));
    EXPECT_NE(sentence.find(one.named), std::string::npos) << one.named << ": " << sentence;
    EXPECT_NE(sentence.find(sentence.starts_with("the pattern") ? "the pattern" : "my.json"), std::string::npos) << sentence;
    EXPECT_TRUE(sentence.ends_with('.')) << sentence;
  }
  EXPECT_NE(refusal_of_tokenizer("{\"model\"").find("it is no JSON from its byte"), std::string::npos);
}

TEST(ByteLevelBpe, TextThatIsNoUtf8IsRefused) {
  const ByteLevelBpe tokenizer = ByteLevelBpe::load(answers_file("gpt2.json"));
  try {
    tokenizer.encode("ab\xFF", SpecialIds::kept);
    FAIL() << "it was accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("byte 3"), std::string::npos) << error.what();
  }
}

// In time that grows with the text, not with its square: this would take minutes.
TEST(ByteLevelBpe, WordsAndGapsOfAMillionCharacters) {
  for (const char* family : kTokenizerFamilies) {
    const ByteLevelBpe tokenizer = ByteLevelBpe::load(answers_file(std::string(family) + ".json"));
    for (const char letter : {'a', ' ', '\n', '-', '7'}) {
      const std::string text(1'000'000, letter);
      const std::string back = tokenizer.decode(tokenizer.encode(text, SpecialIds::left_out), SpecialIds::kept);
      EXPECT_TRUE(std::ranges::count(back, letter) >= std::ssize(text) && back.size() <= text.size() * 2)
          << family << ", " << back.size() << " of '" << letter << "'";
    }
  }
}

TEST(ByteLevelBpe, EveryCharacterComesBack) {
  const ByteLevelBpe tokenizer = ByteLevelBpe::load(answers_file("llama3.json"));
  for (char32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 61) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text = "x";
    append_character(text, code);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, SpecialIds::kept), SpecialIds::left_out), text) << static_cast<unsigned>(code);
  }
}

TEST(Unicode, NormalizationFormC) {
  EXPECT_EQ(nfc("u\u0308ber e\u0301\u0323"), "\u00FCber \u1EB9\u0301") << "marks change places";
  EXPECT_EQ(nfc("\u1100\u1161\u11A8 \uAC00\u11A8"), "\uAC01 \uAC01") << "Hangul";
  EXPECT_EQ(nfc("\u212B\u2126\uFA1E"), "\u00C5\u03A9\u7FBD") << "one stands for another";
  EXPECT_EQ(nfc("\u0958 \u0344"), "\u0915\u093C \u0308\u0301") << "what composes no more";
  EXPECT_EQ(nfc("\u0301a\u0300\u0300"), "\u0301\u00E0\u0300") << "a mark alone";
}

TEST(Unicode, Categories) {
  const auto in = [](char32_t code, const char* set) {
    return (categories_named(set) >> static_cast<unsigned>(category_of(code)) & 1u) != 0;
  };
  EXPECT_TRUE(in(U'a', "Ll") && in(U'A', "L") && in(U'\u01C5', "Lt") && in(U'\u0663', "Nd") && in(U'\u00BD', "No") && in(U'\u0301', "M"));
  EXPECT_TRUE(in(0x1C89, "Lu")) << "of Unicode 16";
  EXPECT_FALSE(in(U' ', "L") || in(U'7', "L") || in(U'a', "N"));
  EXPECT_EQ(categories_named("Latin"), 0u);
  EXPECT_TRUE(is_white_space(0x3000) && is_white_space(U'\n') && !is_white_space(0x200B) && !is_white_space(0x180E));
}

}  // namespace
}  // namespace tilewave
