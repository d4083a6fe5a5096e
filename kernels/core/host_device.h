// Marks a function that the host and the device compiler both build.
#pragma once

#if defined(__CUDACC__)
#define TW_HOST_DEVICE __host__ __device__
#else
#define TW_HOST_DEVICE
#endif
