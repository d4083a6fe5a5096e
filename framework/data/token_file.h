// Token files (.bin) as llm.c writes them: 256 little-endian int32 {magic, version, tokens, 0 ...}, then the ids.
//   magic 20240520, version 1: uint16 ids (GPT-2)        magic 20240801, version 7: uint32 ids (Llama 3)
// Reading is positioned and 64-bit; every id that is read is checked against the vocabulary. What is wrong with a file is an
// InputError that names it, the position and what stands there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace tilewave {

inline constexpr std::int64_t kTokenFileHeaderBytes = 1024;

class TokenFile {
 public:
  // Ids must lie below `vocabulary`.
  TokenFile(std::filesystem::path path, std::int64_t vocabulary);

  std::int64_t size() const { return size_; }  // tokens
  void read(std::int64_t first, std::span<std::int32_t> ids) const;

 private:
  struct Descriptor {
    explicit Descriptor(int opened) : number(opened) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number;
  };

  std::filesystem::path path_;
  std::int64_t vocabulary_;
  Descriptor file_;
  std::int64_t size_ = 0;
  std::int64_t id_bytes_ = 0;
};

// The files that a name stands for: the one of that name, else those that match it as a shell's pattern ("train_*.bin"), in the order of
// their names; {name} where there are none.
std::vector<std::filesystem::path> files_named(const std::filesystem::path& name);

// One stream of tokens that may lie in several files (shards), one behind the other.
class TokenFiles {
 public:
  TokenFiles(const std::filesystem::path& name, std::int64_t vocabulary);

  std::int64_t size() const { return ends_.back(); }
  void read(std::int64_t first, std::span<std::int32_t> ids) const;

 private:
  std::vector<std::unique_ptr<const TokenFile>> files_;
  std::vector<std::int64_t> ends_;  // of each file's tokens in the stream
};

// uint16 ids where all of them fit, else uint32 ones; of a vocabulary that is named, where all of its ids would. Atomically.
void write_token_file(const std::filesystem::path& path, std::span<const std::int32_t> ids, std::int64_t vocabulary = 0);

}  // namespace tilewave
