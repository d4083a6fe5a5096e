// GEMMs drawn by a seed: the same everywhere, with the rows that their claims speak of.
#include "app/bench/generated_suite.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "app/bench/gemm_candidates.h"
#include "kernels/core/error.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

const GemmTypes kBf16 = parse_gemm_types("bf16");

std::vector<std::string> texts(const GemmSuite& suite) {
  std::vector<std::string> all;
  for (const GemmItem& item : suite.items) all.push_back(concat(name_of(item.ours.form), " ", item.ours.layer.text()));
  return all;
}

TEST(GeneratedSuite, ASeedDrawsTheSameEverywhere) {
  const std::vector<std::string> first = texts(generated_suite(1));
  EXPECT_EQ(first, texts(generated_suite(1)));
  const std::vector<std::string> other = texts(generated_suite(0x80eaf85a));
  EXPECT_EQ(first.size(), other.size());
  EXPECT_GT(std::ranges::count_if(first, [&](const std::string& one) { return std::ranges::count(other, one) == 0; }), 90);
  EXPECT_EQ(first.front(), "wgrad_bias 1152<-1152@1464")
      << "an engine or an order that differs would make another suite of a commit's name";
}

TEST(GeneratedSuite, RowsAreWhatTheClaimSays) {
  std::set<GemmForm> forms;
  for (const std::uint64_t seed : {1ULL, 2ULL, 0xdeadbeefULL}) {
    const GemmSuite suite = generated_suite(seed);
    std::vector<int> counts(suite.claims.size());
    for (const GemmItem& item : suite.items) {
      const GemmProblem p = problem_of(item.ours, kBf16);
      const std::string text = concat(name_of(item.ours.form), " ", item.ours.layer.text());
      forms.insert(item.ours.form);
      ++counts[item.claim];
      const auto least = std::min({p.a_alignment, p.b_alignment, p.d_alignment});
      if (item.claim == 0) {
        EXPECT_GE(least, 16) << text;
      }
      if (item.claim == 1) {
        EXPECT_LT(least, 16) << text;
      }
      if (item.claim == 3) {
        EXPECT_LE(std::min({p.m, p.n, p.k}), 16) << text;
      }
      EXPECT_LE(p.flops(), 6e12) << text;
      EXPECT_NO_THROW(choose(p, h200())) << text;
    }
    EXPECT_EQ(counts[0], kGeneratedAligned);
    EXPECT_EQ(counts[1], kGeneratedUnaligned);
    EXPECT_EQ(counts[3], kGeneratedNarrow);
  }
  EXPECT_EQ(forms.size(), 7u) << "three phases, with and without what stands beside the product";
}

TEST(GeneratedSuite, ASeedIsANumberOrACommit) {
  EXPECT_EQ(parse_seed("1"), 1U);
  EXPECT_EQ(parse_seed("80eaf85a"), 0x80eaf85aU);
  EXPECT_EQ(parse_seed("12345678"), 0x12345678U) << "eight digits are a commit's";
  for (const char* const text : {"", "-1", "1.5", "80eaf85g", "99999999999999999999999"}) {
    EXPECT_THROW(parse_seed(text), InputError) << text;
  }
}

// The model's best, as many drawn of the others, and always its choice.
TEST(GeneratedSuite, CandidatesAreTheModelsBestAndOthersDrawn) {
  OurSide side;
  for (int i = 0; i < 100; ++i) side.candidates.push_back({.name = concat(i), .launch = {}, .always_final = i == 20});
  std::mt19937_64 random(1);
  side.keep(8, random);
  ASSERT_GE(side.candidates.size(), 16U);
  ASSERT_LE(side.candidates.size(), 17U);
  std::set<std::string> names;
  for (std::size_t i = 0; i < side.candidates.size(); ++i) {
    names.insert(side.candidates[i].name);
    if (i < 8) {
      EXPECT_EQ(side.candidates[i].name, concat(i));
    }
  }
  EXPECT_EQ(names.size(), side.candidates.size());
  EXPECT_TRUE(names.contains("20"));
  OurSide few;
  few.candidates = {{.name = "a", .launch = {}}, {.name = "b", .launch = {}}};
  few.keep(8, random);
  EXPECT_EQ(few.candidates.size(), 2U);
}

}  // namespace
}  // namespace tilewave
