// Text files to token files: the same tokens whatever the threads and wherever parts are cut, and all files or none.
#include "framework/data/token_shards.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "framework/data/token_file.h"
#include "framework/io/file.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

fs::path tokenizer_file(const std::string& name) { return test_environment().data / "fixtures" / "tokenizers" / name; }

// Lines of the stored hard texts, and plain ones between them, at least so many bytes.
std::string hard_lines(std::size_t bytes, unsigned seed) {
  std::vector<std::string> lines = {"plain words", "it's code;", "  and space  ", "", "\t", "12 of 345", "end.\r"};
  std::istringstream rows(file_text(tokenizer_file("gpt2.jsonl")));
  for (std::string row; std::getline(rows, row);) lines.push_back(nlohmann::json::parse(row).at("text"));
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) text += lines[random() % lines.size()] + "\n";
  return text;
}

Ids tokens_of_files(const std::vector<fs::path>& files) {
  Ids ids;
  for (const fs::path& path : files) {
    const TokenFile file(path, 1 << 24);
    const std::size_t before = ids.size();
    ids.resize(before + static_cast<std::size_t>(file.size()));
    file.read(0, std::span(ids).subspan(before));
  }
  return ids;
}

TEST(TokenShards, PartsHaveTheIdsOfTheWhole) {
  for (const char* family : {"gpt2", "gpt2_prefix", "llama3", "qwen2", "o200k", "several"}) {
    const TextEncoder encoder(tokenizer_file(std::string(family) + ".json").string());
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::string text = hard_lines(3000, seed);
      Ids ids;
      int parts = 0;
      for (std::string_view rest = text; !rest.empty(); ++parts) {
        const std::string_view part = encoder.first_part(rest, 1 + 37 * seed);
        ASSERT_FALSE(part.empty());
        const Ids of_part = encoder.encode(part);
        ids.insert(ids.end(), of_part.begin(), of_part.end());
        rest.remove_prefix(part.size());
      }
      ASSERT_EQ(ids, encoder.encode(text)) << family << " " << seed;
      if (std::string(family) == "gpt2" || std::string(family) == "qwen2") {
        EXPECT_GT(parts, 1) << family;
      }
    }
  }
}

TEST(TokenShards, AnyThreadsAndAnyFileSize) {
  const TemporaryFolder folder;
  const std::string one = hard_lines(1'500'000, 1), two = hard_lines(10'000, 2);
  write_text(folder.path() / "one.txt", one);
  write_text(folder.path() / "two.txt", two);
  const TextEncoder encoder(tokenizer_file("qwen2.json").string());
  const Ids before = {7}, behind = {8, 9};
  Ids expected;
  for (const std::string& text : {one, two}) {
    const Ids ids = encoder.encode(text);
    expected.insert(expected.end(), before.begin(), before.end());
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.insert(expected.end(), behind.begin(), behind.end());
  }
  for (const int threads : {1, 3}) {
    std::int64_t told = 0;
    ShardOptions options{.files = {folder.path() / "one.txt", folder.path() / "two.txt"},
                         .folder = folder.path() / "deep" / concat("out", threads),
                         .name = "train",
                         .shard_tokens = 100'003,
                         .threads = threads,
                         .before = before,
                         .behind = behind};
    options.progress = [&](const ShardProgress& progress) {
      EXPECT_GT(progress.bytes_done, told);
      EXPECT_LE(progress.bytes_done, progress.bytes);
      told = progress.bytes_done;
    };
    const ShardReport report = write_token_shards(encoder, options);
    EXPECT_EQ(told, static_cast<std::int64_t>(one.size() + two.size()));
    EXPECT_EQ(report.documents, 2);
    EXPECT_EQ(report.tokens, std::ssize(expected));
    ASSERT_EQ(std::ssize(report.files), (std::ssize(expected) + 100'002) / 100'003);
    EXPECT_EQ(report.files[1].filename(), "train_000001.bin");
    EXPECT_EQ(tokens_of_files(report.files), expected);
    EXPECT_EQ(tokens_of_files({report.files[0]}).size(), 100'003u);
    EXPECT_EQ(fs::file_size(report.files[0]), 1024u + 2 * 100'003) << "two bytes for each id of a small vocabulary";
    EXPECT_EQ(names_in(options.folder).size(), report.files.size()) << "nothing else is left";
    EXPECT_EQ(names_in(options.folder.parent_path()).size(), static_cast<std::size_t>(threads == 1 ? 1 : 2));
  }
}

TEST(TokenShards, AllFilesOrNone) {
  const TemporaryFolder folder;
  write_text(folder.path() / "good.txt", "good\n");
  write_text(folder.path() / "bad.txt", "one\ntwo \xFF\n");
  const TextEncoder encoder(tokenizer_file("gpt2.json").string());
  ShardOptions options{
      .files = {folder.path() / "good.txt", folder.path() / "bad.txt"}, .folder = folder.path() / "out", .shard_tokens = 1};
  try {
    write_token_shards(encoder, options);
    ADD_FAILURE() << "what is no UTF-8 was taken";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("bad.txt, line 2: not UTF-8"), std::string::npos) << error.what();
  }
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"bad.txt", "good.txt"}));

  options.files = {folder.path() / "good.txt"};
  options.interrupted = [] { return true; };
  EXPECT_TRUE(write_token_shards(encoder, options).interrupted);
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"bad.txt", "good.txt"}));

  options.interrupted = [] { return false; };
  EXPECT_EQ(write_token_shards(encoder, options).tokens, std::ssize(encoder.encode("good\n")));
  EXPECT_THROW(write_token_shards(encoder, options), InputError) << "the folder holds something now";
}

TEST(TextEncoder, NamesOfTokenizers) {
  const TextEncoder bytes("bytes");
  EXPECT_EQ(bytes.vocabulary(), 260);
  EXPECT_EQ(bytes.decode(bytes.encode("a\xFF")), "a\xFF");
  const TemporaryFolder folder;
  fs::copy_file(tokenizer_file("llama3.json"), folder.path() / "tokenizer.json");
  const TextEncoder in_a_folder(folder.path().string());
  EXPECT_EQ(in_a_folder.before().size(), 1u);
  EXPECT_EQ(in_a_folder.find("<|begin|>"), in_a_folder.before().front());
  EXPECT_THROW(TextEncoder((folder.path() / "absent.json").string()), InputError);
  write_text(folder.path() / "empty" / "x", "x");
  EXPECT_THROW(TextEncoder((folder.path() / "empty").string()), InputError);
  EXPECT_THROW(TextEncoder((folder.path() / "empty" / "x").string()), InputError);
}

TEST(TokenFile, AVocabularyDecidesHowWideIdsAre) {
  const TemporaryFolder folder;
  write_token_file(folder.path() / "wide.bin", Ids{1, 2, 3}, 65537);
  write_token_file(folder.path() / "narrow.bin", Ids{1, 2, 3}, 65536);
  EXPECT_EQ(fs::file_size(folder.path() / "wide.bin"), 1024u + 12);
  EXPECT_EQ(fs::file_size(folder.path() / "narrow.bin"), 1024u + 6);
}

}  // namespace
}  // namespace tilewave
