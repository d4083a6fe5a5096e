// What this program is: its version, the commit it was built from, how, and for which GPUs. `tilewave --version` prints it.
#pragma once

#include <string>

namespace tilewave {

// Of the program alone, which cmake/tilewaveCommit.cmake writes: "1f3807b12345", "1f3807b12345 and changes" or "unknown".
extern const char* const kCommit;

// "0.2.0"
std::string version();

// Lines: tilewave and its version, the commit, the build, the CUDA toolkit with the architectures it made code for.
std::string version_text(const std::string& commit);

}  // namespace tilewave
