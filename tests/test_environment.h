// Where the tests find their fixtures and the program they run, and what they run on.
#pragma once

#include <filesystem>
#include <string>

namespace tilewave {

struct TestEnvironment {
  std::filesystem::path data = "tests";        // the tests folder of the sources
  std::filesystem::path program = "tilewave";  // the command line
  std::string simd;                            // the instruction set that the CPU's kernels take; empty: the machine's best
};

TestEnvironment& test_environment();

}  // namespace tilewave
