// Files that survive: each system call with its sentence, and the order of calls that makes a write durable.
#include "framework/io/file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/io/checksum.h"
#include "framework/io/system_calls.h"
#include "framework/io/utf8.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::string_view kTemporaryInfix = ".partial-";

std::string_view remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space there or choose another folder";
    case EACCES:
    case EPERM:
      return "change the permissions of the file and its folder, or choose another folder";
    case EROFS:
      return "choose a folder that can be written";
    case EIO:
      return "the disk may be failing: choose another one and keep a copy of what is there";
    case ENOENT:
      return "check the path";
    case EISDIR:
      return "name a file, not a folder";
    case ENOTDIR:
      return "a part of the path is a file, not a folder: check the path";
    case ENAMETOOLONG:
      return "choose a shorter name";
    case EFBIG:
      return "raise the limit of the size of files (ulimit -f) or choose another disk";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENOTEMPTY:
    case EEXIST:
      return "move what is there out of the way";
    default:
      return "check the path and the disk";
  }
}

[[noreturn]] void fail_to_read(const fs::path& path, std::string_view action, int error) {
  throw InputError(system_sentence(path, action, error));
}

// The result of a system call that is taken up again after a signal; -1 is an Error.
template <class Call>
auto checked(const fs::path& path, std::string_view action, Call&& call) {
  for (;;) {
    const auto result = call();
    if (result != -1) return result;
    if (errno != EINTR) throw Error(system_sentence(path, action, errno));
  }
}

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

std::atomic<int> temporaries{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler asks how many temporary files there are.");

// Removes a temporary file that never became what it was to be; a failure to do so must not hide the failure before it.
struct RemoveUnlessReleased {
  fs::path path;
  ~RemoveUnlessReleased() {
    if (!path.empty()) system_calls().unlink(path.c_str());
  }
};
struct CountedTemporary {
  CountedTemporary() { ++temporaries; }
  ~CountedTemporary() { --temporaries; }
  CountedTemporary(const CountedTemporary&) = delete;
  CountedTemporary& operator=(const CountedTemporary&) = delete;
};

// Whether this process now holds the lock on an open file: not where another one does. A file system without locks gives it to all.
bool locked(const Descriptor& descriptor, const fs::path& path) {
  while (system_calls().flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS) return true;
    if (errno != EINTR) throw Error(system_sentence(path, "lock the file", errno));
  }
  return true;
}

std::string temporary_prefix(const fs::path& destination) { return concat(".", destination.filename().string(), kTemporaryInfix); }

// Whoever wrote them has died; what cannot be removed stays, and is in nobody's way.
void remove_abandoned_temporaries(const fs::path& destination) {
  const fs::path folder = parent_of(destination);
  const std::string prefix = temporary_prefix(destination);
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(prefix) || name.find_first_not_of("0123456789-", prefix.size()) != std::string::npos) continue;
    const fs::path path = folder / name;
    try {
      const Descriptor descriptor = open_path(path, "open", O_RDWR | O_NOFOLLOW | O_NONBLOCK);
      if (locked(descriptor, path)) remove_file(path);
    } catch (const Error&) {
    }
  }
}

struct Temporary {
  fs::path path;
  Descriptor descriptor;
};

// Locked for as long as it is open, which tells it from one that was left behind.
Temporary make_temporary(const fs::path& destination) {
  constexpr int kMaxAttempts = 100;
  for (int attempt = 0;; ++attempt) {
    const std::string number = attempt == 0 ? std::string() : concat("-", attempt);
    Temporary temporary{.path = parent_of(destination) / concat(temporary_prefix(destination), ::getpid(), number), .descriptor = {}};
    const bool taken = ::access(temporary.path.c_str(), F_OK) == 0;  // by a process of the same number elsewhere, or a thread of this one
    if (taken && attempt < kMaxAttempts) continue;
    temporary.descriptor = open_path(temporary.path, "create the file", O_WRONLY | O_CREAT | O_EXCL);
    RemoveUnlessReleased guard{temporary.path};
    struct stat status {};
    // Who looks for abandoned ones may have come between the two calls.
    const bool ours =
        locked(temporary.descriptor, temporary.path) && ::fstat(temporary.descriptor.get(), &status) == 0 && status.st_nlink > 0;
    if (!ours && attempt < kMaxAttempts) continue;
    guard.path.clear();
    return temporary;
  }
}

// What cannot be replaced by a file.
void check_replaceable(const std::string& shown, const fs::path& path) {
  std::error_code ignored;
  TW_CHECK_INPUT(!fs::is_directory(path, ignored), shown, ": cannot write: ", ::strerrordesc_np(EISDIR), "; ", remedy(EISDIR), ".");
  TW_CHECK_INPUT(!fs::exists(path, ignored) || fs::is_regular_file(path, ignored), shown,
                 ": is a device or pipe, which cannot be replaced as a whole; name a file.");
}

// The first part of a folder's path that is no folder; one that may not be looked at is taken for one.
struct NotAFolder {
  fs::path path;
  bool exists = false;
};
NotAFolder first_that_is_none(const fs::path& folder) {
  fs::path so_far;
  for (const fs::path& part : folder) {
    so_far /= part;
    std::error_code ignored;
    const fs::file_type type = fs::status(so_far, ignored).type();
    if (type == fs::file_type::none) return {};
    if (type != fs::file_type::directory) return {.path = so_far, .exists = type != fs::file_type::not_found};
  }
  return {};
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t most_bytes = 120;
  std::size_t kept = std::min(text.size(), most_bytes);
  while (kept > 0 && kept < text.size() && (static_cast<unsigned char>(text[kept]) & 0xc0u) == 0x80u) --kept;  // whole UTF-8 characters
  const std::string out = escaped(text.substr(0, kept), LineEnds::escaped);
  return kept < text.size() ? out + "..." : out;
}

std::string system_sentence(const fs::path& path, std::string_view action, int error) {
  const char* reason = ::strerrordesc_np(error);  // in English under every locale
  return concat(path.string(), ": cannot ", action, ": ", reason != nullptr ? reason : "unknown error", "; ", remedy(error), ".");
}

Descriptor::~Descriptor() {
  if (value_ >= 0) system_calls().close(value_);
}

Descriptor open_path(const fs::path& path, std::string_view action, int flags) {
  return Descriptor(checked(path, action, [&] { return system_calls().open(path.c_str(), flags | O_CLOEXEC, 0666); }));
}

OpenedName::OpenedName(fs::path path, const Descriptor& opened) : path_(std::move(path)) {
  struct stat own {};
  if (::fstat(opened.get(), &own) != 0) return;
  device_ = own.st_dev;
  file_ = own.st_ino;
  compared_ = true;
  compared_ = in_place();
}

bool OpenedName::in_place() const {
  struct stat now {};
  if (::stat(path_.c_str(), &now) == 0) return !compared_ || (now.st_dev == device_ && now.st_ino == file_);
  return errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ELOOP;  // else the disk's trouble is its next write's to tell
}

InputFile::InputFile(fs::path path) : path_(std::move(path)) {
  descriptor_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a named pipe must not block
  if (descriptor_.get() < 0) fail_to_read(path_, "open", errno);
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) fail_to_read(path_, "read", errno);
  if (S_ISDIR(status.st_mode)) fail_to_read(path_, "read", EISDIR);
  TW_CHECK_INPUT(S_ISREG(status.st_mode), path_.string(), ": is not a regular file; copy its contents into one.");
  bytes_ = status.st_size;
}

void InputFile::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_.get(), out.data(), std::min(out.size(), std::size_t{1} << 30), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to_read(path_, "read", errno);
    TW_CHECK_INPUT(count > 0, path_.string(), ": ended at byte ", offset, " while it was read; let its writer finish and try again.");
    out = out.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

std::string read_file(const fs::path& path, std::int64_t most_bytes) {
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) fail_to_read(path, "open", errno);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) fail_to_read(path, "read", errno);
  if (S_ISDIR(status.st_mode)) fail_to_read(path, "read", EISDIR);
  const auto check_bound = [&](std::int64_t bytes) {
    TW_CHECK_INPUT(bytes <= most_bytes, path.string(), ": is longer than the ", most_bytes,
                   " bytes that are read of such a file; check the path.");
  };
  check_bound(status.st_size);

  std::string text;
  std::vector<char> buffer(std::min<std::size_t>(kBufferBytes, static_cast<std::size_t>(status.st_size) + 4096));
  text.reserve(static_cast<std::size_t>(status.st_size));
  for (;;) {
    const ssize_t count = ::read(descriptor.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to_read(path, "read", errno);
    if (count == 0) return text;
    check_bound(static_cast<std::int64_t>(text.size()) + count);
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

FileDigest digest_file(const fs::path& path) {
  const InputFile file(path);
  FileDigest digest;
  std::vector<std::byte> buffer(kBufferBytes);
  while (digest.bytes < file.bytes()) {
    const auto count = std::min<std::int64_t>(std::ssize(buffer), file.bytes() - digest.bytes);
    const std::span<std::byte> piece(buffer.data(), static_cast<std::size_t>(count));
    file.read(digest.bytes, piece);
    digest.crc32c = crc32c(piece, digest.crc32c);
    digest.bytes += count;
  }
  return digest;
}

OutputFile::OutputFile(fs::path path) : OutputFile(path, open_path(path, "create the file", O_WRONLY | O_CREAT | O_EXCL)) {}

OutputFile::OutputFile(fs::path path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {
  buffer_.reserve(kBufferBytes);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  digest_.bytes += std::ssize(bytes);
  digest_.crc32c = crc32c(bytes, digest_.crc32c);
  if (bytes.size() > kBufferBytes - buffer_.size()) flush();
  if (bytes.size() > kBufferBytes) {
    write_through(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

FileDigest OutputFile::finish() {
  flush();
  checked(path_, "write", [&] { return system_calls().fsync(descriptor_.get()); });
  const int closed = system_calls().close(descriptor_.release());
  if (closed == -1 && errno != EINTR) throw Error(system_sentence(path_, "write", errno));  // Linux has closed it in any case
  return digest_;
}

void OutputFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void OutputFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = checked(path_, "write", [&] { return system_calls().write(descriptor_.get(), bytes.data(), bytes.size()); });
    TW_CHECK(count > 0, system_sentence(path_, "write", EIO));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

FileDigest write_file_atomically(const fs::path& path, const std::function<void(OutputFile&)>& fill) {
  std::error_code ignored;
  const fs::path destination = fs::is_symlink(path, ignored) && fs::exists(path, ignored) ? fs::canonical(path, ignored) : path;
  check_replaceable(path.string(), destination);

  remove_abandoned_temporaries(destination);
  const CountedTemporary counted;
  Temporary temporary = make_temporary(destination);
  RemoveUnlessReleased guard{temporary.path};
  OutputFile file(temporary.path, std::move(temporary.descriptor));
  fill(file);
  const FileDigest digest = file.finish();
  rename_path(temporary.path, destination);
  guard.path.clear();
  sync_folder(parent_of(destination));
  return digest;
}

FileDigest write_file_atomically(const fs::path& path, std::string_view text) {
  return write_file_atomically(path, [&](OutputFile& file) { file.write(text); });
}

bool writes_under_way() noexcept { return temporaries.load() > 0; }

void check_output_file(std::string_view option, const fs::path& path) {
  const std::string shown = concat(option, ' ', path.string());
  check_replaceable(shown, path);
  const NotAFolder missing = first_that_is_none(parent_of(path));
  TW_CHECK_INPUT(missing.path.empty() || missing.exists, shown, ": there is no folder ", missing.path.string(),
                 "; make it, or name a file in another one.");
  TW_CHECK_INPUT(missing.path.empty(), shown, ": ", missing.path.string(), " is a file, not a folder; name a file in a folder.");
}

void check_output_folder(std::string_view option, const fs::path& path) {
  const NotAFolder missing = first_that_is_none(path);
  TW_CHECK_INPUT(missing.path.empty() || !missing.exists, option, ' ', path.string(), ": ", missing.path.string(),
                 " is a file, not a folder; name a folder.");
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void make_folders(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return;
  const fs::path parent = parent_of(path);
  if (parent != path) make_folders(parent);
  make_folder(path);
}

void make_folder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return;
  checked(path, "make the folder", [&] {
    const int result = system_calls().mkdir(path.c_str(), 0777);
    return result == -1 && errno == EEXIST && fs::is_directory(path, ignored) ? 0 : result;
  });
  sync_folder(parent_of(path));
}

void sync_folder(const fs::path& path) {
  const Descriptor folder = open_path(path, "open the folder", O_RDONLY | O_DIRECTORY);
  checked(path, "write the folder", [&] {
    const int result = system_calls().fsync(folder.get());
    return result == -1 && errno == EINVAL ? 0 : result;  // a file system whose folders cannot be synchronised
  });
}

void remove_file(const fs::path& path) {
  checked(path, "remove the file", [&] {
    const int result = system_calls().unlink(path.c_str());
    return result == -1 && errno == ENOENT ? 0 : result;
  });
}

void remove_folder_if_empty(const fs::path& path) {
  checked(path, "remove the folder", [&] {
    const int result = system_calls().rmdir(path.c_str());
    return result == -1 && (errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) ? 0 : result;
  });
}

void rename_path(const fs::path& from, const fs::path& to) {
  checked(to, "rename a finished file to it", [&] { return system_calls().rename(from.c_str(), to.c_str()); });
}

void remove_stale_temporaries(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    if (name.front() == '.' && name.find(kTemporaryInfix) != std::string::npos) remove_file(folder / name);
  }
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  TW_CHECK(!error || error == std::errc::no_such_file_or_directory, system_sentence(folder, "list the folder", error.value()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tilewave
