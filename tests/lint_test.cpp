// .ci/lint on files with one fault each: what the hooks and CI let nobody commit.
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class Lint : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(root_ / ".ci" / "lint")) GTEST_SKIP() << "the sources are not beside --data";
    if (shell("python3 --version", "/").status != 0) GTEST_SKIP() << "there is no python3 to run .ci/lint";
    fs::create_directories(clone_ / ".ci");
    for (const char* name : {".ci/lint", ".ci/run"}) fs::copy_file(root_ / name, clone_ / name);
  }

  // What lint says of one file with that text.
  Outcome of(const std::string& file, const std::string& text) {
    write_text(clone_ / file, text);
    return shell(".ci/lint " + quoted(file), clone_);
  }
  Outcome of_text(const std::string& text) { return of("notes.md", text); }

  // The repository's own file with a piece of it replaced.
  Outcome of_changed(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = file_text(root_ / file);
    if (clean_.insert(file).second) {
      const Outcome clean = of(file, text);
      EXPECT_EQ(clean.status, 0) << clean.output;
    }
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << file << " lacks " << from;
    return of(file, at == std::string::npos ? text : text.replace(at, from.size(), to));
  }

  static void refused(const Outcome& outcome, const std::string& why) {
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    EXPECT_NE(outcome.output.find(why), std::string::npos) << outcome.output;
  }

  TemporaryFolder folder_;
  std::set<std::string> clean_;  // files that were seen to pass as they are
  fs::path root_ = (fs::absolute(test_environment().data) / "..").lexically_normal(), clone_ = folder_.path() / "clone";
};

TEST_F(Lint, TextHasOneForm) {
  EXPECT_EQ(of_text("one\ntwo\n").status, 0);
  refused(of_text("one"), "does not end with a line feed");
  refused(of_text("one\n\n"), "ends with an empty line");
  refused(of_text("one \ntwo\n"), "line 1 ends with a space");
  refused(of_text("one\r\n"), "carriage return");
  refused(of_text("one\n<<<<<<< ours\n"), "line 2 is the mark of a conflict");
  refused(of_text("\xFF\n"), "is no UTF-8");
  refused(of_text(std::string(1 << 20, 'x') + "\n"), "is 1 MiB or larger");
  refused(of("a.json", "{\"a\": }\n"), "cannot be read");
}

// Spelled in pieces, so that this file passes the check.
TEST_F(Lint, NoRegistryIsNamed) {
  for (const char* host : {"gh"
                           "cr.io/x",
                           "https://py"
                           "pi.org/simple",
                           "doc"
                           "ker.io/library/debian",
                           "registry"
                           ".example.com"}) {
    refused(of_text(std::string("see ") + host + "\n"), "names a registry's host");
  }
  EXPECT_EQ(of_text("debian:12 and nvidia/cuda:13.0.1 and deb.txt\n").status, 0);
}

TEST_F(Lint, WorkflowsTakeCommandsAndTwoActions) {
  if (shell("python3 -c 'import yaml'", "/").status != 0) GTEST_SKIP() << "there is no PyYAML";
  const std::string fast = ".github/workflows/fast.yml";
  refused(of_changed(fast, "actions/cache@v4", "somebody/cache@v4"), "uses somebody/cache@v4; write a command instead");
  refused(of_changed(fast, "    timeout-minutes: 120\n", ""), "job fast lacks runs-on or timeout-minutes");
  refused(of_changed(fast, "permissions:\n  contents: read\n", ""), "lacks name, on, permissions or jobs");
  refused(of_changed(fast, "packages format", "packages fromat"), "the step fromat, which it does not have");
  refused(of_changed(fast, "jobs:", "jobs: :"), "is no YAML");
}

TEST_F(Lint, HooksAndCitationNameNothingFromElsewhere) {
  if (shell("python3 -c 'import yaml'", "/").status != 0) GTEST_SKIP() << "there is no PyYAML";
  refused(of_changed(".pre-commit-config.yaml", "repo: local", "repo: elsewhere"), "takes hooks from elsewhere");
  refused(of_changed(".pre-commit-config.yaml", "language: system", "language: python"), "would be installed");
  refused(of_changed("CITATION.cff", "The tilewave developers", "Somebody"), "has other authors");
  refused(of_changed("CITATION.cff", "license:", "doi: 10.1/1\nlicense:"), "has doi");
  refused(of_changed("CITATION.cff", "\nversion: ", "\nversoin: "), "lacks version");
  refused(of_changed(".github/ISSUE_TEMPLATE/fault.yml", "description: Some", "descriptoin: Some"), "is no issue form");
}

TEST_F(Lint, TheDockerfileHasBothStagesAndBringsNothingFromElsewhere) {
  refused(of_changed("Dockerfile", "nvidia/cuda:13.0.1-devel", "example.com/nvidia/cuda:13.0.1-devel"), "names a registry's host");
  refused(of_changed("Dockerfile", "debian:12-slim", "debian"), "names no version");
  refused(of_changed("Dockerfile", "AS cuda\n", "AS gpu\n"), "has no stage cuda");
  refused(of_changed("Dockerfile", "USER tilewave\n", ""), "the stage cpu runs as root");
  refused(of_changed("Dockerfile", "--from=cpu-build", "--from=cpu-built"), "copies from cpu-built, which is no stage before");
  refused(of_changed("Dockerfile", "RUN useradd", "RUN curl -O x && useradd"), "brings something from elsewhere");
  refused(of_changed("Dockerfile", " --no-install-recommends", ""), "installs more than asked for");
  refused(of_changed("Dockerfile", "CMD [\"--help\"]", "CMD --help"), "CMD is no list of words");
  refused(of_changed("Dockerfile", "COPY . /src", "ADD . /src"), "has ADD");
}

TEST_F(Lint, ACommitsSubjectIsAreaAndWhat) {
  const auto message = [&](const std::string& text) {
    write_text(clone_ / "message", text);
    return shell(".ci/lint --message message", clone_);
  };
  EXPECT_EQ(message("gemm: a tile of 192x96\n\nIt fills one wave.\n").status, 0);
  EXPECT_EQ(message("tests, docs: what help says\n").status, 0);
  refused(message("A tile of 192x96\n"), "is not \"area: what\"");
  refused(message("gemm: " + std::string(70, 'x') + "\n"), "the subject has 76 characters");
  refused(message("gemm: a tile\nmore\n"), "an empty line");
}

}  // namespace
}  // namespace tilewave
