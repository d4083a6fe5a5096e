// What a person is told when a command fails: one sentence on stderr, whatever the exception, and the exit code that goes with it.
#pragma once

#include <cstdint>
#include <string>

namespace tilewave {

// What is under way, for the sentence, and whether it takes --threads, which is then advised.
enum class Threads : std::uint8_t { fixed, optional };
void name_what_is_done(const std::string& command, Threads threads);

// Within a catch block: says the exception under way; 2 for an InputError, else 1. Takes no memory where memory has run out.
int report_failure() noexcept;

// An exception that nobody catches, in a thread of a library's for one, then is a sentence and exit code 1 too.
void report_uncaught_failures();

}  // namespace tilewave
