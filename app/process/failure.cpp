// Sentences for exceptions, our own and the language's. Where memory has run out, the sentence is put together without any.
#include "app/process/failure.h"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

#include "app/process/refused_memory.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

std::string done = "tilewave";
Threads threads_of_it = Threads::fixed;

void write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void say(std::string_view sentence) noexcept {
  write_all("tilewave: ");
  write_all(sentence);
  write_all("\n");
}

using MemoryText = std::array<char, 32>;

MemoryText memory_text(double bytes) noexcept {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024.0 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024.0;
  MemoryText text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

struct HeldMemory {
  double addresses = 0.0, resident = 0.0;  // bytes
};
HeldMemory held_memory() noexcept {
  std::array<char, 128> text{};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t count = read(file, text.data(), text.size() - 1);
  close(file);
  long addresses = 0, resident = 0;
  if (count <= 0 || std::sscanf(text.data(), "%ld %ld", &addresses, &resident) != 2) return {};
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return {.addresses = static_cast<double>(addresses) * page, .resident = static_cast<double>(resident) * page};
}

void say_memory() noexcept {
  const HeldMemory held = held_memory();
  std::array<char, 96> wanted{}, limit{};
  std::array<char, 1024> sentence{};
  if (const std::size_t bytes = last_refused_bytes(); bytes > 0)
    std::snprintf(wanted.data(), wanted.size(), "%s more could not be had, and ", memory_text(static_cast<double>(bytes)).data());
  rlimit of_addresses{};
  const bool limited = getrlimit(RLIMIT_AS, &of_addresses) == 0 && of_addresses.rlim_cur != RLIM_INFINITY;
  if (limited)
    std::snprintf(limit.data(), limit.size(), " of the %s it may (ulimit -v)",
                  memory_text(static_cast<double>(of_addresses.rlim_cur)).data());
  std::snprintf(sentence.data(), sentence.size(), "there is not enough memory for %.40s: %sthe process holds %s%s; %sfree some memory.",
                done.c_str(), wanted.data(), memory_text(limited ? held.addresses : held.resident).data(), limit.data(),
                threads_of_it == Threads::optional
                    ? "ask for smaller sizes (batch.target_tokens, the model, the data), use fewer --threads, or "
                    : "");
  say(sentence.data());
}

void say_system(const std::system_error& error) {
  if (error.code() == std::errc::resource_unavailable_try_again) {
    say(concat("another thread could not be started for ", done, ": the limit of this user's processes or of memory is reached; ",
               threads_of_it == Threads::optional ? "use fewer --threads, or " : "", "raise the limit (ulimit -u)."));
  } else {
    say(concat("the system refused what ", done, " needs: ", error.code().message(), "; free what is short, or try again."));
  }
}

int say_exception() {
  try {
    throw;
  } catch (const InputError& error) {
    say(error.what());
    return kUsage;
  } catch (const Error& error) {
    say(error.what());
  } catch (const std::bad_alloc&) {
    say_memory();
  } catch (const std::length_error&) {
    say(concat("a size that ", done, " comes to is beyond what any memory holds; ask for smaller sizes."));
  } catch (const std::filesystem::filesystem_error& error) {
    say(concat(error.path1().string(), ": cannot be used: ", error.code().message(), "; check the path and its permissions."));
  } catch (const std::system_error& error) {
    say_system(error);
  } catch (const std::exception& error) {
    say(concat("a fault of tilewave's own has ended ", done, " (", error.what(), "); please report it with this command and its input."));
  } catch (...) {
    say(concat("a fault of tilewave's own has ended ", done, "; please report it with this command and its input."));
  }
  return kFailed;
}

[[noreturn]] void end_with_a_sentence() {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    if (std::current_exception()) {
      report_failure();
    } else {
      say("a fault of tilewave's own has ended it; please report it with this command and its input.");
    }
  }
  _exit(kFailed);
}

}  // namespace

void name_what_is_done(const std::string& command, Threads threads) {
  done = command;
  threads_of_it = threads;
}

int report_failure() noexcept {
  try {
    return say_exception();
  } catch (...) {  // no memory for the sentence
    say_memory();
    return kFailed;
  }
}

void report_uncaught_failures() { std::set_terminate(end_with_a_sentence); }

}  // namespace tilewave
