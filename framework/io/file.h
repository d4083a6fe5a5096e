// Files that survive: what a person brought is read within a stated bound; what tilewave writes is either wholly there after a
// stop at any moment, or not there at all. Every failure is a sentence: the path, what failed, the system's reason, what to try.
// Reading throws InputError, writing throws Error. Calls interrupted by a signal are taken up again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewave {

// For sentences: control characters and bytes that are no UTF-8 escaped, text beyond 120 bytes cut off.
std::string printable(std::string_view text);

// "PATH: cannot ACTION: REASON; REMEDY", for the value of errno.
std::string system_sentence(const std::filesystem::path& path, std::string_view action, int error);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();

  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

// Through the seam, closed on exec; flags as in open(2). Error, "PATH: cannot ACTION: ...".
Descriptor open_path(const std::filesystem::path& path, std::string_view action, int flags);

// The name under which a file was opened, to be asked later whether it still stands for that file, which must stay open: no longer once
// the file, or a folder above it, was removed, renamed or replaced. Where a file system gives one file several numbers, being there is
// enough.
class OpenedName {
 public:
  OpenedName() = default;
  OpenedName(std::filesystem::path path, const Descriptor& opened);

  bool in_place() const;

 private:
  std::filesystem::path path_;
  std::uint64_t device_ = 0, file_ = 0;
  bool compared_ = false;
};

// A regular file opened for reading.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }                    // when it was opened
  void read(std::int64_t offset, std::span<std::byte> out) const;  // all of out, or InputError

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::int64_t bytes_ = 0;
};

// The whole of a file or pipe; one longer than most_bytes is refused before memory is taken for it.
std::string read_file(const std::filesystem::path& path, std::int64_t most_bytes);

struct FileDigest {
  std::int64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const FileDigest&) const = default;
};

FileDigest digest_file(const std::filesystem::path& path);

// A new file, written through a buffer. It is whole on the disk once finish() has returned; before that it belongs to whoever
// made its path, who removes it after a failure.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);  // must not exist yet
  OutputFile(std::filesystem::path path, Descriptor descriptor);

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  FileDigest finish();  // flush, fsync, close

 private:
  void flush();
  void write_through(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  Descriptor descriptor_;
  std::vector<std::byte> buffer_;
  FileDigest digest_;
};

// Replaces path by what fill writes: a hidden temporary file beside it, fsync, rename, fsync of the folder. Until the rename the
// former file stays; a symbolic link is followed; anything but a regular file is refused. Temporary files of the same path that
// killed processes left go first: those that no process holds a lock on.
FileDigest write_file_atomically(const std::filesystem::path& path, const std::function<void(OutputFile&)>& fill);
FileDigest write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Whether a temporary file of write_file_atomically is there that an end of the process would leave behind. May be asked in a signal
// handler.
bool writes_under_way() noexcept;

// Whether work can begin whose result goes to a file, or into a folder that is made where there is none: InputError, "OPTION PATH: ...",
// where the file's folder is not there or something else has its name.
void check_output_file(std::string_view option, const std::filesystem::path& path);
void check_output_folder(std::string_view option, const std::filesystem::path& path);

// False where it cannot be looked at, too.
bool is_there(const std::filesystem::path& path);

// Folders. What is already as asked is no error.
void make_folders(const std::filesystem::path& path);  // with the missing ones above it, each fsynced into its parent
void make_folder(const std::filesystem::path& path);   // in a folder that is there, fsynced into it
void sync_folder(const std::filesystem::path& path);   // its entries reach the disk
void remove_file(const std::filesystem::path& path);   // absent is fine
void remove_folder_if_empty(const std::filesystem::path& path);
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
void remove_stale_temporaries(const std::filesystem::path& folder);  // those of write_file_atomically, left by a killed process

// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace tilewave
