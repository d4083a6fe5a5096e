// One sentence and an exit code for every exception, also for one that nobody catches.
#include "app/process/failure.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "kernels/core/error.h"
#include "tests/sanitized.h"

namespace tilewave {
namespace {

struct Told {
  int code = 0;
  std::string sentence;
};

template <class Fn>
Told told(Fn&& fn) {
  testing::internal::CaptureStderr();
  Told told;
  try {
    fn();
  } catch (...) {
    told.code = report_failure();
  }
  told.sentence = testing::internal::GetCapturedStderr();
  return told;
}

TEST(Failure, IsOneSentenceWithItsExitCode) {
  name_what_is_done("tilewave train", Threads::optional);
  const std::error_code busy = std::make_error_code(std::errc::resource_unavailable_try_again);
  const auto check = [](const Told& told, int code, const std::string& part) {
    EXPECT_EQ(told.code, code) << told.sentence;
    EXPECT_NE(told.sentence.find(part), std::string::npos) << told.sentence;
    EXPECT_TRUE(told.sentence.starts_with("tilewave: ") && told.sentence.ends_with(".\n")) << told.sentence;
    EXPECT_EQ(std::count(told.sentence.begin(), told.sentence.end(), '\n'), 1) << told.sentence;
    for (const char* foreign : {"std::", "vector", "basic_string", "filesystem error", "bad_alloc"})
      EXPECT_EQ(told.sentence.find(foreign), std::string::npos) << told.sentence;
  };
  check(told([] { throw InputError("x.toml: is wrong."); }), 2, "tilewave: x.toml: is wrong.");
  check(told([] { throw Error("it failed."); }), 1, "tilewave: it failed.");
  check(told([] { throw std::bad_alloc(); }), 1, "there is not enough memory for tilewave train: ");
  check(told([] { std::vector<int>().reserve(std::vector<int>().max_size() + 1); }), 1, "beyond what any memory holds");
  check(told([] { std::string().resize(std::string().max_size() + 1); }), 1, "beyond what any memory holds");
  check(told([&] { throw std::system_error(busy); }), 1, "another thread could not be started for tilewave train: ");
  check(told([] { throw std::system_error(std::make_error_code(std::errc::io_error)); }), 1, "Input/output error");
  check(told([] { (void)std::filesystem::file_size("/nowhere/at all"); }), 1, "/nowhere/at all: cannot be used: No such file or directory");
  check(told([] { throw std::out_of_range("map::at"); }), 1, "a fault of tilewave's own has ended tilewave train (map::at)");
  check(told([] { throw 7; }), 1, "a fault of tilewave's own");
  EXPECT_NE(told([] { throw std::bad_alloc(); }).sentence.find("use fewer --threads"), std::string::npos);
  name_what_is_done("tilewave devices", Threads::fixed);
  EXPECT_EQ(told([] { throw std::bad_alloc(); }).sentence.find("--threads"), std::string::npos) << "an option that it has not";
}

TEST(Failure, SaysHowMuchMemoryWasAskedFor) {
  if (kSanitized) GTEST_SKIP() << "under the address sanitizer";
  volatile std::size_t bytes = std::size_t{3} << 60;
  const std::string sentence = told([&] { ::operator delete(::operator new(bytes)); }).sentence;
  EXPECT_NE(sentence.find("3.0 EiB more could not be had, and the process holds "), std::string::npos) << sentence;
}

void run_out_of_memory() { throw std::bad_alloc(); }

// In whichever thread: a library's own threads hand nothing on.
TEST(FailureDeathTest, OneThatNobodyCatchesIsASentenceToo) {
  const auto uncaught = [](auto thrown) {
    report_uncaught_failures();
    std::thread([&] { throw thrown; }).join();
  };
  EXPECT_EXIT(uncaught(std::bad_alloc()), testing::ExitedWithCode(1), "tilewave: there is not enough memory for ");
  EXPECT_EXIT(uncaught(Error("it failed.")), testing::ExitedWithCode(1), "tilewave: it failed\\.");
  const auto within_noexcept = [] {
    report_uncaught_failures();
    []() noexcept { run_out_of_memory(); }();
  };
  EXPECT_EXIT(within_noexcept(), testing::ExitedWithCode(1), "tilewave: there is not enough memory for ");
  const auto without_an_exception = [] {
    report_uncaught_failures();
    std::terminate();
  };
  EXPECT_EXIT(without_an_exception(), testing::ExitedWithCode(1), "tilewave: a fault of tilewave's own has ended it");
}

}  // namespace
}  // namespace tilewave
