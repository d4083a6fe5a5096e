// The SIMD targets that a vectorised file is compiled for (Highway's foreach_target); included before Highway.
#pragma once

// Targets whose vectors have no size known to the compiler cannot stand in arrays; the others add nothing to those kept.
#ifndef TILEWAVE_FEW_SIMD_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
#else  // the oldest and the newest alone, where sanitizers make a compiler slow
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL | HWY_SSE4 | HWY_AVX2)
#endif
