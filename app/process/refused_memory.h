// How much was asked for when memory ran out, which the language's exception does not say.
#pragma once

#include <cstddef>

namespace tilewave {

std::size_t last_refused_bytes() noexcept;  // by operator new, in any thread; 0: nothing was refused, or it is not known

}  // namespace tilewave
