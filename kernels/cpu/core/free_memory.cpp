// /proc/meminfo (proc(5)); limits of cgroups(7), version 2 and 1, of the process's group and those above it; /proc/self/limits. Pages of
// files that the kernel would give up first count as free.
#include "kernels/cpu/core/free_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace tilewave {
namespace {

namespace fs = std::filesystem;

// The number behind a line's first word.
std::optional<std::int64_t> number_of(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  for (std::int64_t number = 0; file >> word;) {
    if (word == key && file >> number) return number;
    file.clear();
    file.ignore(1 << 16, '\n');
  }
  return std::nullopt;
}

// Absent for a file that is not there, and for "max".
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The files of a control group, as a version of them calls them.
struct GroupFiles {
  const char *mount, *limit, *usage, *reclaimable;
};
constexpr GroupFiles kVersion2 = {"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
                     kVersion1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

std::optional<std::int64_t> free_in_group(const fs::path& group, const GroupFiles& files) {
  const std::optional<std::int64_t> limit = number_in(group / files.limit), usage = number_in(group / files.usage);
  if (!limit || !usage) return std::nullopt;
  return std::max<std::int64_t>(0, *limit - *usage + number_of(group / "memory.stat", files.reclaimable).value_or(0));
}

// What a limit of the process leaves: "Max address space  1073741824  unlimited  bytes" less what its status counts in KiB.
std::optional<std::int64_t> free_below(const fs::path& root, std::string_view limit, std::string_view usage) {
  std::ifstream limits(root / "proc/self/limits");
  for (std::string line; std::getline(limits, line);) {
    if (!line.starts_with(limit)) continue;
    std::istringstream words(line.substr(limit.size()));
    std::int64_t most = 0;
    if (!(words >> most)) return std::nullopt;  // unlimited
    return std::max<std::int64_t>(0, most - 1024 * number_of(root / "proc/self/status", usage).value_or(0));
  }
  return std::nullopt;
}

std::optional<std::int64_t> least(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

std::optional<std::int64_t> free_memory(const fs::path& root) {
  std::optional<std::int64_t> free = number_of(root / "proc/meminfo", "MemAvailable:");
  if (free) *free *= 1024;
  free = least(free, free_below(root, "Max address space", "VmSize:"));
  free = least(free, free_below(root, "Max data size", "VmData:"));
  std::ifstream groups(root / "proc/self/cgroup");  // "0::/a/b" (version 2), "4:memory:/a/b" (version 1)
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers != ",," && controllers.find(",memory,") == std::string::npos) continue;
    const GroupFiles& files = controllers == ",," ? kVersion2 : kVersion1;
    // In a container the group's path may be the host's: what is not there says nothing, and the mount itself is the container's.
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (;; group = group.parent_path()) {
      free = least(free, free_in_group(root / files.mount / group, files));
      if (group.empty()) break;
    }
  }
  return free;
}

}  // namespace tilewave
