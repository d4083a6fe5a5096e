// The table of system calls as a process starts with it: the operating system's own.
#include "framework/io/system_calls.h"

#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tilewave {

SystemCalls& system_calls() {
  static SystemCalls calls{
      .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      .write = ::write,
      .ftruncate = ::ftruncate,
      .fsync = ::fsync,
      .close = ::close,
      .flock = ::flock,
      .rename = ::rename,
      .mkdir = ::mkdir,
      .unlink = ::unlink,
      .rmdir = ::rmdir,
  };
  return calls;
}

}  // namespace tilewave
