// Whether the CUDA back end is part of this build: a row names its launch under `if constexpr (kHasCuda)`. Private to
// this room: all other sources are the same in every build.
#pragma once

namespace tilewave {

#ifdef TILEWAVE_HAS_CUDA
inline constexpr bool kHasCuda = true;
#else
inline constexpr bool kHasCuda = false;
#endif

}  // namespace tilewave
