// The folder of the repository, where --data is its tests/: for tests of what stands in its files.
#pragma once

#include <filesystem>

#include "tests/test_environment.h"

namespace tilewave {

inline std::filesystem::path root() { return std::filesystem::absolute(test_environment().data).lexically_normal() / ".."; }

}  // namespace tilewave
