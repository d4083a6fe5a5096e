#include "framework/data/token_shards.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

#include "framework/data/host_threads.h"
#include "framework/data/token_file.h"
#include "framework/io/file.h"
#include "framework/io/text_file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPartBytes = 1 << 18;
constexpr std::size_t kPartsOfAThread = 4;  // encoded before what has come is written

// Beside the folder that is to come, whose name it takes at the end; gone with what it holds where that end does not come.
class FolderToBe {
 public:
  explicit FolderToBe(fs::path path) : path_(std::move(path)) {
    if (!path_.has_filename()) path_ = path_.parent_path();
    TW_CHECK_INPUT(names_in(path_).empty(), path_.string(), " is there already and holds something; name a folder that is new or empty.");
    const fs::path parent = fs::absolute(path_).parent_path();
    make_folders(parent);
    temporary_ = parent / concat(".", path_.filename().string(), ".tilewave-", ::getpid());
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
    make_folder(temporary_);
  }
  ~FolderToBe() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  FolderToBe(const FolderToBe&) = delete;
  FolderToBe& operator=(const FolderToBe&) = delete;

  const fs::path& temporary() const { return temporary_; }
  const fs::path& path() const { return path_; }
  void finish() {
    rename_path(temporary_, path_);
    temporary_.clear();
    sync_folder(fs::absolute(path_).parent_path());
  }

 private:
  fs::path path_, temporary_;
};

std::string shard_name(const std::string& name, std::size_t number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "_%06zu.bin", number);
  return name + digits;
}

// The ids of texts, each encoded by one of several threads.
std::vector<std::vector<std::int32_t>> encode_all(const TextEncoder& encoder, const std::vector<std::string_view>& texts,
                                                  std::size_t threads) {
  std::vector<std::vector<std::int32_t>> ids(texts.size());
  share_out(std::ssize(texts), static_cast<std::int64_t>(threads), [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    ids[i] = encoder.encode(texts[i]);
  });
  return ids;
}

class ShardWriter {
 public:
  ShardWriter(const TextEncoder& encoder, const ShardOptions& options, const fs::path& folder)
      : encoder_(encoder), options_(options), folder_(folder) {}

  void add(std::span<const std::int32_t> ids) {
    while (!ids.empty()) {
      const auto room = static_cast<std::size_t>(options_.shard_tokens) - pending_.size();
      const std::span<const std::int32_t> fitting = ids.first(std::min(room, ids.size()));
      pending_.insert(pending_.end(), fitting.begin(), fitting.end());
      ids = ids.subspan(fitting.size());
      tokens_ += std::ssize(fitting);
      if (std::ssize(pending_) == options_.shard_tokens) write();
    }
  }
  void finish() {
    if (!pending_.empty()) write();
  }
  std::int64_t tokens() const { return tokens_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void write() {
    names_.push_back(shard_name(options_.name, names_.size()));
    write_token_file(folder_ / names_.back(), pending_, encoder_.vocabulary());
    pending_.clear();
  }

  const TextEncoder& encoder_;
  const ShardOptions& options_;
  const fs::path& folder_;
  std::vector<std::int32_t> pending_;
  std::vector<std::string> names_;
  std::int64_t tokens_ = 0;
};

void check_shards(const ShardOptions& options) {
  TW_CHECK(options.shard_tokens >= 1 && options.shard_tokens < (std::int64_t{1} << 31), "a token file holds 1 to 2^31 - 1 tokens, not ",
           options.shard_tokens, ".");
  TW_CHECK_INPUT(!options.name.empty() && options.name.find('/') == std::string::npos && !options.name.starts_with('.'),
                 "token files cannot be named \"", printable(options.name), "\"; take a word such as train.");
}

}  // namespace

ShardReport write_token_shards(const TextEncoder& encoder, const ShardOptions& options) {
  check_shards(options);
  ShardReport report;
  ShardProgress progress;
  for (const fs::path& file : options.files) progress.bytes += InputFile(file).bytes();
  FolderToBe folder(options.folder);
  ShardWriter writer(encoder, options, folder.temporary());
  const auto threads = static_cast<std::size_t>(options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency()));
  for (const fs::path& file : options.files) {
    const std::string text = encoder.prepared(read_text(file));
    writer.add(options.before);
    std::string_view rest = text;
    while (!rest.empty()) {
      if (options.interrupted()) return {.files = {}, .interrupted = true};
      std::vector<std::string_view> parts;
      while (!rest.empty() && parts.size() < threads * kPartsOfAThread) {
        parts.push_back(encoder.first_part(rest, kPartBytes));
        rest.remove_prefix(parts.back().size());
      }
      try {
        for (const std::vector<std::int32_t>& ids : encode_all(encoder, parts, threads)) writer.add(ids);
      } catch (const InputError&) {
        const std::optional<std::size_t> at = find_invalid_utf8(text);
        TW_CHECK_INPUT(!at, file.string(), ", line ", 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*at), '\n'),
                       ": not UTF-8, which this tokenizer needs; convert the file, or tokenize it by bytes.");
        throw;
      }
      progress.bytes_done = report.bytes + static_cast<std::int64_t>(text.size() - rest.size());
      progress.tokens = writer.tokens();
      options.progress(progress);
    }
    writer.add(options.behind);
    report.bytes += std::ssize(text);
    ++report.documents;
  }
  writer.finish();
  report.tokens = writer.tokens();
  TW_CHECK_INPUT(report.tokens > 0, "the files hold no text that has ids; name others.");
  folder.finish();
  for (const std::string& name : writer.names()) report.files.push_back(folder.path() / name);
  return report;
}

}  // namespace tilewave
