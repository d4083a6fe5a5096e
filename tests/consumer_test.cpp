// A user's project (examples/) builds and runs against the installed package and against the sources.
// It takes compiler and flags from the build tree that made the tests, which writes them into consumer.cmake.
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class Consumer : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(build_ / "consumer.cmake")) GTEST_SKIP() << "the build tree is not around --program";
  }

  void configure_build_run(const std::string& options, const std::string& folder) {
    const Outcome outcome =
        shell("cmake -G Ninja -C " + quoted((build_ / "consumer.cmake").string()) + " " + options + " -S " +
                  quoted((data_ / ".." / "examples").lexically_normal().string()) + " -B " + quoted(folder) + " && cmake --build " +
                  quoted(folder) + " --target own_operation && " + quoted(folder) + "/own_operation",
              folder_.path());
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_TRUE(outcome.output.ends_with("\nthe gated linear unit's gradients are right\n")) << outcome.output;
  }

  TemporaryFolder folder_;
  fs::path data_ = fs::absolute(test_environment().data).lexically_normal();
  fs::path build_ = fs::absolute(test_environment().program).lexically_normal().parent_path().parent_path();
};

TEST_F(Consumer, OfTheInstalledPackage) {
  const fs::path prefix = folder_.path() / "prefix";
  const Outcome installed = shell("cmake --install " + quoted(build_.string()) + " --prefix " + quoted(prefix.string()), folder_.path());
  ASSERT_EQ(installed.status, 0) << installed.output;
  EXPECT_FALSE(fs::exists(prefix / "include" / "tilewave" / "kernels" / "cpu"));
  for (const char* file :
       {"share/bash-completion/completions/tilewave", "share/zsh/site-functions/_tilewave", "share/fish/vendor_completions.d/tilewave.fish",
        "share/man/man1/tilewave.1", "share/tilewave/recipe.schema.json"}) {
    ASSERT_TRUE(fs::exists(prefix / file)) << file;
    EXPECT_GT(fs::file_size(prefix / file), 1000u) << file;
  }
  configure_build_run("-D CMAKE_PREFIX_PATH=" + quoted(prefix.string()), "consumer");
  const Outcome all = shell("cmake --build consumer && consumer/training_loop 1", folder_.path());  // the models' headers too
  EXPECT_EQ(all.status, 0) << all.output;
}

TEST_F(Consumer, OfTheSources) {
  if (file_text(build_ / "consumer.cmake").find("ccache") == std::string::npos) {
    GTEST_SKIP() << "compiles all floors a second time, which takes ccache to be quick";
  }
  const fs::path source = (data_ / "..").lexically_normal(), beside = source / "build-consumer";  // where ccache finds what build/ compiled
  fs::remove_all(beside);
  configure_build_run("-D TILEWAVE_SOURCE=" + quoted(source.string()), beside.string());
  fs::remove_all(beside);
}

}  // namespace
}  // namespace tilewave
