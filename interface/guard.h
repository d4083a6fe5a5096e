// Between C and C++: nothing that is thrown goes past here.
#pragma once

#include <functional>
#include <string>

#include "include/tilewave.h"

namespace tilewave {

// TW_OK, or the status of what `body` threw, whose sentence tw_message() then is.
tw_status guarded(const std::function<tw_status()>& body) noexcept;

// For tw_free to give back.
char* handed_over(const std::string& text);

// A text that may be absent.
inline std::string text_of(const char* text, const char* otherwise = "") { return text != nullptr ? text : otherwise; }

}  // namespace tilewave
