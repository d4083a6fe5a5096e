// The warpgroup's product of wgmma.h with 64 columns: 32 sums a thread, as there.
#pragma once

#include "kernels/cuda/prim/wgmma.h"

namespace tilewave {

#define TW_REGISTERS_64                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TW_ACCUMULATORS_4(i) "+f"(accumulators[i]), "+f"(accumulators[(i) + 1]), "+f"(accumulators[(i) + 2]), "+f"(accumulators[(i) + 3])
#define TW_ACCUMULATORS_64                                                                                                               \
  TW_ACCUMULATORS_4(0), TW_ACCUMULATORS_4(4), TW_ACCUMULATORS_4(8), TW_ACCUMULATORS_4(12), TW_ACCUMULATORS_4(16), TW_ACCUMULATORS_4(20), \
      TW_ACCUMULATORS_4(24), TW_ACCUMULATORS_4(28)
#define TW_WGMMA_64(type)                                                                                                \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type \
               " {" TW_REGISTERS_64 "}, %32, %33, add, 1, 1, %35, %36;\n}"                                               \
               : TW_ACCUMULATORS_64                                                                                      \
               : "l"(rows), "l"(cols), "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(kRows)), "n"(static_cast<int>(kCols)))
#define TW_WGMMA_64_FROM_REGISTERS(type)                                                                                 \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type \
               " {" TW_REGISTERS_64 "}, {%32, %33, %34, %35}, %36, add, 1, 1, %38;\n}"                                   \
               : TW_ACCUMULATORS_64                                                                                      \
               : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(cols), "r"(static_cast<int>(accumulate)),   \
                 "n"(static_cast<int>(kCols)))

template <class T, Fastest kRows, Fastest kCols>
__device__ __forceinline__ void wgmma_64_columns(float (&accumulators)[32], std::uint64_t rows, std::uint64_t cols, bool accumulate) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>, "the tensor cores take these two in either major");
  if constexpr (std::is_same_v<T, bf16>) {
    TW_WGMMA_64("bf16");
  } else {
    TW_WGMMA_64("f16");
  }
}

template <class T, Fastest kCols>
__device__ __forceinline__ void wgmma_64_columns(float (&accumulators)[32], const std::uint32_t (&rows)[4], std::uint64_t cols,
                                                 bool accumulate) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>, "the tensor cores take these two in either major");
  if constexpr (std::is_same_v<T, bf16>) {
    TW_WGMMA_64_FROM_REGISTERS("bf16");
  } else {
    TW_WGMMA_64_FROM_REGISTERS("f16");
  }
}

#undef TW_REGISTERS_64
#undef TW_ACCUMULATORS_4
#undef TW_ACCUMULATORS_64
#undef TW_WGMMA_64
#undef TW_WGMMA_64_FROM_REGISTERS

}  // namespace tilewave
