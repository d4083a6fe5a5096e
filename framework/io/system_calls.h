// The seam to the operating system: every call by which tilewave changes a disk goes through this one table, so that a test can
// make the n-th call fail, write short or be the last one of its process. Programs leave the table alone; it is not synchronised.
#pragma once

#include <cstddef>
#include <sys/types.h>

namespace tilewave {

struct SystemCalls {  // each as in POSIX: -1 and errno on failure
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int descriptor, const void* data, std::size_t bytes);
  int (*ftruncate)(int descriptor, off_t bytes);
  int (*fsync)(int descriptor);
  int (*close)(int descriptor);
  int (*flock)(int descriptor, int operation);
  int (*rename)(const char* from, const char* to);
  int (*mkdir)(const char* path, mode_t mode);
  int (*unlink)(const char* path);
  int (*rmdir)(const char* path);
};

SystemCalls& system_calls();

}  // namespace tilewave
