// The Python package over libtilewave, the C interface by itself, and PyTorch beside tilewave: scripts that a Python runs
// (TILEWAVE_PYTHON names it, python3 otherwise), with the libraries of the build tree.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>
#include <string>

#include "tests/sanitized.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class BesideTheLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "programs that are not sanitized cannot load a library that is";
    if (!fs::exists(root_ / "python")) GTEST_SKIP() << "the sources are not beside --data";
    if (!fs::exists(library_)) GTEST_SKIP() << library_ << " is not there; TILEWAVE_INTERFACE builds it";
  }

  static std::string python() {
    const char* named = std::getenv("TILEWAVE_PYTHON");
    return quoted(named != nullptr ? named : "python3");
  }
  static bool has(const std::string& module) { return shell(python() + " -c 'import " + module + "'", "/").status == 0; }

  Outcome run(const std::string& script) {
    return shell("TILEWAVE_LIBRARY=" + quoted(library_.string()) + " TILEWAVE_PROGRAM=" + quoted(program_.string()) +
                     " PYTHONPATH=" + quoted((root_ / "python").string()) + " " + python() + " -B " + script,
                 folder_.path());
  }

  TemporaryFolder folder_;
  fs::path program_ = fs::absolute(test_environment().program).lexically_normal();
  fs::path root_ = fs::absolute(test_environment().data / "..").lexically_normal();
  fs::path library_ = program_.parent_path() / "lib" / "libtilewave.so";
};

struct Script {
  const char* name;
  const char* needs;  // a module; null: Python alone

  friend void PrintTo(const Script& script, std::ostream* stream) { *stream << script.name; }
};

class PythonPackage : public BesideTheLibrary, public testing::WithParamInterface<Script> {};
INSTANTIATE_TEST_SUITE_P(Scripts, PythonPackage,
                         testing::Values(Script{"test_package", nullptr}, Script{"test_numpy", "numpy"}, Script{"test_torch", "torch"},
                                         Script{"test_examples", nullptr}),
                         [](const auto& script) { return std::string(script.param.name); });

TEST_P(PythonPackage, IsRight) {
  const Script& script = GetParam();
  if (shell(python() + " --version", "/").status != 0)
    GTEST_SKIP() << "there is no python3: python/tests/" << script.name << " was NOT run";
  if (script.needs != nullptr && !has(script.needs))
    GTEST_SKIP() << python() << " has no " << script.needs << ", so python/tests/" << script.name
                 << ".py was NOT run (TILEWAVE_PYTHON names one)";
  const Outcome outcome = run(quoted((root_ / "python" / "tests" / (std::string(script.name) + ".py")).string()));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("\nOK"), std::string::npos) << outcome.output;
}

TEST(PythonProject, HasTheVersionOfTheBuild) {
  const fs::path root = test_environment().data / "..";
  if (!fs::exists(root / "pyproject.toml")) GTEST_SKIP() << "the sources are not beside --data";
  std::smatch build, project;
  const std::string cmake = file_text(root / "CMakeLists.txt"), python = file_text(root / "pyproject.toml");
  ASSERT_TRUE(std::regex_search(cmake, build, std::regex(R"(project\(tilewave VERSION (\S+))")));
  ASSERT_TRUE(std::regex_search(python, project, std::regex(R"re(\nversion = "([^"]+)")re")));
  EXPECT_EQ(build[1], project[1]);
}

class PytorchParity : public BesideTheLibrary {};

// The commands of docs/use/pytorch.md as they stand there, then its script.
TEST_F(PytorchParity, FiftyStepsAgree) {
  if (!has("torch, safetensors"))
    GTEST_SKIP() << python() << " has no torch and safetensors, so examples/pytorch_parity.py was NOT run (TILEWAVE_PYTHON names one)";
  write_program(folder_.path() / "tilewave", "#!/bin/sh\nexec " + quoted(program_.string()) + " \"$@\"\n");
  for (const char* name : {"recipes", "README.md", "examples"}) fs::create_symlink(root_ / name, folder_.path() / name);
  std::istringstream page(file_text(root_ / "docs" / "use" / "pytorch.md"));
  std::string commands, line;
  for (bool inside = false; std::getline(page, line);) {
    if (line.starts_with("```")) {
      inside = line == "```bash";
    } else if (inside) {
      commands += line + "\n";
    }
  }
  const Outcome made = shell("set -e\n" + commands, folder_.path());
  ASSERT_EQ(made.status, 0) << made.output;
  const Outcome compared = run("examples/pytorch_parity.py weights.safetensors batches.safetensors steps.safetensors");
  EXPECT_EQ(compared.status, 0) << compared.output;
  EXPECT_TRUE(compared.output.starts_with("50 steps: loss ")) << compared.output;
  // Another second step is seen.
  const std::string other = "sed 's/step \\/ WARMUP/(step + (step == 2)) \\/ WARMUP/' examples/pytorch_parity.py >other.py";
  ASSERT_EQ(shell(other, folder_.path()).status, 0);
  ASSERT_NE(file_text(folder_.path() / "other.py"), file_text(root_ / "examples" / "pytorch_parity.py"));
  EXPECT_EQ(run("other.py weights.safetensors batches.safetensors steps.safetensors").status, 1);
}

TEST_F(PytorchParity, TheScriptIsShort) {
  const std::string text = file_text(root_ / "examples" / "pytorch_parity.py");
  EXPECT_LE(std::ranges::count(text, '\n'), 60);
}

class CInterface : public BesideTheLibrary {};

TEST_F(CInterface, ShowsItsOwnNamesAlone) {
  const Outcome names = shell("nm -D --defined-only " + quoted(library_.string()), "/");
  if (names.status != 0) GTEST_SKIP() << "there is no nm: " << names.output;
  std::istringstream lines(names.output);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_NE(line.find(" T tw_"), std::string::npos) << line;
  EXPECT_GE(count, 10);
}

// The header is C, and a program in C multiplies, plans and hears what is wrong.
TEST_F(CInterface, ServesAProgramInC) {
  if (shell("cc --version", "/").status != 0) GTEST_SKIP() << "there is no cc: the program in C was NOT built";
  const std::string lib = quoted(library_.parent_path().string());
  const Outcome built = shell("cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I " + quoted((root_ / "include").string()) + " " +
                                  quoted((root_ / "examples" / "product.c").string()) + " -L " + lib + " -ltilewave -Wl,-rpath," + lib +
                                  " -Wl,-rpath-link," + lib + " -o product",
                              folder_.path());
  ASSERT_EQ(built.status, 0) << built.output;
  const Outcome ran = shell("./product " + quoted((root_ / "recipes" / "tiny.toml").string()), folder_.path());
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(ran.output.starts_with("11.5 26.5\n18.5 46.5\n")) << ran.output;
  EXPECT_NE(ran.output.find("\"kind\": \"step\""), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("\nrefused: tokens has rows 2 elements apart, fewer than its 3 columns.\n"), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace tilewave
