// Decoding with a cache says what the whole model says, and finds what it claims to look for.
#include "models/decoding/decode.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "framework/data/tokenizer.h"
#include "models/decoding/decode_launches.h"
#include "models/decoding/decoding_memory.h"
#include "tests/models/training/small_runs.h"
#include "tests/models/whole_model.h"
#include "tests/sanitized.h"

namespace tilewave {
namespace {

constexpr std::int64_t kVocabulary = 61;

using Ids = std::vector<std::int32_t>;

std::vector<std::int32_t> allowed_ids(std::int64_t vocabulary) {
  std::vector<std::int32_t> ids = {kEndId};
  for (std::int32_t id = kSpecialIds; id < vocabulary; ++id) ids.push_back(id);
  return ids;
}

std::vector<std::int32_t> greedy(SmallRun& run, const std::vector<std::int32_t>& source) {
  std::vector<std::int32_t> target;
  const std::size_t longest = std::min<std::size_t>(16, 2 * source.size() + 16);
  while (target.size() < longest) {
    const std::vector<double> logits = whole_logits(run, source, target).back();
    const std::vector<std::int32_t> ids = allowed_ids(kVocabulary);
    const std::int32_t best =
        *std::max_element(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) { return logits[a] < logits[b]; });
    if (best == kEndId) break;
    target.push_back(best);
  }
  return target;
}

// An untrained model with opinions: its projection is its own and three times as large, so that few ids are probable.
std::unique_ptr<SmallRun> opinionated(int seed, std::int64_t max_positions) {
  const std::string positions = std::to_string(max_positions);
  auto run = std::make_unique<SmallRun>(small_recipe({"run.precision=fp64", "model.tied=false", "run.seed=" + std::to_string(seed),
                                                      "model.max_positions=" + positions, "batch.sequence=" + positions}));
  const Parameter& projection = *run->step.model().parameters().find("projection.weight");
  std::vector<double> elements = read_elements(run->context, projection.master);
  for (double& element : elements) element *= 3.0;
  write_elements(run->context, projection.master, elements);
  return run;
}

// What may follow the beginnings of one source's target, each beginning computed from its first token.
class Continuations {
 public:
  Continuations(SmallRun& run, Ids source, std::int64_t vocabulary)
      : ids(allowed_ids(vocabulary)), run_(run), source_(std::move(source)), vocabulary_(static_cast<std::size_t>(vocabulary)) {}

  double log_probability(const Ids& beginning, std::int32_t next) {
    const auto [known, fresh] = known_.try_emplace(beginning);
    if (fresh) known->second = log_probabilities(whole_logits(run_, source_, beginning).back(), vocabulary_);
    return known->second[static_cast<std::size_t>(next)];
  }

  const Ids ids;

 private:
  SmallRun& run_;
  Ids source_;
  std::size_t vocabulary_;
  std::map<Ids, std::vector<double>> known_;
};

struct Scored {
  Ids target;
  double log_probability = 0.0;  // the end's too where it has ended
};

double score(const Scored& ended, double penalty) {
  return ended.log_probability / std::pow((5.0 + static_cast<double>(ended.target.size()) + 1.0) / 6.0, penalty);
}

const Scored& best_of(const std::vector<Scored>& ended, double penalty) {
  return *std::max_element(ended.begin(), ended.end(),
                           [&](const Scored& a, const Scored& b) { return score(a, penalty) < score(b, penalty); });
}

// Every target of fewer than `longest` tokens, with its end.
std::vector<Scored> all_targets(Continuations& continuations, std::size_t longest) {
  std::vector<Scored> begun = {{}}, ended;
  for (std::size_t i = 0; i < begun.size(); ++i) {
    for (const std::int32_t id : continuations.ids) {
      Scored next = begun[i];
      next.log_probability += continuations.log_probability(begun[i].target, id);
      if (id == kEndId) {
        ended.push_back(std::move(next));
      } else if (next.target.size() + 1 < longest) {
        next.target.push_back(id);
        begun.push_back(std::move(next));
      }
    }
  }
  return ended;
}

// Beam search that stops at nothing but the length: of the best 2 x beams continuations those that go on fill the beams; those that
// end count where they are among the best `beams`. Where none has ended, the most probable of the longest.
Ids beam_search(Continuations& continuations, std::size_t longest, std::size_t beams, double penalty) {
  std::vector<Scored> live = {{}}, ended;
  for (std::size_t length = 0; length < longest; ++length) {
    std::vector<Scored> candidates;
    for (const Scored& hypothesis : live) {
      for (const std::int32_t id : continuations.ids) {
        candidates.push_back({hypothesis.target, hypothesis.log_probability + continuations.log_probability(hypothesis.target, id)});
        candidates.back().target.push_back(id);
      }
    }
    std::sort(candidates.begin(), candidates.end(), [](const Scored& a, const Scored& b) { return a.log_probability > b.log_probability; });
    live.clear();
    for (std::size_t rank = 0; rank < std::min(candidates.size(), 2 * beams) && live.size() < beams; ++rank) {
      Scored& candidate = candidates[rank];
      if (candidate.target.back() != kEndId) {
        live.push_back(std::move(candidate));
      } else if (rank < beams) {
        candidate.target.pop_back();
        ended.push_back(std::move(candidate));
      }
    }
  }
  return ended.empty() ? live.front().target : best_of(ended, penalty).target;
}

TEST(Decode, GreedyWithACacheIsGreedyWithout) {
  for (const char* norm : {"model.norm=pre", "model.norm=post"}) {
    SmallRun run(small_recipe({"run.precision=fp64", "optimizer.learning_rate=5e-3", norm}));
    run.losses(30);
    const std::vector<std::vector<std::int32_t>> sources = {{7, 9, 30, 12}, {}, {5}, {8, 8, 60, 33, 21, 4, 19, 50, 11}, {44, 4}};
    const std::vector<std::vector<std::int32_t>> targets = translate(run.step.model(), sources);
    ASSERT_EQ(targets.size(), sources.size());
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::vector<std::int32_t> expected = sources[i].empty() ? std::vector<std::int32_t>() : greedy(run, sources[i]);
      EXPECT_EQ(targets[i], expected) << "source " << i << ", " << norm;
      tokens += expected.size();
    }
    EXPECT_GT(tokens, 8u);
    // One at a time, and in groups of any size, gives the same.
    for (const std::int64_t rows : {1, 2}) EXPECT_EQ(translate(run.step.model(), sources, {.rows = rows}), targets);
    for (const std::int64_t bytes : {1, 20'000, 40'000}) EXPECT_EQ(translate(run.step.model(), sources, {.bytes = bytes}), targets);
  }
}

// Sources whose searches end at other lengths, so that rows leave and others take their places; in groups of one none does.
TEST(Decode, RowsLeaveWhereTheirSearchIsDone) {
  constexpr std::int64_t kSome = 9;
  const std::unique_ptr<SmallRun> run = opinionated(3, 16);
  std::vector<Ids> sources;
  for (std::int32_t i = 0; i < 24; ++i) sources.push_back(Ids(static_cast<std::size_t>(1 + i % 5), 4 + 2 * i));
  for (const std::int64_t beams : {1, 3}) {
    const std::vector<Ids> alone = translate(run->step.model(), sources, {.beams = beams, .vocabulary = kSome, .rows = 1});
    EXPECT_EQ(translate(run->step.model(), sources, {.beams = beams, .vocabulary = kSome}), alone) << beams;
    std::set<std::size_t> lengths;
    for (const Ids& target : alone) lengths.insert(target.size());
    EXPECT_GE(lengths.size(), 3u) << "all end together";
  }
}

TEST(Decode, EndsAtThePositionsThatWereTrained) {
  const std::unique_ptr<SmallRun> run = opinionated(5, 16);
  const std::vector<Ids> sources = {{9, 30, 12}, {5, 44}};
  const std::vector<Ids> all = translate(run->step.model(), sources);
  const std::vector<Ids> cut = translate(run->step.model(), sources, {.positions = 3});
  for (std::size_t i = 0; i < sources.size(); ++i) {
    ASSERT_GT(all[i].size(), 3u);
    EXPECT_EQ(cut[i], Ids(all[i].begin(), all[i].begin() + 3));
  }
  EXPECT_THROW(translate(run->step.model(), std::vector<Ids>{{5, 6, 7, 8}}, {.positions = 3}), InputError);
}

TEST(Decode, WideBeamsFindTheBestOfAll) {
  constexpr std::int64_t kFew = 7, kPositions = 5;  // three tokens and the end
  constexpr std::int64_t kAllCandidates = 324;      // of the 81 targets of four tokens, and more than there are of shorter ones
  int cases = 0, best_has_tokens = 0, greedy_misses = 0;
  for (int seed = 1; seed <= 6; ++seed) {
    const std::unique_ptr<SmallRun> run = opinionated(seed, kPositions);
    const std::vector<Ids> sources = {{9, 30, 12}, {5}, {44, 4, 7, 8}};
    std::vector<std::vector<Scored>> all;
    for (const Ids& source : sources) {
      Continuations continuations(*run, source, kFew);
      all.push_back(all_targets(continuations, kPositions));
      ASSERT_EQ(all.back().size(), 121u);
    }
    const std::vector<Ids> greedy = translate(run->step.model(), sources, {.vocabulary = kFew});
    for (const double penalty : {0.0, 0.6, 3.0}) {
      const std::vector<Ids> found =
          translate(run->step.model(), sources, {.beams = kAllCandidates, .length_penalty = penalty, .vocabulary = kFew});
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const Ids& best = best_of(all[i], penalty).target;
        EXPECT_EQ(found[i], best) << "seed " << seed << ", source " << i << ", penalty " << penalty;
        ++cases;
        best_has_tokens += best.empty() ? 0 : 1;
        greedy_misses += greedy[i] == best ? 0 : 1;
      }
    }
  }
  EXPECT_GT(2 * best_has_tokens, cases);
  EXPECT_GT(2 * greedy_misses, cases);
}

TEST(Decode, NarrowBeamsFindWhatASearchWithoutCachesFinds) {
  constexpr std::int64_t kSome = 9, kPositions = 9;  // five tokens and the end
  int cases = 0, found_has_tokens = 0, greedy_misses = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    const std::unique_ptr<SmallRun> run = opinionated(seed, kPositions);
    const std::vector<Ids> sources = {{9, 30, 12}, {5}, {44, 4, 7, 8}, {8, 8, 60, 33, 21, 4, 19, 50}};
    std::vector<Continuations> continuations;
    for (const Ids& source : sources) continuations.emplace_back(*run, source, kSome);
    const std::vector<Ids> greedy = translate(run->step.model(), sources, {.vocabulary = kSome});
    for (const std::size_t beams : {2, 3, 5}) {
      for (const double penalty : {0.6, 3.0}) {
        const TranslateOptions options{.beams = static_cast<std::int64_t>(beams), .length_penalty = penalty, .vocabulary = kSome};
        const std::vector<Ids> found = translate(run->step.model(), sources, options);
        for (std::size_t i = 0; i < sources.size(); ++i) {
          EXPECT_EQ(found[i], beam_search(continuations[i], kPositions, beams, penalty))
              << "seed " << seed << ", source " << i << ", " << beams << " beams, penalty " << penalty;
          ++cases;
          found_has_tokens += found[i].empty() ? 0 : 1;
          greedy_misses += greedy[i] == found[i] ? 0 : 1;
        }
      }
    }
  }
  EXPECT_GT(2 * found_has_tokens, cases);
  EXPECT_GT(2 * greedy_misses, cases);
}

TEST(Decode, ASourceBeyondThePositionsIsNamed) {
  SmallRun run(small_recipe());
  const std::vector<std::vector<std::int32_t>> sources = {{5}, std::vector<std::int32_t>(17, 5)};
  try {
    translate(run.step.model(), sources);
    FAIL() << "17 tokens do not fit 16 positions";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("source 2 has 17 tokens"), std::string::npos) << error.what();
  }
}

// What a group takes is known from a trace of it: more sources, longer ones and more beams take more.
TEST(DecodingMemory, GrowsWithWhatIsDecoded) {
  SmallRun run(small_recipe());
  DecodingMemory memory(decoded_model(run.step.model()));
  const std::int64_t one = memory.bytes(DecodingMemory::Group{.source_tokens = 8, .capacity = 16});
  const std::int64_t cached = 16 * 2 * 2 * 32 * 4;  // positions, layers, keys and values, columns, bytes
  EXPECT_GT(one, cached);
  EXPECT_GE(memory.bytes(DecodingMemory::Group{.sources = 10, .source_tokens = 8, .capacity = 16}), 10 * cached);
  EXPECT_GE(memory.bytes(DecodingMemory::Group{.source_tokens = 8, .capacity = 16, .beams = 4}), 2 * 4 * cached);
  EXPECT_GT(memory.bytes(DecodingMemory::Group{.source_tokens = 12, .capacity = 16}), one);
  EXPECT_EQ(memory.bytes(DecodingMemory::Group{.source_tokens = 8, .capacity = 16}), one);
}

// A limit that the whole group does not fit into: it is decoded in parts, to the same targets.
TEST(DecodeDeathTest, LessIsDecodedAtATimeWhereMemoryRunsOut) {
  if (kSanitized) GTEST_SKIP() << "under the address sanitizer";
  const auto translate_under_a_limit = [] {
    SmallRun run(small_recipe({"model.d_model=128", "model.decoder_layers=8", "model.max_positions=64", "batch.sequence=40"}));
    const std::vector<Ids> sources(32, Ids(24, 7));  // 128 KiB a position together, 8 MiB in all
    const std::vector<Ids> targets = translate(run.step.model(), sources, {.rows = 8});
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (rlim_t{5} << 20);
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
    const std::vector<DecodedSource> together(32, {.rows = 24, .ids = sources.front(), .pixels = {}});
    try {
      const NoGradient scope(run.context);
      SourceGroup(run.step.model(), together, {.capacity = 64});
      std::_Exit(4);
    } catch (const OutOfMemory&) {
    }
    std::_Exit(translate(run.step.model(), sources, {.bytes = std::int64_t{1} << 40}) == targets ? 0 : 5);
  };
  EXPECT_EXIT(translate_under_a_limit(), testing::ExitedWithCode(0), "");
}

class Generate : public testing::Test {
 protected:
  Generate()
      : run([] {
          std::vector<std::string> overrides = kDecoderOnly;
          overrides.insert(overrides.end(), {"run.precision=fp64", "optimizer.learning_rate=5e-3"});
          return small_recipe(overrides);
        }()) {
    run.losses(20);
  }

  std::vector<std::int32_t> text(const std::vector<std::int32_t>& prompt, const GenerateOptions& options) {
    std::vector<std::int32_t> ids;
    generate(run.step.model(), prompt, options, [&](std::int32_t id) { ids.push_back(id); });
    return ids;
  }

  SmallRun run;
};

TEST_F(Generate, TheMostProbableTokenIsTheWholeModels) {
  const std::vector<std::int32_t> prompt = {9, 30, 12};
  const std::vector<std::int32_t> drawn = text(prompt, {.tokens = 10, .temperature = 0.0});
  ASSERT_FALSE(drawn.empty());
  std::vector<std::int32_t> seen = prompt;
  for (const std::int32_t id : drawn) {
    const NoGradient scope(run.context);
    const auto rows = static_cast<std::int64_t>(seen.size());
    const BatchShape shape{.source_rows = 0, .target_rows = rows, .sequence = rows};
    Packer packer(shape);
    ASSERT_TRUE(packer.add({.source = {}, .target_in = seen, .target_out = seen}));
    const BatchTensors tensors = make_batch_tensors(run.context, shape);
    upload(run.context, std::move(packer).take(), tensors);
    const Tensor logits = run.step.model().logits(tensors, shape.sequence, {}).value();
    const std::vector<double> last = read_elements(run.context, logits.slice_rows(logits.rows() - 1, 1));
    const std::vector<std::int32_t> ids = allowed_ids(kVocabulary);
    EXPECT_EQ(id, *std::max_element(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) { return last[a] < last[b]; }));
    seen.push_back(id);
  }
}

TEST_F(Generate, APromptIsReadInPiecesWhereMemoryIsSmall) {
  const std::vector<std::int32_t> prompt = {9, 30, 12, 44, 8, 9, 17, 50, 23, 11};
  const std::vector<std::int32_t> drawn = text(prompt, {.tokens = 30, .temperature = 0.0});  // past the positions too
  EXPECT_FALSE(drawn.empty());
  for (const std::int64_t bytes : {1, 20'000, 30'000}) EXPECT_EQ(text(prompt, {.tokens = 30, .temperature = 0.0, .bytes = bytes}), drawn);
}

TEST_F(Generate, SeedsAndTopKDecide) {
  const std::vector<std::int32_t> prompt = {9, 30, 12};
  const std::vector<std::int32_t> drawn = text(prompt, {.tokens = 12, .seed = 3});
  EXPECT_EQ(drawn, text(prompt, {.tokens = 12, .seed = 3}));
  EXPECT_NE(drawn, text(prompt, {.tokens = 12, .seed = 4}));
  EXPECT_EQ(text(prompt, {.tokens = 12, .top_k = 1, .seed = 3}), text(prompt, {.tokens = 12, .temperature = 0.0}));
}

// As if the model had no others: past them the latter half is the prompt of a new start.
TEST_F(Generate, ReadsNoFurtherBackThanThePositionsThatWereTrained) {
  const std::vector<std::int32_t> drawn = text({9, 30, 12}, {.tokens = 12, .temperature = 0.0, .positions = 6});
  ASSERT_GT(drawn.size(), 4u);
  const std::vector<std::int32_t> whole = {9, 30, 12, drawn[0], drawn[1], drawn[2], drawn[3]};
  const std::vector<std::int32_t> half(whole.end() - 3, whole.end());
  EXPECT_EQ(text(half, {.tokens = 1, .temperature = 0.0}).front(), drawn[4]);
}

TEST_F(Generate, TextGoesOnPastThePositionsAndStaysInTheVocabulary) {
  const std::vector<std::int32_t> drawn = text(std::vector<std::int32_t>(20, 9), {.tokens = 40, .temperature = 2.0, .vocabulary = 20});
  EXPECT_GT(drawn.size(), 3u);
  for (const std::int32_t id : drawn) EXPECT_TRUE(id >= kSpecialIds && id < 20) << id;
}

}  // namespace
}  // namespace tilewave
