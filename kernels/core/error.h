// The only error path: sentences that say what was wrong, where, and what to try.
// Error ends a command with exit code 1 (a run that failed); InputError with exit code 2 (usage, recipe, input file).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tilewave {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InputError : public Error {
 public:
  using Error::Error;
};

// The parts, streamed one after another.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

}  // namespace tilewave

// A contract of the caller; holds in Release too. The parts are streamed into the sentence.
#define TW_CHECK(condition, ...)                                                \
  do {                                                                          \
    if (!(condition)) throw ::tilewave::Error(::tilewave::concat(__VA_ARGS__)); \
  } while (false)

// A condition on what a person brought: a recipe, a file, the command line.
#define TW_CHECK_INPUT(condition, ...)                                               \
  do {                                                                               \
    if (!(condition)) throw ::tilewave::InputError(::tilewave::concat(__VA_ARGS__)); \
  } while (false)
