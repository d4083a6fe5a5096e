// Tokenizers that were made elsewhere: a tokenizer.json, with or without a tokenizer_config.json, and SentencePiece models of any kind.
#include <algorithm>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <span>
#include <string>
#include <vector>

#include "framework/data/corpus.h"
#include "framework/data/streamed_text.h"
#include "framework/data/tokenizer.h"
#include "framework/data/tokenizer_config.h"
#include "tests/framework/data/scratch.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

constexpr const char* kLines = "The model learns what the lines say.\nÜber naïve 日本語 🙂 lines,\n\ttwo  spaces and\r\na tab.\n";

class OwnTokenizer : public testing::Test {
 protected:
  fs::path json(const std::string& name) const { return fs::absolute(test_environment().data) / "fixtures" / "tokenizers" / name; }
  // In a folder of its own, as a model's tokenizer lies.
  fs::path folder_with(const std::string& name, const std::string& config = {}) {
    const fs::path folder = scratch.folder() / concat("model", ++folders_);
    fs::create_directory(folder);
    std::string text = file_text(json(name));  // with its special token called as GPT-2's
    for (std::size_t at = 0; (at = text.find("<|eot|>", at)) != std::string::npos;) text.replace(at, 7, "<|endoftext|>");
    write_text(folder / "tokenizer.json", text);
    if (!config.empty()) write_text(folder / "tokenizer_config.json", config);
    return folder;
  }
  // What SentencePiece's own trainer makes by its defaults, with these flags beside.
  fs::path sentencepiece(const std::string& flags) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += concat("the model learns line ", i, " of ", i * 7, " words: naïve über 日本語\n");
    scratch.write("text.txt", text);
    const fs::path prefix = scratch.folder() / concat("own", ++folders_);
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        concat("--input=", (scratch.folder() / "text.txt").string(), " --model_prefix=", prefix.string(), " --minloglevel=3 ", flags));
    EXPECT_TRUE(status.ok()) << status.ToString();
    return prefix.string() + ".model";
  }

  Scratch scratch;

 private:
  int folders_ = 0;
};

TEST_F(OwnTokenizer, ATokenizerJsonEncodesAsByteLevelBpeDoes) {
  for (const char* name : {"gpt2.json", "llama3.json", "qwen2.json", "several.json"}) {
    const Tokenizer tokenizer = Tokenizer::load(json(name));
    const ByteLevelBpe bpe = ByteLevelBpe::load(json(name));
    EXPECT_EQ(tokenizer.kind(), TokenizerKind::byte_level_bpe);
    EXPECT_EQ(tokenizer.vocabulary(), bpe.vocabulary());
    const Ids ids = tokenizer.encode(kLines);
    EXPECT_EQ(ids, bpe.encode(kLines, SpecialIds::left_out));
    EXPECT_EQ(tokenizer.decode(ids), bpe.decode(ids, SpecialIds::left_out));
    EXPECT_FALSE(tokenizer.unknown());
    EXPECT_FALSE(tokenizer.has_own_special_ids());
    for (const std::int32_t id : ids) EXPECT_TRUE(tokenizer.may_be_drawn(id));
    EXPECT_FALSE(tokenizer.may_be_drawn(static_cast<std::int32_t>(tokenizer.vocabulary())));
  }
}

TEST_F(OwnTokenizer, WhatEndsATextIsTheConfigsOrTheUsualToken) {
  const Tokenizer usual = Tokenizer::load(folder_with("gpt2.json"));
  ASSERT_TRUE(usual.end());
  EXPECT_EQ(usual.piece(*usual.end()), "<|endoftext|>");
  EXPECT_EQ(usual.begin(), usual.end());
  EXPECT_EQ(usual.decode(Ids{*usual.end()}), "") << "the end is no text";
  const Tokenizer named = Tokenizer::load(folder_with("gpt2.json", R"({"eos_token": {"content": "!"}, "bos_token": "a", "x": [1]})"));
  EXPECT_EQ(named.end(), named.find("!"));
  EXPECT_EQ(named.begin(), named.find("a"));
  EXPECT_EQ(Tokenizer::load(folder_with("gpt2.json", R"({"eos_token": null})")).end(), std::nullopt);
  EXPECT_TRUE(says(input_error([&] { Tokenizer::load(folder_with("gpt2.json", R"({"eos_token": "<nowhere>"})")); }),
                   {"tokenizer_config.json", "<nowhere>", "tokenizer.json"}));
  EXPECT_TRUE(says(input_error([&] { Tokenizer::load(folder_with("gpt2.json", R"({"eos_token": 3})")); }), {"eos_token is no token"}));
  EXPECT_TRUE(says(input_error([&] { Tokenizer::load(folder_with("gpt2.json", "[]")); }), {"is no JSON object"}));
  EXPECT_EQ(Tokenizer::load(json("gpt2.json")).end(), std::nullopt) << "its special token is none of the usual ones";
  const Tokenizer llama = Tokenizer::load(json("llama3.json"));
  EXPECT_EQ(llama.before(), ByteLevelBpe::load(json("llama3.json")).before());
}

TEST_F(OwnTokenizer, AFolderKeepsBothFiles) {
  const Tokenizer tokenizer = Tokenizer::load(folder_with("gpt2.json", R"({"eos_token": "!"})"));
  const fs::path kept = scratch.folder() / "kept";
  fs::create_directory(kept);
  tokenizer.save_in(kept);
  EXPECT_EQ(file_text(kept / "tokenizer.json"), tokenizer.model());
  const Tokenizer again = Tokenizer::load(kept);
  EXPECT_EQ(again.end(), tokenizer.end());
  EXPECT_EQ(again.encode(kLines), tokenizer.encode(kLines));
  EXPECT_TRUE(says(input_error([&] { Tokenizer::load(scratch.folder()); }), {"holds neither a tokenizer.json nor a tokenizer.model"}));
}

TEST_F(OwnTokenizer, TheConfigThatIsWrittenIsReadBack) {
  const TokenizerConfig config = read_tokenizer_config(tokenizer_config_text({.begin = "<s>", .end = "</s>", .longest = 64}), "here");
  EXPECT_EQ(config.begin, "<s>");
  EXPECT_EQ(config.end, "</s>");
  EXPECT_NE(config.text.find("\"model_max_length\": 64"), std::string::npos) << config.text;
  const TokenizerConfig none = read_tokenizer_config(tokenizer_config_text({.begin = {}, .end = {}}), "here");
  EXPECT_FALSE(none.begin || none.end);
}

// SentencePiece's own defaults (unigram, normalized, other special ids), and Llama 2's family: bytes stand for what is unknown.
TEST_F(OwnTokenizer, ASentencePieceModelEncodesAsItsLibraryDoes) {
  for (const char* flags : {"--vocab_size=60",
                            "--vocab_size=380 --model_type=bpe --byte_fallback=true --normalization_rule_name=identity "
                            "--remove_extra_whitespaces=false --add_dummy_prefix=true"}) {
    const fs::path path = sentencepiece(flags);
    const Tokenizer tokenizer = Tokenizer::load(path);
    sentencepiece::SentencePieceProcessor processor;
    ASSERT_TRUE(processor.Load(path.string()).ok());
    EXPECT_EQ(tokenizer.kind(), TokenizerKind::bpe);
    EXPECT_EQ(tokenizer.vocabulary(), processor.GetPieceSize());
    EXPECT_FALSE(tokenizer.has_own_special_ids()) << flags;
    EXPECT_EQ(tokenizer.end(), processor.eos_id());
    EXPECT_EQ(tokenizer.begin(), processor.bos_id());
    EXPECT_EQ(tokenizer.unknown(), processor.unk_id());
    EXPECT_FALSE(tokenizer.may_be_drawn(processor.bos_id()));
    EXPECT_TRUE(tokenizer.may_be_drawn(processor.eos_id()));
    Ids ids;
    ASSERT_TRUE(processor.Encode("the naïve lines: 日本語", &ids).ok());
    EXPECT_EQ(tokenizer.encode("the naïve lines: 日本語"), ids);
    EXPECT_EQ(tokenizer.decode(ids), "the naïve lines: 日本語") << flags;
    EXPECT_EQ(tokenizer.learned(), file_text(path)) << "no mark of tilewave's is looked for";
  }
}

TEST_F(OwnTokenizer, BytesOfACharacterAreTextOnceItIsWhole) {
  const Tokenizer tokenizer =
      Tokenizer::load(sentencepiece("--vocab_size=380 --model_type=bpe --byte_fallback=true --normalization_rule_name=identity"));
  const std::string text = "the 🙂 line";
  const Ids ids = tokenizer.encode(text);
  EXPECT_GT(ids.size(), 6U) << "the face is in bytes";
  StreamedText streamed(tokenizer);
  std::string told;
  for (const std::int32_t id : ids) told += streamed.add(std::span(&id, 1));
  EXPECT_EQ(told + streamed.rest(), text);
  EXPECT_EQ(told.find("\xEF\xBF\xBD"), std::string::npos);
}

TEST_F(OwnTokenizer, ACorpusOfTextTakesIt) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += concat("line ", i, " of a document\n");
  const fs::path document = scratch.write("document.txt", text);
  for (const char* name : {"gpt2.json", "llama3.json"}) {
    const Tokenizer tokenizer = Tokenizer::load(json(name));
    const Corpus corpus({.kind = DataKind::text, .source = document, .validation_source = document, .vocabulary = 5000, .seed = 1},
                        tokenizer);
    const Ids whole = tokenizer.encode(text);
    EXPECT_EQ(corpus.facts().training, std::ssize(whole) + std::ssize(tokenizer.before())) << "what the file puts before a text counts";
    const Corpus other({.kind = DataKind::text, .source = document, .validation_source = document, .tokenizer = TokenizerKind::bytes});
    EXPECT_NE(corpus.fingerprint(), other.fingerprint());
    EXPECT_TRUE(says(input_error([&] { Corpus({.kind = DataKind::text, .source = document, .vocabulary = 30}, tokenizer); }),
                     {"model.vocabulary = 30 is smaller than the tokenizer's"}));
  }
}

constexpr const char* kFramedPairs[][2] = {
    {"the model", "das Modell"}, {"naïve lines 日本語", "naive Zeilen 🙂"}, {"two  spaces", "zwei"}};

// Where a target begins and ends is the tokenizer's to say; sources are as they are.
TEST_F(OwnTokenizer, PairsAreFramedByItsIds) {
  std::string sources, targets;
  for (const auto& [source, target] : kFramedPairs) {
    sources += concat(source, '\n');
    targets += concat(target, '\n');
  }
  const fs::path source = scratch.write("a.txt", sources), target = scratch.write("b.txt", targets);
  const auto corpus_of = [&](const Tokenizer& tokenizer) {
    return Corpus({.kind = DataKind::parallel,
                   .source = source,
                   .target = target,
                   .validation_source = source,
                   .validation_target = target,
                   .seed = 1},
                  tokenizer);
  };
  const fs::path own = folder_with("gpt2.json"), named = folder_with("gpt2.json", R"({"bos_token": "Q", "eos_token": "!"})");
  const fs::path llama = folder_with("llama3.json", R"({"eos_token": "<|endoftext|>"})");
  const fs::path unigram = sentencepiece("--vocab_size=60"), without_begin = sentencepiece("--vocab_size=60 --bos_id=-1");
  std::vector<std::uint64_t> fingerprints;
  for (const fs::path& path : {own, named, llama, unigram, without_begin}) {
    const Tokenizer tokenizer = Tokenizer::load(path);
    ASSERT_TRUE(tokenizer.frame()) << path;
    const auto [begin, end] = *tokenizer.frame();
    EXPECT_EQ(end, tokenizer.end()) << path;
    EXPECT_EQ(begin, tokenizer.begin().value_or(end)) << path;
    const Corpus corpus = corpus_of(tokenizer);
    fingerprints.push_back(corpus.fingerprint());
    EXPECT_TRUE(corpus.notes().empty() || corpus.notes().front().find("unknown") != std::string::npos) << corpus.notes().front();
    const Batch batch = *corpus.validation({.source_rows = 200, .target_rows = 200, .sequence = 60}).next();
    Ids read, in, out;
    for (const auto& [from, to] : kFramedPairs) {
      const Ids ids = tokenizer.encode(from), said = tokenizer.encode(to);
      read.insert(read.end(), ids.begin(), ids.end());
      in.push_back(begin);
      in.insert(in.end(), said.begin(), said.end());
      out.insert(out.end(), said.begin(), said.end());
      out.push_back(end);
    }
    EXPECT_TRUE(std::ranges::equal(read, std::span(batch.source_ids).first(read.size()))) << path;
    EXPECT_TRUE(std::ranges::equal(in, std::span(batch.target_in).first(in.size()))) << path;
    EXPECT_TRUE(std::ranges::equal(out, std::span(batch.target_out).first(out.size()))) << path;
    EXPECT_EQ(batch.real_tokens, std::ssize(out)) << path;
  }
  EXPECT_EQ(Tokenizer::load(own).frame()->begin, Tokenizer::load(own).frame()->end) << "GPT-2's family has one token for both";
  EXPECT_NE(Tokenizer::load(llama).frame()->begin, Tokenizer::load(llama).frame()->end) << "its template begins a text";
  EXPECT_NE(fingerprints[0], fingerprints[1]) << "of one tokenizer.json, framed otherwise";
  EXPECT_EQ(Tokenizer().frame(), PairFrame{}) << "bytes are framed as ever";
  const std::string json_error = input_error([&] { corpus_of(Tokenizer::load(json("gpt2.json"))); });
  EXPECT_TRUE(says(json_error, {"no token that ends a text", "data.kind = \"parallel\"", "eos_token", "\"bpe\""}));
  const std::string model_error = input_error([&] { corpus_of(Tokenizer::load(sentencepiece("--vocab_size=60 --eos_id=-1"))); });
  EXPECT_TRUE(says(model_error, {"no token that ends a text", "eos_id", "\"bpe\""}));
  EXPECT_NO_THROW(Corpus({.kind = DataKind::number_names, .vocabulary = 5000, .seed = 1}, Tokenizer::load(own)));
}

// An end within a target would end it: a sentence is read without.
TEST_F(OwnTokenizer, ASentenceThatSpellsTheEndLosesIt) {
  const Tokenizer tokenizer = Tokenizer::load(folder_with("gpt2.json"));
  const std::string spelled = "one<|endoftext|>two";
  ASSERT_EQ(std::ranges::count(tokenizer.encode(spelled), *tokenizer.end()), 1);
  const Ids ids = tokenizer.encode_sentence(spelled);
  EXPECT_EQ(std::ranges::count(ids, *tokenizer.end()), 0);
  EXPECT_EQ(tokenizer.decode(ids), "onetwo");
  const fs::path source = scratch.write("a.txt", "one\ntwo\n"), target = scratch.write("b.txt", spelled + "\ndrei\n");
  const Corpus corpus(
      {.kind = DataKind::parallel, .source = source, .target = target, .validation_source = source, .validation_target = source},
      tokenizer);
  ASSERT_EQ(corpus.notes().size(), 1U);
  EXPECT_NE(corpus.notes().front().find("1 sentence spells a token"), std::string::npos) << corpus.notes().front();
  const Batch batch = *corpus.training({.source_rows = 90, .target_rows = 90, .sequence = 45}).next();
  EXPECT_EQ(std::ranges::count(batch.target_out, *tokenizer.end()), std::ssize(batch.target_lengths)) << "one at the end of each";
}

}  // namespace
}  // namespace tilewave
