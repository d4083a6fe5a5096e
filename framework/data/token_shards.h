// Text files become token files (framework/data/token_file.h): each file is a document, documents lie one behind the other, and a token
// file is full before the next one begins. All of them are there at the end, or none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/text_encoder.h"

namespace tilewave {

struct ShardProgress {
  std::int64_t bytes_done = 0, bytes = 0, tokens = 0;
};

struct ShardOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path folder;  // is made; InputError where it is there and holds anything
  std::string name = "tokens";   // of the token files: NAME_000000.bin
  std::int64_t shard_tokens = 100'000'000;
  int threads = 0;                           // 0: all
  std::vector<std::int32_t> before, behind;  // ids around each document
  std::function<void(const ShardProgress&)> progress = [](const ShardProgress&) {};
  std::function<bool()> interrupted = [] { return false; };
};

struct ShardReport {
  std::vector<std::filesystem::path> files;
  std::int64_t documents = 0, bytes = 0, tokens = 0;
  bool interrupted = false;  // then no file was made
};

// Threads change nothing but the time it takes. One document is in memory at a time, and the tokens of one token file.
ShardReport write_token_shards(const TextEncoder& encoder, const ShardOptions& options);

}  // namespace tilewave
