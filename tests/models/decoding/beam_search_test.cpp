#include "models/decoding/beam_search.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>

#include "framework/data/tokenizer.h"

namespace tilewave {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kWords = kSpecialIds + 2, kColumns = kWords + 3;
constexpr std::int32_t kA = kSpecialIds, kB = kSpecialIds + 1;

// A row of logits. What must not be produced is the most probable of all where `tempting`, else impossible.
std::vector<double> row(double end, double a, double b, bool tempting = false) {
  std::vector<double> logits(kColumns, tempting ? 50.0 : -1e3);
  logits[kEndId] = std::log(end);
  logits[kA] = std::log(a);
  logits[kB] = std::log(b);
  return logits;
}

std::vector<double> rows(const std::vector<std::vector<double>>& each) {
  std::vector<double> all;
  for (const std::vector<double>& one : each) all.insert(all.end(), one.begin(), one.end());
  return all;
}

struct Search {
  std::int64_t beams = 1;
  double length_penalty = 0.6;
  std::int64_t longest = 9;
  PairFrame frame;
};
BeamSearch search_of(const Search& asked) {
  return BeamSearch({.beams = asked.beams,
                     .length_penalty = asked.length_penalty,
                     .vocabulary = kWords,
                     .longest = asked.longest,
                     .frame = asked.frame,
                     .ids = std::make_shared<const Ids>(Ids{asked.frame.end, kA, kB})});
}

// Of a tokenizer whose special ids lie elsewhere, or whose text begins with what ends it.
TEST(BeamSearch, FramesTargetsAsItIsTold) {
  for (const PairFrame frame : {PairFrame{.begin = 1, .end = 0}, PairFrame{.begin = 0, .end = 0}}) {
    BeamSearch greedy = search_of({.frame = frame});
    EXPECT_EQ(greedy.last(0), frame.begin);
    greedy.advance(row(0.1, 0.2, 0.7), kColumns);
    EXPECT_EQ(greedy.last(0), kB);
    std::vector<double> ends = row(0.9, 0.05, 0.05);
    EXPECT_FALSE(greedy.done());
    ends[0] = 9.0;
    greedy.advance(ends, kColumns);
    EXPECT_TRUE(greedy.done());
    EXPECT_EQ(greedy.take_best(), Ids{kB});
  }
}

TEST(BeamSearch, ProducesNoSpecialIdAndNoPadding) {
  BeamSearch greedy = search_of({.longest = 3});
  EXPECT_EQ(greedy.last(0), kBeginId);
  greedy.advance(row(0.1, 0.2, 0.7, true), kColumns);
  EXPECT_EQ(greedy.last(0), kB);
  greedy.advance(row(0.1, 0.8, 0.1, true), kColumns);
  EXPECT_EQ(greedy.last(0), kA);
  EXPECT_FALSE(greedy.done());
  greedy.advance(row(0.8, 0.1, 0.1, true), kColumns);
  EXPECT_TRUE(greedy.done());
  EXPECT_EQ(greedy.take_best(), (Ids{kB, kA}));
}

TEST(BeamSearch, EndsAtTheLongestTarget) {
  BeamSearch greedy = search_of({.longest = 2});
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(greedy.done());
    greedy.advance(row(0.1, 0.8, 0.1), kColumns);
  }
  EXPECT_TRUE(greedy.done());
  EXPECT_EQ(greedy.take_best(), (Ids{kA, kA}));
}

TEST(BeamSearch, SaysWhichBeamEachOneContinues) {
  BeamSearch search = search_of({.beams = 2});
  search.advance(rows({row(0.01, 0.3, 0.69), row(1, 1, 1)}), kColumns);
  EXPECT_EQ(search.last(0), kB);
  EXPECT_EQ(search.last(1), kA);
  // The first beam's probability is spread, so that the second one's two continuations come first.
  const std::vector<std::int64_t> parents = search.advance(rows({row(0.94, 0.03, 0.03), row(0.01, 0.5, 0.49)}), kColumns);
  EXPECT_EQ(parents, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(search.last(0), kA);
  EXPECT_EQ(search.last(1), kB);
}

// A penalty below 0 favours the short ones, a large one the long ones: neither may end a search that could still be bettered.
TEST(BeamSearch, StopsWhereNothingBetterCanCome) {
  for (const double penalty : {-3.0, 0.0, 3.0}) {
    BeamSearch search = search_of({.length_penalty = penalty, .longest = 50});
    int steps = 0;
    for (; !search.done(); ++steps) search.advance(row(steps == 4 ? 0.9 : 0.001, 0.099, 0.001), kColumns);
    EXPECT_EQ(steps, 5) << penalty;
  }
  const auto best_of_two = [](double penalty, const std::vector<std::vector<std::vector<double>>>& steps) {
    BeamSearch search = search_of({.beams = 2, .length_penalty = penalty, .longest = 30});
    for (std::size_t step = 0; !search.done(); ++step) search.advance(rows(steps[std::min(step, steps.size() - 1)]), kColumns);
    return search.take_best();
  };
  // The end is likely at once; `a` goes on with hardly any loss, and ends after nine.
  std::vector<std::vector<std::vector<double>>> late = {{row(0.6, 0.39, 0.01), row(1, 1, 1)}};
  for (int step = 1; step < 9; ++step) late.push_back({row(0.0001, 0.9989, 0.001), row(0.0001, 0.9989, 0.001)});
  late.push_back({row(0.999, 0.0005, 0.0005), row(0.999, 0.0005, 0.0005)});
  EXPECT_EQ(best_of_two(0.0, late), Ids());
  EXPECT_EQ(best_of_two(3.0, late), Ids(9, kA));
  EXPECT_EQ(best_of_two(-3.0, late), Ids());
  // With a penalty below 0 the next length ranks highest: two have ended after the second step, and the third one's is the best.
  const std::vector<std::vector<std::vector<double>>> soon = {{row(0.3, 0.65, 0.05), row(1, 1, 1)},
                                                              {row(0.001, 0.998, 0.001), row(0.98, 0.01, 0.01)},
                                                              {row(0.999, 0.0005, 0.0005), row(0.999, 0.0005, 0.0005)}};
  EXPECT_EQ(best_of_two(-3.0, soon), Ids(2, kA));
}

}  // namespace
}  // namespace tilewave
