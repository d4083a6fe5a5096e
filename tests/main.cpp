// The test program: GoogleTest plus --data DIR (the tests folder, for fixtures) and --program FILE (the command line under test),
// so that it also runs away from its build tree, and --simd NAME (the instruction set that the CPU's kernels take in this process, in the
// place of the machine's best). Ends with what was skipped or failed and why, and "N passed, N failed, N skipped".
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <string>
#include <string_view>

#include "kernels/cpu/core/simd_targets.h"
// Highway behind it.
#include <hwy/targets.h>

#include "kernels/core/error.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

class Summary : public testing::EmptyTestEventListener {
  void OnTestSuiteEnd(const testing::TestSuite& suite) override {
    if (!GTEST_FLAG_GET(brief)) return;
    std::cout << suite.name() << ": " << suite.successful_test_count() << " of " << suite.test_to_run_count() << " passed ("
              << suite.elapsed_time() << " ms)\n"
              << std::flush;
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    if (result.Passed()) return;
    std::string& report = result.Skipped() ? skipped_ : failed_;
    report += concat(result.Skipped() ? "SKIPPED " : "FAILED ", test.test_suite_name(), ".", test.name(), ": ");
    for (int part = 0; part < result.total_part_count(); ++part) report += result.GetTestPartResult(part).message();
    report += '\n';
  }

  void OnTestProgramEnd(const testing::UnitTest& tests) override {
    std::cout << skipped_ << failed_ << tests.successful_test_count() << " passed, " << tests.failed_test_count() << " failed";
    if (tests.skipped_test_count() > 0) std::cout << ", " << tests.skipped_test_count() << " skipped";
    std::cout << std::endl;
  }

  std::string skipped_, failed_;
};

}  // namespace

TestEnvironment& test_environment() {
  static TestEnvironment environment;
  return environment;
}

// Returns the names of those there are where `name` is none of them, else nothing.
static std::string take_simd(std::string_view name) {
  std::string others;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (hwy::TargetName(target) == name) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(target);
      test_environment().simd = name;
      return {};
    }
    others += concat(others.empty() ? "" : ", ", hwy::TargetName(target));
  }
  return others;
}

}  // namespace tilewave

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--data" && i + 1 < argc) {
      tilewave::test_environment().data = argv[i + 1];
    } else if (option == "--program" && i + 1 < argc) {
      tilewave::test_environment().program = argv[i + 1];
    } else if (option == "--simd" && i + 1 < argc) {
      const std::string others = tilewave::take_simd(argv[i + 1]);
      if (others.empty()) continue;
      std::cerr << "--simd " << argv[i + 1] << ": this machine has " << others << ".\n";
      return 2;
    } else {
      std::cerr << "tilewave_tests takes --data DIR, --program FILE, --simd NAME and GoogleTest's options, not " << option << ".\n";
      return 2;
    }
  }
  testing::UnitTest::GetInstance()->listeners().Append(new tilewave::Summary);  // GoogleTest owns it
  const int failed = RUN_ALL_TESTS();
  const bool one_of_several = std::getenv("GTEST_TOTAL_SHARDS") != nullptr;
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0 && !one_of_several && !GTEST_FLAG_GET(list_tests)) {
    std::cerr << "--gtest_filter selects no test.\n";
    return 2;
  }
  return failed;
}
