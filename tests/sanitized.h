// Whether the address sanitizer is in, which needs more addresses than a limit on them leaves.
#pragma once

namespace tilewave {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tilewave
