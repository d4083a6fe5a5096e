// Where the tests find their fixtures and the program they run.
#pragma once

#include <filesystem>

namespace tilewave {

struct TestEnvironment {
  std::filesystem::path data = "tests";        // the tests folder of the sources
  std::filesystem::path program = "tilewave";  // the command line
};

TestEnvironment& test_environment();

}  // namespace tilewave
