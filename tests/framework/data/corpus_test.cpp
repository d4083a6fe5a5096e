// The kinds of data that are text or ids from end to end: splits that share nothing, streams that resume bit for bit, and a sentence for
// whatever a person's files or settings have wrong.
#include "framework/data/corpus.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

#include "framework/data/token_file.h"
#include "framework/io/text_file.h"
#include "framework/tensor/random.h"
#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

constexpr BatchShape kPairs{.source_rows = 120, .target_rows = 130, .sequence = 40},
    kStream{.source_rows = 0, .target_rows = 100, .sequence = 16};

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    std::string english, german, text;
    for (std::int32_t i = 0; i < 400; ++i) {
      english += english_name(i * 37 % 1000) + "\n";
      german += german_name(i * 37 % 1000) + "\n";
      text += english_name(i) + ",\n\t" + german_name(i) + ".\n";
    }
    source = scratch.write("source.txt", english);
    target = scratch.write("target.txt", german);
    document = scratch.write("document.txt", text);
    std::vector<std::int32_t> ids(5'000);
    std::iota(ids.begin(), ids.end(), 0);
    tokens = scratch.folder() / "tokens.bin";
    write_token_file(tokens, ids);
  }

  // One of each kind and tokenizer.
  std::vector<CorpusConfig> every_kind(std::uint64_t seed) const {
    return {{.kind = DataKind::number_names, .tokenizer = TokenizerKind::bytes, .seed = seed},
            {.kind = DataKind::parallel,
             .source = source,
             .target = target,
             .tokenizer = TokenizerKind::bpe,
             .tokenizer_vocabulary = 100,
             .seed = seed},
            {.kind = DataKind::text, .source = document, .tokenizer = TokenizerKind::bytes, .seed = seed},
            {.kind = DataKind::text, .source = document, .tokenizer = TokenizerKind::bpe, .tokenizer_vocabulary = 100, .seed = seed},
            {.kind = DataKind::tokens, .source = tokens, .vocabulary = 5'000, .seed = seed},
            {.kind = DataKind::synthetic, .vocabulary = 300, .seed = seed}};
  }
  static BatchShape shape_of(const CorpusConfig& config) {
    return config.kind == DataKind::number_names || config.kind == DataKind::parallel
               ? BatchShape{.source_rows = 300, .target_rows = 310, .sequence = 80}
               : BatchShape{.source_rows = 0, .target_rows = 400, .sequence = 16};
  }

  Scratch scratch;
  std::filesystem::path source, target, document, tokens;
};

TEST_F(CorpusTest, ResumesBitForBitFromAnyPosition) {
  for (const CorpusConfig& config : every_kind(9)) {
    const Corpus corpus(config);
    BatchStream whole = corpus.training(shape_of(config));
    std::vector<Batch> batches;
    std::vector<DataPosition> positions;
    for (int step = 0; step < 90; ++step) {
      positions.push_back(whole.position());
      batches.push_back(whole.next().value());
    }
    if (config.kind != DataKind::number_names && config.kind != DataKind::synthetic) {
      EXPECT_GE(whole.position().epoch, 1u) << "the positions cross an epoch's end";
    }
    Random random(4);
    const Corpus again(config, corpus.tokenizer());
    for (int trial = 0; trial < 10; ++trial) {
      const std::size_t from = random.below(85);
      BatchStream resumed = again.training(shape_of(config));
      resumed.restore(positions[from]);
      for (std::size_t step = from; step < std::min<std::size_t>(from + 5, batches.size()); ++step) {
        ASSERT_EQ(resumed.position(), positions[step]);
        ASSERT_EQ(resumed.next().value(), batches[step]) << "kind " << static_cast<int>(config.kind) << ", step " << step;
      }
    }
  }
}

TEST_F(CorpusTest, GivesOtherBatchesForAnotherSeed) {
  for (std::size_t kind = 0; kind < every_kind(1).size(); ++kind) {
    const Corpus one(every_kind(1)[kind]), same(every_kind(1)[kind]), other(every_kind(2)[kind]);
    const BatchShape shape = shape_of(one.config());
    EXPECT_EQ(one.training(shape).next(), same.training(shape).next());
    EXPECT_NE(one.training(shape).next(), other.training(shape).next());
    EXPECT_EQ(one.validation(shape).next(), same.validation(shape).next());
    EXPECT_EQ(one.fingerprint(), same.fingerprint());
    EXPECT_NE(one.fingerprint(), other.fingerprint());
    BatchStream stream = one.training(shape);
    EXPECT_NE(stream.next(), stream.next());
  }
}

TEST_F(CorpusTest, KeepsEveryIdBelowItsVocabulary) {
  for (const CorpusConfig& config : every_kind(1)) {
    const Corpus corpus(config);
    ASSERT_GT(corpus.vocabulary(), 0);
    for (BatchStream stream : {corpus.training(shape_of(config)), corpus.validation(shape_of(config))}) {
      const Batch batch = stream.next().value();
      for (const auto* ids : {&batch.source_ids, &batch.target_in, &batch.target_out}) {
        for (const std::int32_t id : *ids) EXPECT_TRUE(id >= -1 && id < corpus.vocabulary());
      }
    }
  }
}

TEST_F(CorpusTest, FingerprintsTellCorporaApart) {
  std::set<std::uint64_t> fingerprints;
  for (const CorpusConfig& config : every_kind(1)) fingerprints.insert(Corpus(config).fingerprint());
  EXPECT_EQ(fingerprints.size(), every_kind(1).size());
  const CorpusConfig config{.kind = DataKind::text, .source = scratch.write("a.txt", "some text to train on")};
  const std::uint64_t before = Corpus(config).fingerprint();
  scratch.write("a.txt", "some text to train om");
  EXPECT_NE(Corpus(config).fingerprint(), before);
  scratch.write("a.txt", "some text to train on");
  EXPECT_EQ(Corpus(config).fingerprint(), before);
  const CorpusConfig pairs{
      .kind = DataKind::parallel, .source = scratch.write("s", "one\ntwo\n"), .target = scratch.write("t", "eins\nzwei\n")};
  const std::uint64_t with_two = Corpus(pairs).fingerprint();
  scratch.write("t", "eins\nzwo\n");
  EXPECT_NE(Corpus(pairs).fingerprint(), with_two);
}

TEST_F(CorpusTest, TranslatesNumberNames) {
  const Corpus corpus({.kind = DataKind::number_names, .tokenizer = TokenizerKind::bpe, .tokenizer_vocabulary = 128, .seed = 1});
  EXPECT_EQ(corpus.tokenizer()->vocabulary(), 128);
  EXPECT_EQ(corpus.vocabulary(), 128);
  EXPECT_EQ(corpus.test_pairs().size(), 1'000u);
  EXPECT_EQ(corpus.facts().validation, 500);
  EXPECT_EQ(corpus.facts().training, 998'500);
  std::set<std::string> held_out;
  for (const TextPair& pair : corpus.test_pairs()) held_out.insert(pair.source);
  BatchStream stream = corpus.training({.source_rows = 1'536, .target_rows = 1'536, .sequence = 64});
  for (int step = 0; step < 20; ++step) {
    const Batch batch = stream.next().value();
    EXPECT_GT(batch.real_tokens, 1'400);
    std::size_t row = 0;
    for (const std::int32_t length : batch.source_lengths) {
      EXPECT_FALSE(
          held_out.contains(corpus.tokenizer()->decode(std::span(batch.source_ids).subspan(row, static_cast<std::size_t>(length)))));
      row += static_cast<std::size_t>(length);
    }
  }
  EXPECT_TRUE(says(input_error([&] { corpus.training({.source_rows = 100, .target_rows = 100, .sequence = 1}); }), {"batch.sequence = 1"}));
}

TEST_F(CorpusTest, SplitsParallelTextWithoutOverlap) {
  const Corpus corpus({.kind = DataKind::parallel, .source = source, .target = target, .seed = 3});
  EXPECT_EQ(corpus.facts().training + corpus.facts().validation, 400);
  EXPECT_GE(corpus.facts().validation, 8);
  EXPECT_EQ(corpus.test_pairs().size(), static_cast<std::size_t>(corpus.facts().validation));
  const Corpus other({.kind = DataKind::parallel, .source = source, .target = target, .seed = 4});
  EXPECT_NE(other.test_pairs()[0].source, corpus.test_pairs()[0].source);
  std::set<std::string> held_out;
  for (const TextPair& pair : corpus.test_pairs()) held_out.insert(pair.source);
  BatchStream stream = corpus.training({.source_rows = 300, .target_rows = 310, .sequence = 80});
  while (stream.position().epoch == 0) {
    const Batch batch = stream.next().value();
    std::size_t row = 0;
    for (const std::int32_t length : batch.source_lengths) {
      EXPECT_FALSE(
          held_out.contains(corpus.tokenizer()->decode(std::span(batch.source_ids).subspan(row, static_cast<std::size_t>(length)))));
      row += static_cast<std::size_t>(length);
    }
  }
}

TEST_F(CorpusTest, KeepsEqualPairsOnOneSideOfTheSplit) {
  std::string english, german;
  for (int copy = 0; copy < 3; ++copy) {
    for (std::int32_t i = 0; i < 100; ++i) {
      english += english_name(i) + "\n";
      german += german_name(i) + "\n";
    }
  }
  const Corpus corpus({.kind = DataKind::parallel, .source = scratch.write("e", english), .target = scratch.write("g", german)});
  EXPECT_EQ(corpus.facts().validation, 6);
  EXPECT_EQ(corpus.facts().training, 294);
}

TEST_F(CorpusTest, HoldsOutNoMoreThanAFiftiethWherePairsRepeat) {
  std::string english, german;
  for (std::int32_t i = 0; i < 500; ++i) {
    english += "yes\n" + english_name(i) + "\n";
    german += "ja\n" + german_name(i) + "\n";
  }
  CorpusConfig config = {.kind = DataKind::parallel, .source = scratch.write("e", english), .target = scratch.write("g", german)};
  for (config.seed = 1; config.seed <= 120; ++config.seed) {
    const Corpus corpus(config);
    ASSERT_EQ(corpus.facts().validation, 20) << "seed " << config.seed;
    ASSERT_EQ(corpus.facts().training, 980);
  }
}

TEST_F(CorpusTest, HoldsOutNoMoreThanItTakesToMeasureALoss) {
  const Corpus text({.kind = DataKind::text, .source = scratch.write("text", std::string(3 << 20, 'x'))});
  EXPECT_EQ(text.facts().validation, 1 << 18);
  EXPECT_EQ(text.facts().training, (3 << 20) - (1 << 18));
  write_token_file(scratch.folder() / "long.bin", std::vector<std::int32_t>(3 << 19, 5));
  const Corpus stream({.kind = DataKind::tokens, .source = scratch.folder() / "long.bin", .vocabulary = 6});
  EXPECT_EQ(stream.facts().validation, 1 << 17);
  EXPECT_EQ(stream.facts().training, (3 << 19) - (1 << 17));
}

// Where tokens lie in several files, the stream is that of one file with all of them.
TEST_F(CorpusTest, TokensInShardsAreOneStream) {
  std::vector<std::int32_t> ids(900);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(4 + i * i % 90);
  write_token_file(scratch.folder() / "whole.bin", ids);
  write_token_file(scratch.folder() / "part_1.bin", std::span(ids).first(123));
  write_token_file(scratch.folder() / "part_2.bin", std::span(ids).subspan(123));
  const auto fingerprint = [&](const char* name) {
    return Corpus({.kind = DataKind::tokens, .source = scratch.folder() / name, .vocabulary = 100}).fingerprint();
  };
  EXPECT_EQ(fingerprint("part_?.bin"), fingerprint("whole.bin"));
  EXPECT_NE(fingerprint("part_2.bin"), fingerprint("whole.bin"));
  CorpusConfig config = {.kind = DataKind::tokens, .source = scratch.folder() / "part_?.bin", .vocabulary = 100};
  config.validation_source = scratch.folder() / "whole.bin";
  EXPECT_EQ(Corpus(config).facts().training, 900);
  config.validation_source = scratch.folder() / "part_2.bin";
  EXPECT_TRUE(says(input_error([&] { Corpus{config}; }), {"part_2.bin", "which is to be validated on"}));
}

TEST_F(CorpusTest, TakesValidationFilesAsTheyAre) {
  const Corpus corpus({.kind = DataKind::parallel,
                       .source = source,
                       .target = target,
                       .validation_source = scratch.write("vs", "one\ntwo\n"),
                       .validation_target = scratch.write("vt", "eins\nzwei")});
  EXPECT_EQ(corpus.facts().training, 400);
  EXPECT_EQ(corpus.facts().validation, 2);
  EXPECT_EQ(corpus.test_pairs()[1].target, "zwei");
  const Corpus text({.kind = DataKind::text, .source = document, .validation_source = scratch.write("v", "some other text")});
  EXPECT_EQ(text.facts().validation, 15);
  EXPECT_EQ(text.facts().training, static_cast<std::int64_t>(std::filesystem::file_size(document)));
}

TEST_F(CorpusTest, LeavesOutBlankSidesAndCountsThem) {
  const Corpus corpus({.kind = DataKind::parallel,
                       .source = scratch.write("s", "\xEF\xBB\xBFone\r\n\r\nthree\r\nfour\r\nfive"),
                       .target = scratch.write("t", "eins\nzwei\n \t\nvier\nf\xC3\xBCnf\n")});
  EXPECT_EQ(corpus.facts().blank, 2);
  EXPECT_EQ(corpus.facts().training + corpus.facts().validation, 3);
  const Corpus marks({.kind = DataKind::parallel,
                      .source = scratch.write("s", "ab\n\xE2\x96\x81\nba\nabba\n"),
                      .target = scratch.write("t", "ab\nba\nba\nbaab\n"),
                      .validation_source = scratch.write("vs", "ab\n"),
                      .validation_target = scratch.write("vt", "ba\n"),
                      .tokenizer = TokenizerKind::bpe,
                      .tokenizer_vocabulary = 9});
  EXPECT_EQ(marks.facts().blank, 0) << "U+2581 is no space";
  EXPECT_EQ(marks.facts().training, 4);
}

TEST_F(CorpusTest, ValidatesOnTheLastTenthOfAText) {
  std::string text;
  for (int i = 0; i < 1'000; ++i) text += static_cast<char>(i < 900 ? 'a' + i % 20 : 'A' + i % 20);
  const Corpus corpus({.kind = DataKind::text, .source = scratch.write("text", text)});
  EXPECT_EQ(corpus.facts().training, 900);
  EXPECT_EQ(corpus.facts().validation, 100);
  BatchStream training = corpus.training(kStream), validation = corpus.validation(kStream);
  for (int step = 0; step < 30; ++step) {
    const Batch batch = training.next().value();
    for (const std::int32_t label : batch.target_out) ASSERT_GE(label, kSpecialIds + 'a');
  }
  std::int64_t seen = 0;
  while (const std::optional<Batch> batch = validation.next()) {
    for (const std::int32_t label : batch->target_out) ASSERT_LT(label, kSpecialIds + 'a');
    seen += batch->real_tokens;
  }
  EXPECT_EQ(seen, 99);
}

TEST_F(CorpusTest, LineEndsOfADocumentMakeNoOtherPieces) {
  std::string text = read_text(document);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.insert(at, 1, '\r');
  CorpusConfig config = {.kind = DataKind::text, .source = document, .tokenizer = TokenizerKind::bpe, .tokenizer_vocabulary = 100};
  const Corpus lf(config);
  config.source = scratch.write("crlf.txt", text);
  EXPECT_EQ(Corpus(config).fingerprint(), lf.fingerprint());
}

// Every way that text has into a corpus, with a tokenizer that knows it all: nothing is unknown, and nothing is said.
TEST_F(CorpusTest, NoCharacterOfTheTrainingTextIsUnknown) {
  std::string text, english, german;
  for (int i = 0; i < 60; ++i) {
    text += "load ▁▂▃▅▇█ <s>\r\r\nnet \r" + std::string(1, '\0') + "\n";
    english += "load disk ▁▂▃▅▇█\r\n" + english_name(i) + "\n";
    german += "LOAD <unk> ▅" + std::string(1, '\0') + "\n" + german_name(i) + "\n";
  }
  const CorpusConfig configs[] = {
      {.kind = DataKind::text, .source = scratch.write("special.txt", text), .tokenizer = TokenizerKind::bpe, .tokenizer_vocabulary = 50},
      {.kind = DataKind::parallel,
       .source = scratch.write("special.en", english),
       .target = scratch.write("special.de", german),
       .tokenizer = TokenizerKind::bpe,
       .tokenizer_vocabulary = 80}};
  for (const CorpusConfig& config : configs) {
    const Corpus corpus(config);
    EXPECT_TRUE(corpus.notes().empty()) << corpus.notes().front();
    BatchStream stream = corpus.training(shape_of(config));
    for (int step = 0; step < 20; ++step) {
      const Batch batch = stream.next().value();
      for (const auto* ids : {&batch.source_ids, &batch.target_in, &batch.target_out}) {
        EXPECT_EQ(std::ranges::count(*ids, kUnknownId), 0);
      }
    }
  }
}

TEST_F(CorpusTest, UnknownIdsAreCountedWithAnExample) {
  CorpusConfig config = {.kind = DataKind::text,
                         .source = document,
                         .validation_source = scratch.write("held_out.txt", "eins\nzw\u00F4lf \u0394\u0394 x\n"),
                         .tokenizer = TokenizerKind::bpe,
                         .tokenizer_vocabulary = 100};
  const Corpus text(config);
  ASSERT_EQ(text.notes().size(), 1u);
  EXPECT_TRUE(says(text.notes().front(),
                   {"2 of ", "ids of the validation text are unknown", "'\u00F4' (U+00F4)", "held_out.txt, line 2", "data.tokenizer"}));

  // The last tenth of a text is numbered as the file's lines are.
  std::string tail;
  for (int line = 1; line <= 200; ++line) tail += line == 197 ? "abc \u00E9 abc\n" : "abc cab bca\n";
  config.source = scratch.write("tail.txt", tail);
  config.validation_source.clear();
  config.tokenizer_vocabulary = 14;
  EXPECT_TRUE(says(Corpus(config).notes().at(0), {"1 of ", "validation text is unknown", "(U+00E9)", "tail.txt, line 197"}));

  // A tokenizer of another text: what of the training text it does not know is told first.
  CorpusConfig pairs = {.kind = DataKind::parallel, .source = source, .target = target, .tokenizer = TokenizerKind::bpe};
  const Corpus other(pairs, Corpus(config).tokenizer());
  ASSERT_EQ(other.notes().size(), 2u);
  EXPECT_TRUE(says(other.notes().front(), {"ids of the training text are unknown", "source.txt, line "}));
  EXPECT_TRUE(Corpus({.kind = DataKind::text, .source = document}).notes().empty()) << "bytes know everything";
}

// What stands in the corpus is what a tokenizer without its mark was trained on: a run of then goes on where its tokenizer is made anew.
TEST_F(CorpusTest, TheMarkOfATokenizerIsNoOtherCorpus) {
  const CorpusConfig config = {
      .kind = DataKind::text, .source = document, .tokenizer = TokenizerKind::bpe, .tokenizer_vocabulary = 100, .seed = 1};
  const Corpus corpus(config);
  const Tokenizer unmarked = Tokenizer::load(scratch.write("unmarked.model", corpus.tokenizer()->learned()));
  EXPECT_EQ(Corpus(config, unmarked).fingerprint(), corpus.fingerprint());
}

TEST_F(CorpusTest, TakesTextsOfAnyBytes) {
  std::string binary;
  Random random(2);
  for (int i = 0; i < 5'000; ++i) binary += static_cast<char>(random.below(256));
  for (const std::string& text :
       {binary, std::string(100, '\0'), std::string("abcd"), std::string("\n\n\r\n\n"), std::string(1 << 20, 'x')}) {
    const Corpus corpus({.kind = DataKind::text, .source = scratch.write("text", text)});
    EXPECT_EQ(corpus.training(kStream).next().value().real_tokens, 100);
    EXPECT_TRUE(corpus.validation(kStream).next());
  }
}

TEST_F(CorpusTest, EncodesADocumentInPartsAsOneWhole) {
  std::string text;
  while (text.size() < 200'000) text += english_name(static_cast<std::int32_t>(text.size())) + "\n";
  const Corpus corpus({.kind = DataKind::text,
                       .source = scratch.write("text", text),
                       .validation_source = document,
                       .tokenizer = TokenizerKind::bpe,
                       .tokenizer_vocabulary = 60});
  EXPECT_EQ(corpus.facts().training, static_cast<std::int64_t>(corpus.tokenizer()->encode(text).size()));
}

TEST_F(CorpusTest, ChecksEveryTokenOfAFileBeforeTraining) {
  std::vector<std::int32_t> ids(5'000, 3);
  ids[4'900] = 70;
  write_token_file(scratch.folder() / "bad.bin", ids);
  EXPECT_TRUE(says(input_error([&] { Corpus({.kind = DataKind::tokens, .source = scratch.folder() / "bad.bin", .vocabulary = 64}); }),
                   {"bad.bin", "token 4900", "id 70", "vocabulary of 64"}));
}

TEST_F(CorpusTest, SaysWhatIsWrongWithFiles) {
  const auto opening = [](const CorpusConfig& config) { return input_error([&] { Corpus corpus(config); }); };
  EXPECT_TRUE(says(opening({.kind = DataKind::text, .source = scratch.write("empty", "")}), {"empty"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::text, .source = scratch.write("short", "abc")}), {"short", "1 tokens to train on", "2"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::text, .source = document, .validation_source = scratch.write("short", "a")}),
                   {"short", "1 tokens to validate on"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::text,
                            .source = scratch.write("latin1", "gr\xFC\xDF\n"),
                            .tokenizer = TokenizerKind::bpe,
                            .tokenizer_vocabulary = 100}),
                   {"latin1", "line 1", "byte 3", "UTF-8"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::parallel, .source = source, .target = scratch.write("few", "eins\n")}),
                   {"400 lines", "few", "has 1;"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::parallel, .source = scratch.write("s", "\n \n"), .target = scratch.write("t", "a\nb\n")}),
                   {"no line with text"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::parallel, .source = scratch.write("s", "a\na\n"), .target = scratch.write("t", "b\nb\n")}),
                   {"one pair alone"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::parallel,
                            .source = source,
                            .target = scratch.write("t", std::string(399, '\n') + "\xFF\n"),
                            .tokenizer = TokenizerKind::bpe,
                            .tokenizer_vocabulary = 100}),
                   {"line 400", "UTF-8"}));
  write_token_file(scratch.folder() / "three.bin", std::vector<std::int32_t>{1, 2, 3});
  EXPECT_TRUE(says(opening({.kind = DataKind::tokens, .source = scratch.folder() / "three.bin", .vocabulary = 9}),
                   {"three.bin", "1 tokens to train on"}));
}

TEST_F(CorpusTest, SaysWhatIsWrongWithSettings) {
  const auto opening = [](const CorpusConfig& config) { return input_error([&] { Corpus corpus(config); }); };
  EXPECT_TRUE(says(opening({.kind = DataKind::text}), {"\"text\"", "data.source"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::tokens}), {"\"tokens\"", "data.source"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::tokens, .source = tokens}), {"model.vocabulary"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::parallel, .source = source}), {"data.target"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::parallel, .source = source, .target = target, .validation_source = source}),
                   {"validation_target", "both"}));
  EXPECT_TRUE(says(opening({.kind = DataKind::text, .source = document, .vocabulary = 200}), {"model.vocabulary = 200", "260"}));
  const auto streaming = [](const CorpusConfig& config, const BatchShape& shape) {
    const Corpus corpus(config);
    return input_error([&] { corpus.training(shape); });
  };
  EXPECT_TRUE(says(streaming({.kind = DataKind::text, .source = document}, kPairs), {"\"text\"", "decoder_only"}));
  EXPECT_TRUE(
      says(streaming({.kind = DataKind::parallel, .source = source, .target = target}, kStream), {"\"parallel\"", "encoder_decoder"}));
}

}  // namespace
}  // namespace tilewave
