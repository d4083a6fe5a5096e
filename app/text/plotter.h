// plot.py, which draws what a folder holds.
#pragma once

#include <filesystem>
#include <string>

namespace tilewave {

// A picture that cannot be drawn costs a sentence on stderr that names `missing`.
void draw(const std::filesystem::path& folder, const std::string& missing);

}  // namespace tilewave
