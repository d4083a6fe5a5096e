// Token files (.bin) as llm.c writes them: 256 little-endian int32 {magic, version, tokens, 0 ...}, then the ids.
//   magic 20240520, version 1: uint16 ids (GPT-2)        magic 20240801, version 7: uint32 ids (Llama 3)
// Reading is positioned and 64-bit; every id that is read is checked against the vocabulary. What is wrong with a file is an
// InputError that names it, the position and what stands there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

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

// uint16 ids where all of them fit, else uint32 ones. Written beside the destination, then renamed.
void write_token_file(const std::filesystem::path& path, std::span<const std::int32_t> ids);

}  // namespace tilewave
