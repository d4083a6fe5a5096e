// Configuring where something is missing: one sentence that names it and its package on the system at hand; and nothing is downloaded.
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

// A project that asks for what tilewave links, on a machine with the package manager given, or none.
class Dependencies : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(root_ / "cmake" / "packages.txt")) GTEST_SKIP() << "the sources are not beside --data";
    write_text(folder_.path() / "CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.25)
if(TOOLS)
  include(${ROOT}/cmake/tilewaveTools.cmake)
  return()
endif()
project(asks LANGUAGES CXX)
set(tilewave_also_needs CLI11 GTest)
include(${ROOT}/cmake/tilewaveDependencies.cmake)
if(tilewave_missing)
  message(FATAL_ERROR "${tilewave_missing}")
endif()
)");
    // CMake, the compiler and pkg-config go by their whole paths: the PATH holds the manager alone.
    for (const char* name : {"cmake", "ninja", "c++", "pkg-config", "as", "ld"}) {
      const Outcome found = shell(std::string("command -v ") + name, "/");
      if (found.status != 0) GTEST_SKIP() << "there is no " << name;
      paths_[name] = found.output.substr(0, found.output.find('\n'));
    }
    fs::create_directory(bin_);
  }

  std::string configure(const std::string& manager, const std::string& options) {
    for (const fs::directory_entry& entry : fs::directory_iterator(bin_)) fs::remove(entry.path());
    for (const char* name : {"as", "ld"}) fs::create_symlink(paths_.at(name), bin_ / name);  // the compiler's own
    if (!manager.empty()) write_program(bin_ / manager, "#!/bin/sh\n");
    fs::remove_all(folder_.path() / "build");
    const Outcome outcome =
        shell("PATH=" + quoted(bin_.string()) + " " + path_of("cmake") + " -G Ninja -D CMAKE_MAKE_PROGRAM=" + path_of("ninja") +
                  " -D CMAKE_CXX_COMPILER=" + path_of("c++") + " -D PKG_CONFIG_EXECUTABLE=" + path_of("pkg-config") +
                  " -D ROOT=" + quoted(root_.string()) + " " + options + " -S . -B build",
              folder_.path());
    status_ = outcome.status;
    return std::regex_replace(outcome.output, std::regex("\\s+"), " ");  // as CMake wraps its lines
  }

  std::string path_of(const std::string& tool) const { return quoted(paths_.at(tool)); }

  TemporaryFolder folder_;
  fs::path root_ = (fs::absolute(test_environment().data) / "..").lexically_normal(), bin_ = folder_.path() / "bin";
  std::map<std::string, std::string> paths_;
  int status_ = 0;
};

TEST_F(Dependencies, AreFoundWhereTheyAre) {
  const std::string output = configure("apt-get", "");
  EXPECT_EQ(status_, 0) << output;
}

TEST_F(Dependencies, ThatAreMissingAreNamedWithTheirPackages) {
  const std::string missing =
      "-D CMAKE_DISABLE_FIND_PACKAGE_tomlplusplus=ON -D CMAKE_DISABLE_FIND_PACKAGE_PNG=ON -D CMAKE_DISABLE_FIND_PACKAGE_GTest=ON";
  const struct {
    std::string manager, advice;
  } cases[] = {{"apt-get", "; install it with: sudo apt-get install libtomlplusplus-dev libpng-dev libgtest-dev "},
               {"dnf", "; install it with: sudo dnf install tomlplusplus-devel libpng-devel gtest-devel "},
               {"pacman", "; install it with: sudo pacman -S --needed tomlplusplus libpng gtest "},
               {"brew", "; install it with: brew install tomlplusplus libpng googletest "},
               {"", "; install what holds it and configure again "}};
  for (const auto& [manager, advice] : cases) {
    const std::string output = configure(manager, missing);
    EXPECT_NE(status_, 0);
    EXPECT_NE(output.find("tilewave needs toml++ and libpng and GoogleTest, which CMake does not find here" + advice), std::string::npos)
        << manager << "\n"
        << output;
  }
}

TEST_F(Dependencies, OfPkgConfigTooAndPkgConfigItself) {
  const std::string output = configure("dnf", "-D CMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON");
  EXPECT_NE(output.find("needs pkg-config and Highway and SentencePiece"), std::string::npos) << output;
  EXPECT_NE(output.find("dnf install pkgconf-pkg-config sentencepiece-devel highway-devel"), std::string::npos) << output;
}

TEST_F(Dependencies, ToolsAreNamedBeforeCMakeStops) {
  fs::create_directory(folder_.path() / "nothing");
  const std::string output =
      configure("pacman", "-D TOOLS=ON -U CMAKE_CXX_COMPILER -D CMAKE_MAKE_PROGRAM= -D CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF");
  EXPECT_NE(
      output.find("tilewave needs ninja and compiler, which CMake does not find here; install it with: sudo pacman -S --needed gcc ninja"),
      std::string::npos)
      << output;
}

// What is configured or built takes what is installed: nothing in CMake's files or the script brings anything from elsewhere.
TEST_F(Dependencies, NothingIsDownloaded) {
  const std::regex download(
      "FetchContent|ExternalProject|file\\s*\\(\\s*DOWNLOAD|\\b(curl|wget|pip3? install|git clone|git submodule|conda|npm)\\b",
      std::regex::icase);
  for (const char* wrong : {"FetchContent_Declare(x)", "file(DOWNLOAD", "run curl -O", "pip install x"}) {
    EXPECT_TRUE(std::regex_search(wrong, download)) << wrong;
  }
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root_)) {
    const std::string file = fs::relative(entry.path(), root_).generic_string();
    if (file.starts_with("build") || file.starts_with("runs/") || file.starts_with(".git/")) continue;
    const bool builds = file.ends_with("CMakeLists.txt") || file.ends_with(".cmake") || file == "tilewave" || file == "CMakePresets.json";
    if (!entry.is_regular_file() || !builds) continue;
    ++count;
    std::smatch match;
    const std::string text = file_text(entry.path());
    EXPECT_FALSE(std::regex_search(text, match, download)) << file << " holds " << match.str();
  }
  EXPECT_GE(count, 8U);
}

}  // namespace
}  // namespace tilewave
