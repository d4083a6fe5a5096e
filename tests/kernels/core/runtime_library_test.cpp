// Libraries that are opened at run time: what is said of a place that was looked at, and where Python packages lie.
#include "kernels/core/runtime_library.h"

#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>

#include "tests/shell.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

TEST(RuntimeLibrary, NotesEachPlaceAndWhatCameOfIt) {
  FoundLibrary found;
  EXPECT_EQ(open_library(found, "/nowhere/liba.so", LibraryNames::hidden), nullptr);
  void* const library = open_library(found, "libm.so.6", LibraryNames::hidden);
  ASSERT_NE(library, nullptr);
  unsetenv("TILEWAVE_TEST_LIBRARY");
  EXPECT_EQ(open_library_of_variable(found, "TILEWAVE_TEST_LIBRARY", LibraryNames::hidden), nullptr);
  setenv("TILEWAVE_TEST_LIBRARY", "libm.so.6", 1);
  EXPECT_NE(open_library_of_variable(found, "TILEWAVE_TEST_LIBRARY", LibraryNames::hidden), nullptr);
  unsetenv("TILEWAVE_TEST_LIBRARY");
  const TemporaryFolder folder;
  write_text(folder.path() / "liba.so", "no library");
  EXPECT_EQ(open_library(found, folder.path() / "liba.so", LibraryNames::hidden), nullptr);
  ASSERT_EQ(found.looked.size(), 5U);
  EXPECT_EQ(found.looked[0], "/nowhere/liba.so (not there)");
  EXPECT_EQ(found.looked[1], "libm.so.6 of the loader's path (opened)");
  EXPECT_EQ(found.looked[2], "TILEWAVE_TEST_LIBRARY (not set)");
  EXPECT_EQ(found.looked[3], "TILEWAVE_TEST_LIBRARY=libm.so.6 (opened)");
  EXPECT_EQ(found.looked[4].find("(not there)"), std::string::npos) << "it is there: " << found.looked[4];

  double (*cosine)(double) = nullptr;
  take_function(library, "cos", cosine);
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_THROW(take_function(library, "tilewave_is_not_in_it", cosine), Error);
  EXPECT_NE(path_of_library(address_in(library, "cos")).find("libm"), std::string::npos);
}

// Variables that a test sets, and that are as before behind it.
class PythonPackages : public ::testing::Test {
 protected:
  static constexpr std::array kVariables = {"PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME"};
  void SetUp() override {
    for (std::size_t i = 0; i < kVariables.size(); ++i) {
      if (const char* const value = std::getenv(kVariables[i])) before_[i] = value;
      unsetenv(kVariables[i]);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < kVariables.size(); ++i) {
      before_[i] ? setenv(kVariables[i], before_[i]->c_str(), 1) : unsetenv(kVariables[i]);
    }
  }

  std::array<std::optional<std::string>, kVariables.size()> before_;
};

TEST_F(PythonPackages, AreFoundWithoutAPython) {
  const TemporaryFolder folder;
  const fs::path root = folder.path();
  for (const char* const path :
       {"usr/lib/python3/dist-packages", "usr/lib/python3.11/asyncio", "usr/lib/python2.7/dist-packages",
        "usr/lib/python3-config/site-packages", "usr/local/lib/python3.9/dist-packages", "usr/local/lib/python3.11/dist-packages",
        "usr/local/lib/python3.11/site-packages", "home/.local/lib/python3.12/site-packages", "venv/lib/python3.13/site-packages",
        "conda/lib/python3.10/site-packages"}) {
    fs::create_directories(root / path);
  }
  const std::vector<fs::path> system = {root / "usr/local/lib/python3.11/site-packages", root / "usr/local/lib/python3.11/dist-packages",
                                        root / "usr/local/lib/python3.9/dist-packages", root / "usr/lib/python3/dist-packages"};
  EXPECT_EQ(python_packages(root), system);

  setenv("HOME", (root / "home").c_str(), 1);
  setenv("VIRTUAL_ENV", (root / "venv").c_str(), 1);
  setenv("CONDA_PREFIX", (root / "conda").c_str(), 1);
  setenv("PYTHONPATH", ":/one:/another", 1);
  std::vector<fs::path> all = {"/one", "/another", root / "venv/lib/python3.13/site-packages", root / "conda/lib/python3.10/site-packages",
                               root / "home/.local/lib/python3.12/site-packages"};
  all.insert(all.end(), system.begin(), system.end());
  EXPECT_EQ(python_packages(root), all);
  EXPECT_EQ(python_packages(root / "nowhere").size(), 5U);
}

}  // namespace
}  // namespace tilewave
