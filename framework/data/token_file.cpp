#include "framework/data/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <glob.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "framework/io/file.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie, in little-endian order");

struct Format {
  std::int32_t magic, version;
  std::int64_t id_bytes;
};
constexpr Format kUint16{20240520, 1, 2}, kUint32{20240801, 7, 4};
using Header = std::array<std::int32_t, kTokenFileHeaderBytes / 4>;

// Bytes that came: fewer than asked for only at the file's end.
std::int64_t read_at(int file, std::int64_t offset, std::span<std::byte> bytes, const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(file, bytes.data() + done, bytes.size() - done, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    TW_CHECK_INPUT(got >= 0, path, " cannot be read at byte ", offset + static_cast<std::int64_t>(done), ": ", std::strerror(errno), ".");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<std::int64_t>(done);
}

template <class Id>
void widen(std::span<const std::byte> bytes, std::span<std::uint32_t> ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Id id;
    std::memcpy(&id, bytes.data() + i * sizeof(Id), sizeof(Id));
    ids[i] = id;
  }
}

template <class Id>
void write_ids(OutputFile& file, std::span<const std::int32_t> ids) {
  const std::vector<Id> narrow(ids.begin(), ids.end());
  file.write(std::as_bytes(std::span(narrow)));
}

}  // namespace

TokenFile::Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

TokenFile::TokenFile(std::filesystem::path path, std::int64_t vocabulary)
    : path_(std::move(path)), vocabulary_(vocabulary), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  TW_CHECK_INPUT(file_.number >= 0, path_, " cannot be opened: ", std::strerror(errno),
                 errno == EMFILE ? "; raise the limit with ulimit -n." : "; name a token file (.bin).");
  struct stat status = {};
  TW_CHECK_INPUT(::fstat(file_.number, &status) == 0 && S_ISREG(status.st_mode), path_,
                 " is not a regular file; name a token file (.bin).");

  Header header = {};
  const std::int64_t got = read_at(file_.number, 0, std::as_writable_bytes(std::span(header)), path_);
  TW_CHECK_INPUT(got == kTokenFileHeaderBytes, path_, " has ", got, " bytes, fewer than a token file's header of ", kTokenFileHeaderBytes,
                 ".");
  const auto [magic, version, tokens] = std::array{header[0], header[1], header[2]};
  TW_CHECK_INPUT(magic == kUint16.magic || magic == kUint32.magic, path_, " is not a token file: it starts with ", magic, ", not with ",
                 kUint16.magic, " (uint16 ids) or ", kUint32.magic,
                 " (uint32 ids); write the header of docs/use/formats.md before the ids.");
  const Format& format = magic == kUint16.magic ? kUint16 : kUint32;
  TW_CHECK_INPUT(version == format.version, path_, " is a token file of version ", version, "; of magic ", magic, " only version ",
                 format.version, " can be read.");
  TW_CHECK_INPUT(tokens > 0, path_, " says that it holds ", tokens, " tokens; at least one is needed.");
  size_ = tokens;
  id_bytes_ = format.id_bytes;
  const std::int64_t expected = kTokenFileHeaderBytes + size_ * id_bytes_;
  TW_CHECK_INPUT(status.st_size == expected, path_, " has ", status.st_size, " bytes, but its header says ", size_, " tokens, which take ",
                 expected, (status.st_size < expected ? "; the file is truncated." : "; something was appended."));
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> ids) const {
  TW_CHECK(first >= 0 && first + static_cast<std::int64_t>(ids.size()) <= size_, "tokens ", first, " to ",
           first + static_cast<std::int64_t>(ids.size()), " were asked of ", path_, ", which has ", size_, ".");
  constexpr std::size_t chunk_ids = 1 << 13;
  std::array<std::byte, chunk_ids * 4> bytes;
  std::array<std::uint32_t, chunk_ids> wide;
  while (!ids.empty()) {
    const std::size_t count = std::min(ids.size(), chunk_ids);
    const std::span chunk = std::span(bytes).first(count * static_cast<std::size_t>(id_bytes_));
    const std::int64_t got = read_at(file_.number, kTokenFileHeaderBytes + first * id_bytes_, chunk, path_);
    TW_CHECK_INPUT(got == static_cast<std::int64_t>(chunk.size()), path_, " ended at token ", first + got / id_bytes_,
                   ": it was cut short while it was read.");
    id_bytes_ == 2 ? widen<std::uint16_t>(chunk, std::span(wide).first(count)) : widen<std::uint32_t>(chunk, std::span(wide).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      TW_CHECK_INPUT(wide[i] < vocabulary_, path_, ": token ", first + static_cast<std::int64_t>(i), " has id ", wide[i],
                     ", beyond the vocabulary of ", vocabulary_, "; raise model.vocabulary, or take the file that belongs to it.");
      ids[i] = static_cast<std::int32_t>(wide[i]);
    }
    ids = ids.subspan(count);
    first += static_cast<std::int64_t>(count);
  }
}

std::vector<std::filesystem::path> files_named(const std::filesystem::path& name) {
  std::error_code ignored;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(name, ignored)) {
    glob_t found = {};
    if (::glob(name.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    std::sort(files.begin(), files.end());
  }
  if (files.empty()) files.push_back(name);
  return files;
}

TokenFiles::TokenFiles(const std::filesystem::path& name, std::int64_t vocabulary) {
  std::int64_t end = 0;
  for (const std::filesystem::path& file : files_named(name)) {
    files_.push_back(std::make_unique<const TokenFile>(file, vocabulary));
    ends_.push_back(end += files_.back()->size());
  }
}

void TokenFiles::read(std::int64_t first, std::span<std::int32_t> ids) const {
  TW_CHECK(first >= 0 && first + std::ssize(ids) <= size(), "tokens ", first, " to ", first + std::ssize(ids), " were asked of ", size(),
           ".");
  for (auto file = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin()); !ids.empty(); ++file) {
    const std::int64_t count = std::min(std::ssize(ids), ends_[file] - first);
    files_[file]->read(first - (ends_[file] - files_[file]->size()), ids.first(static_cast<std::size_t>(count)));
    ids = ids.subspan(static_cast<std::size_t>(count));
    first += count;
  }
}

void write_token_file(const std::filesystem::path& path, std::span<const std::int32_t> ids, std::int64_t vocabulary) {
  TW_CHECK(!ids.empty() && ids.size() <= std::numeric_limits<std::int32_t>::max(), "a token file holds 1 to 2^31 - 1 tokens, not ",
           ids.size(), ".");
  TW_CHECK(*std::min_element(ids.begin(), ids.end()) >= 0, "a token file holds no negative ids.");
  const std::int64_t largest = std::max<std::int64_t>(*std::max_element(ids.begin(), ids.end()), vocabulary - 1);
  const Format& format = largest <= std::numeric_limits<std::uint16_t>::max() ? kUint16 : kUint32;
  Header header = {format.magic, format.version, static_cast<std::int32_t>(ids.size())};

  write_file_atomically(path, [&](OutputFile& file) {
    file.write(std::as_bytes(std::span(header)));
    format.id_bytes == 2 ? write_ids<std::uint16_t>(file, ids) : write_ids<std::uint32_t>(file, ids);
  });
}

}  // namespace tilewave
