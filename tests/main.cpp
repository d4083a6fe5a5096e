// The test program: GoogleTest plus --data DIR (the tests folder, for fixtures) and --program FILE (the command line under test),
// so that it also runs away from its build tree.
#include <gtest/gtest.h>
#include <string_view>

#include "tests/test_environment.h"

namespace tilewave {

TestEnvironment& test_environment() {
  static TestEnvironment environment;
  return environment;
}

}  // namespace tilewave

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--data") tilewave::test_environment().data = argv[i + 1];
    if (option == "--program") tilewave::test_environment().program = argv[i + 1];
  }
  return RUN_ALL_TESTS();
}
