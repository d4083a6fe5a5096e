#include "framework/io/appended_file.h"

#include <cerrno>
#include <fcntl.h>
#include <utility>

#include "framework/io/system_calls.h"
#include "kernels/core/error.h"

namespace tilewave {

AppendedFile::AppendedFile(std::filesystem::path path, std::int64_t bytes)
    : path_(std::move(path)), descriptor_(open_path(path_, "open", O_WRONLY | O_APPEND)), name_(path_, descriptor_), bytes_(bytes) {}

void AppendedFile::append(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = system_calls().write(descriptor_.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count < 0 ? errno : EIO;
      system_calls().ftruncate(descriptor_.get(), bytes_);  // if this fails too, whoever reads it next drops what is torn
      throw Error(system_sentence(path_, "write", error));
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  bytes_ += std::ssize(text);
}

void AppendedFile::sync() {
  while (system_calls().fsync(descriptor_.get()) != 0) {
    TW_CHECK(errno == EINTR, system_sentence(path_, "write", errno));
  }
}

}  // namespace tilewave
