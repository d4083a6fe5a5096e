// Bytes that the system can still give this process: what the kernel calls available, and no more than the process's control groups and
// its own limits (ulimit -v, ulimit -d) leave it. Absent where the system says none of these.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tilewave {

// root is where proc and sys are.
std::optional<std::int64_t> free_memory(const std::filesystem::path& root);

}  // namespace tilewave
