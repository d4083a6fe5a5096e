// CMake defines TILEWAVE_VERSION, TILEWAVE_BUILD_TYPE, TILEWAVE_CUDA_VERSION and TILEWAVE_CUDA_ARCHITECTURES for this file alone.
#include "app/options/version.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

// CMake's "80-real" is machine code for sm_80, its "90" that and PTX, compute_90.
std::string architectures_text(const std::string& architectures) {
  std::istringstream words(architectures);
  std::vector<std::string> names;
  for (std::string word; words >> word;) {
    const std::size_t dash = word.find('-');
    const std::string number = word.substr(0, dash), kind = dash == std::string::npos ? "" : word.substr(dash + 1);
    if (kind != "virtual") names.push_back("sm_" + number);
    if (kind != "real") names.push_back("compute_" + number);
  }
  std::sort(names.rbegin(), names.rend());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::reverse(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string compiler() {
#if defined(__clang__)
  return concat("Clang ", __clang_major__, '.', __clang_minor__, '.', __clang_patchlevel__);
#else
  return concat("GCC ", __GNUC__, '.', __GNUC_MINOR__, '.', __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

std::string version() { return TILEWAVE_VERSION; }

std::string version_text(const std::string& commit) {
  const std::string_view toolkit = TILEWAVE_CUDA_VERSION;  // NOLINT(readability-redundant-string-init): empty in a build without
  const std::string cuda = toolkit.empty() ? std::string("none: built for the CPU alone")
                                           : concat(toolkit, ", ", architectures_text(TILEWAVE_CUDA_ARCHITECTURES));
  return concat("tilewave ", version(), "\ncommit ", commit, "\nbuild ", TILEWAVE_BUILD_TYPE, ", ", compiler(), "\nCUDA ", cuda);
}

}  // namespace tilewave
