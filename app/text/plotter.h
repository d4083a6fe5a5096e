// plot.py, which draws what a folder or a file holds.
#pragma once

#include <filesystem>
#include <string>

namespace tilewave {

// Whether it ended well; a picture that cannot be drawn costs a sentence on stderr that names `missing`.
bool draw(const std::filesystem::path& what, const std::string& missing);

}  // namespace tilewave
