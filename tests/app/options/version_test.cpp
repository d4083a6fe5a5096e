// What --version says, and where its commit comes from.
#include "app/options/version.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <string>

#include "tests/app/process.h"
#include "tests/repository_root.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

TEST(Version, SaysVersionCommitBuildAndCuda) {
  if (!fs::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  Process process(folder.path(), {"--version"});
  EXPECT_EQ(process.wait(), 0);
  const std::regex lines(
      "tilewave [0-9]+\\.[0-9]+\\.[0-9]+\n"
      "commit ([0-9a-f]{12}( and changes)?|unknown)\n"
      "build (Release|RelWithDebInfo|Debug|MinSizeRel|Asan), (GCC|Clang) [0-9.]+\n"
      "CUDA (none: built for the CPU alone|[0-9.]+(, (sm|compute)_[0-9]+a?)+)\n");
  EXPECT_TRUE(std::regex_match(process.output(), lines)) << process.output();
  EXPECT_TRUE(process.output().starts_with("tilewave " + version() + "\n"));
}

TEST(Version, IsTheProjectsAndTheChangelogs) {
  if (!fs::exists(root() / "CHANGELOG.md")) GTEST_SKIP() << "the sources are not beside --data";
  EXPECT_NE(file_text(root() / "CMakeLists.txt").find("project(tilewave VERSION " + version() + " "), std::string::npos);
  EXPECT_NE(file_text(root() / "CITATION.cff").find("\nversion: " + version() + "\n"), std::string::npos);
  const std::string changes = file_text(root() / "CHANGELOG.md");
  const std::size_t first = changes.find("\n## [");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(changes.substr(first + 5, version().size() + 1), version() + "]") << "the newest entry is another version's";
}

// The script that writes the commit, in repositories of the test's own.
class Commit : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(script_)) GTEST_SKIP() << "the sources are not beside --data";
    if (shell("git --version", "/").status != 0 || shell("cmake --version", "/").status != 0)
      GTEST_SKIP() << "there is no git, or no cmake";
    fs::create_directory(folder_.path() / "sources");
    write_text(folder_.path() / "sources" / "file", "one\n");
  }

  void git(const std::string& words, const char* where = "sources") {
    const Outcome outcome = shell("git -c user.name=n -c user.email=e -c init.defaultBranch=main " + words, folder_.path() / where);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
  }

  std::string written(const std::string& before = "") {
    const Outcome outcome =
        shell(before + " cmake -D SOURCE=sources -D OUTPUT=\"$PWD/commit.cpp\" -P " + quoted(script_.string()), folder_.path());
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    const std::string text = file_text(folder_.path() / "commit.cpp");
    const std::size_t open = text.find("= \"") + 3;
    return text.substr(open, text.find('"', open) - open);
  }

  TemporaryFolder folder_;
  fs::path script_ = root() / "cmake" / "tilewaveCommit.cmake";
};

TEST_F(Commit, IsThatOfTheSourcesAndSaysWhereTheyDiffer) {
  EXPECT_EQ(written(), "unknown");
  git("init -q .");
  git("add file");
  git("commit -q -m one");
  const std::string hash = shell("git rev-parse --short=12 HEAD", folder_.path() / "sources").output.substr(0, 12);
  EXPECT_EQ(written(), hash);
  EXPECT_EQ(written("GIT_DIR=/nowhere GIT_WORK_TREE=/nowhere"), hash);
  git("tag v1");  // a name of the commit, not the commit
  EXPECT_EQ(written(), hash);
  write_text(folder_.path() / "sources" / "file", "two\n");
  EXPECT_EQ(written(), hash + " and changes");
}

TEST_F(Commit, OfSomebodyElsesRepositoryIsNotTaken) {
  git("init -q .", ".");
  git("add sources/file", ".");
  git("commit -q -m one", ".");
  EXPECT_EQ(written(), "unknown");
}

TEST_F(Commit, IsWrittenWhereItIsAnotherAlone) {
  git("init -q .");
  git("add file");
  git("commit -q -m one");
  written();
  const auto past = fs::last_write_time(folder_.path() / "commit.cpp") - std::chrono::hours(1);
  fs::last_write_time(folder_.path() / "commit.cpp", past);
  written();
  EXPECT_EQ(fs::last_write_time(folder_.path() / "commit.cpp"), past) << "every build would compile and link again";
  git("commit -q --allow-empty -m two");
  written();
  EXPECT_NE(fs::last_write_time(folder_.path() / "commit.cpp"), past);
}

}  // namespace
}  // namespace tilewave
