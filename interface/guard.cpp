#include "interface/guard.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

// Of fixed size, so that a sentence about memory that ran out takes none.
constexpr std::size_t kMessageBytes = 4096;
thread_local std::array<char, kMessageBytes> message{};

void say(const char* text) noexcept {
  std::strncpy(message.data(), text, kMessageBytes - 1);
  message.back() = '\0';
}

}  // namespace

tw_status guarded(const std::function<tw_status()>& body) noexcept {
  try {
    return body();
  } catch (const InputError& error) {
    say(error.what());
    return TW_INPUT;
  } catch (const std::bad_alloc&) {
    say("out of memory: the process could not get what this takes; ask for less, or close what else holds memory.");
  } catch (const std::exception& error) {
    say(error.what());
  } catch (...) {
    say("something was thrown that says nothing of itself; please report it with what was called.");
  }
  return TW_FAILED;
}

char* handed_over(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace tilewave

const char* tw_message(void) { return tilewave::message.data(); }
void tw_free(char* text) { std::free(text); }
