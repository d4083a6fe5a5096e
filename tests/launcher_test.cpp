// The tilewave script on a machine of stand-ins: what it installs, when it configures, what it says, what it passes on.
#include <filesystem>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <unistd.h>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

// A clone of the script and its table of packages alone, whose dpkg-query knows the packages named in `have`, whose apt-get adds to them,
// whose cmake writes what the script looks for, and whose ninja makes a program that prints its folder and arguments. Each notes its calls
// in `calls`.
class Launcher : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path script = fs::absolute(test_environment().data).lexically_normal() / ".." / "tilewave";
    if (!fs::exists(script)) GTEST_SKIP() << "the script is not beside --data";
    fs::create_directories(clone_);
    fs::copy_file(script, clone_ / "tilewave");
    fs::create_directories(clone_ / "cmake");
    fs::copy_file(script.parent_path() / "cmake" / "packages.txt", clone_ / "cmake" / "packages.txt");
    write_program(tools_ / "dpkg-query", R"sh(#!/bin/sh
echo "dpkg-query" >>"$CALLS"
while read -r package; do echo "installed:$package"; done <"$HAVE"
shift 3
[ "$(wc -l <"$HAVE")" -eq $# ])sh");
    write_program(tools_ / "apt-get", R"sh(#!/bin/sh
echo "apt-get $*" >>"$CALLS"
[ ! -e "$BROKEN_APT" ] || { echo "E: Unable to locate package"; exit 100; }
[ "$1" = update ] || for word; do echo "$word" >>"$HAVE"; done)sh");
    write_program(tools_ / "sudo", "#!/bin/sh\nexit 1\n");
    write_program(tools_ / "cmake", R"sh(#!/bin/sh
echo "cmake" >>"$CALLS"
: >"$2/build/build.ninja")sh");
    write_program(tools_ / "ninja", R"sh(#!/bin/sh
echo "ninja" >>"$CALLS"
[ ! -e "$BROKEN_BUILD" ] || { echo "[0/9] Building CXX object a.o"; echo "FAILED: a.o"; echo "a.cpp:1: error: no such thing"; exit 1; }
mkdir -p "$2/bin"
printf '#!/bin/sh\necho "in $(pwd)"; printf "<%%s>" "$@"\nexit 7\n' >"$2/bin/tilewave"
chmod +x "$2/bin/tilewave")sh");
    write_text(have_, text_of_list());
    write_text(calls_, "");
  }

  std::string text_of_list() { return shell("./tilewave packages", clone_).output; }

  Outcome call(const std::string& arguments, const std::string& as = "") {
    return shell("export PATH=" + quoted(tools_.string()) + ":$PATH HAVE=" + quoted(have_.string()) + " CALLS=" + quoted(calls_.string()) +
                     " BROKEN_APT=" + quoted((folder_.path() / "broken_apt").string()) +
                     " BROKEN_BUILD=" + quoted((folder_.path() / "broken_build").string()) + "; " + as + " ../clone/tilewave " + arguments,
                 tools_);
  }

  TemporaryFolder folder_;
  fs::path clone_ = folder_.path() / "clone", tools_ = folder_.path() / "tools";
  fs::path have_ = folder_.path() / "have", calls_ = folder_.path() / "calls";
};

TEST_F(Launcher, PassesArgumentsFolderAndStatusOn) {
  const Outcome outcome = call("train 'a b' --set x=1 --preset cpu");
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_NE(outcome.output.find("in " + tools_.string()), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("<train><a b><--set><x=1>"), std::string::npos) << outcome.output;
}

TEST_F(Launcher, SaysWhichBuildOnceAndThenAsksNobody) {
  EXPECT_NE(call("x").output.find("building for the CPU"), std::string::npos);
  EXPECT_EQ(file_text(calls_), "dpkg-query\ncmake\nninja\n");
  write_text(calls_, "");
  EXPECT_EQ(call("x").output.find("building for the CPU"), std::string::npos);
  EXPECT_EQ(file_text(calls_), "ninja\n");
}

TEST_F(Launcher, InstallsWhatIsMissingAndAnnouncesIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to stand for root";
  write_text(have_, "g++\ncmake\n");
  const Outcome outcome = call("x");
  EXPECT_NE(outcome.output.find("installing ninja-build pkg-config"), std::string::npos) << outcome.output;
  EXPECT_NE(file_text(calls_).find("apt-get update\napt-get install -y --no-install-recommends ninja-build pkg-config"), std::string::npos);
  EXPECT_NE(outcome.output.find("<x>"), std::string::npos);
}

TEST_F(Launcher, PassesOnWhyNothingCouldBeInstalled) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to stand for root";
  write_text(have_, "g++\n");
  write_text(folder_.path() / "broken_apt", "");
  const Outcome outcome = call("x");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("E: Unable to locate package"), std::string::npos) << outcome.output;
  EXPECT_EQ(file_text(calls_).find("cmake"), std::string::npos);
}

TEST_F(Launcher, WithoutRootPrintsTheCommandAndStops) {
  const std::string nobody = geteuid() == 0 ? "setpriv --reuid 65534 --clear-groups" : "";
  ASSERT_EQ(shell("chmod -R a+rwX .", folder_.path()).status, 0);
  write_text(have_, "g++\ncmake\n");
  const Outcome outcome = call("x", nobody);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("sudo apt-get install -y --no-install-recommends ninja-build"), std::string::npos) << outcome.output;

  std::string all_but_one = text_of_list();
  all_but_one.erase(all_but_one.find("python3-matplotlib"));
  write_text(have_, all_but_one);
  const Outcome without_plots = call("x", nobody);
  EXPECT_EQ(without_plots.status, 7) << without_plots.output;
  EXPECT_NE(without_plots.output.find("no loss.png"), std::string::npos) << without_plots.output;
}

TEST_F(Launcher, FailingBuildShowsTheCompilersWordsAndTheLog) {
  write_text(folder_.path() / "broken_build", "");
  const Outcome outcome = call("x");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("a.cpp:1: error: no such thing"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find((clone_ / "build" / "build.log").string()), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("[0/9]"), std::string::npos) << outcome.output;
}

// A tool that opens a file would get the number of the stream, and its words would go there.
TEST_F(Launcher, TakesTheNumbersOfClosedStreams) {
  write_program(tools_ / "cmake", R"sh(#!/bin/sh
: >"$2/build/build.ninja"
for stream in 0 1 2; do [ -e "/proc/$$/fd/$stream" ] || echo "$stream is free" >>"$CALLS"; done)sh");
  const Outcome outcome = call("x <&- >&- 2>&-");
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_EQ(file_text(calls_).find("is free"), std::string::npos) << file_text(calls_);
}

// A machine without dpkg: its PATH holds what the script itself calls, and one package manager or none, which knows all packages as
// installed but one that `lacks` names.
class LauncherElsewhere : public Launcher {
 protected:
  void SetUp() override {
    Launcher::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(bin_);
    for (const char* name :
         {"bash", "sh", "env", "readlink", "dirname", "mkdir", "grep", "sed", "cat", "tee", "flock", "nproc", "chmod", "head"}) {
      const Outcome found = shell(std::string("command -v ") + name, folder_.path());
      ASSERT_EQ(found.status, 0) << name;
      fs::create_symlink(found.output.substr(0, found.output.find('\n')), bin_ / name);
    }
    for (const char* name : {"cmake", "ninja"}) fs::copy_file(tools_ / name, bin_ / name);
  }

  // A manager of the system, and whom the script asks about packages.
  void give(const std::string& manager, const std::string& asked, const std::string& says) {
    write_program(bin_ / manager, "#!/bin/sh\n" + says);
    if (asked != manager) write_program(bin_ / asked, "#!/bin/sh\n" + says);
  }

  Outcome call(const std::string& arguments) {
    return shell(
        "export PATH=" + quoted(bin_.string()) + " CALLS=" + quoted(calls_.string()) + " BROKEN_BUILD=none; ../clone/tilewave " + arguments,
        tools_);
  }

  fs::path bin_ = folder_.path() / "bin";
};

TEST_F(LauncherElsewhere, FedoraIsToldItsOwnNames) {
  give("dnf", "rpm", R"(case "$*" in *tomlplusplus-devel*|*gtest-devel*) exit 1 ;; esac)");
  const Outcome outcome = call("x");
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_NE(outcome.output.find("sudo dnf install tomlplusplus-devel gtest-devel\n"), std::string::npos) << outcome.output;
  EXPECT_NE(call("packages").output.find("pkgconf-pkg-config\n"), std::string::npos);
}

TEST_F(LauncherElsewhere, ArchIsToldItsOwnNames) {
  give("pacman", "pacman", R"([ "$2" != nlohmann-json ] && [ "$2" != python-matplotlib ])");
  const Outcome outcome = call("x");
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_NE(outcome.output.find("sudo pacman -S --needed nlohmann-json python-matplotlib\n"), std::string::npos) << outcome.output;
}

TEST_F(LauncherElsewhere, HomebrewIsToldItsOwnNames) {
  give("brew", "brew",
       "printf '%s\\n' gcc cmake ninja pkgconf tomlplusplus cli11 nlohmann-json sentencepiece highway libpng python python-matplotlib");
  const Outcome outcome = call("x");
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_NE(outcome.output.find(": brew install googletest\n"), std::string::npos) << outcome.output;
}

TEST_F(LauncherElsewhere, WithoutAManagerWhatIsNeededIsNamed) {
  const Outcome outcome = call("x");
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_NE(outcome.output.find("no package manager is known here"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("toml++ CLI11 nlohmann-json SentencePiece Highway libpng GoogleTest"), std::string::npos) << outcome.output;
}

TEST_F(LauncherElsewhere, NothingIsSaidWhereAllIsInstalled) {
  give("pacman", "pacman", "exit 0");
  const Outcome outcome = call("x");
  EXPECT_EQ(outcome.status, 7) << outcome.output;
  EXPECT_EQ(outcome.output.find("pacman"), std::string::npos) << outcome.output;
}

// Debian's names stay the one list that .ci/run installs, and every row of the table has a name for every system.
TEST_F(Launcher, EverySystemHasANameForEveryPackage) {
  std::istringstream rows(file_text(clone_ / "cmake" / "packages.txt"));
  std::size_t count = 0;
  for (std::string row; std::getline(rows, row);) {
    if (row.starts_with('#')) continue;
    std::istringstream words(row);
    std::size_t columns = 0;
    for (std::string word; words >> word;) ++columns;
    EXPECT_EQ(columns, 5U) << row;
    ++count;
  }
  EXPECT_EQ(text_of_list(), shell("grep -v '^#' cmake/packages.txt | awk '{print $2}'", clone_).output);
  EXPECT_GE(count, 10U);
}

TEST_F(Launcher, RefusesAnUnknownPreset) {
  const Outcome outcome = call("--preset quick x");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("choose cpu, cuda or asan"), std::string::npos);
  EXPECT_EQ(call("x --preset").status, 2);
}

}  // namespace
}  // namespace tilewave
