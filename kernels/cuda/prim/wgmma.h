// The warpgroup's matrix product (PTX ISA, "wgmma.mma_async"): 64 rows by kColumns columns of fp32 sums in the registers of 128
// threads, 16 of K at a time, both operands in shared memory swizzled by 128 bytes, each with K or the other dimension fastest.
// Thread t of warp w holds, of columns 8 g + 2 (t % 4) and the next, row 16 w + t / 4 in sums[4 g], [4 g + 1] and the row 8 below
// in [4 g + 2], [4 g + 3].
#pragma once

#include <type_traits>

#include "kernels/core/dtype.h"
#include "kernels/cuda/prim/mbarrier.h"

namespace tilewave {

// Which dimension of an operand in shared memory is the fastest.
enum class Fastest : int { k, other };

// An operand is made of boxes of 64 x 64 elements, 128 bytes wide and swizzled, one after another along the dimension that is
// not K: 64 rows of 64 k, or 64 k of 64 rows. Where it has a multiple of 32 rows its boxes may have so many: 32 rows of 64 k, or 64 k of
// 32 rows, 64 bytes wide and swizzled as such.
inline constexpr int kBox = 64, kHalfBox = 32;
inline constexpr int kBoxBytes = kBox * kBox * 2, kHalfBoxBytes = kHalfBox * kBox * 2;

// Where an operand's first box lies, in a descriptor's units of 16 bytes (a cluster's block has its rank above these bits).
__device__ __forceinline__ std::uint32_t operand_at(const void* box) { return shared_address(box) >> 4 & 0x3fff; }

// The descriptor of the operand that starts `box` boxes and `step` times 16 of K behind that place. Bits: address 0-13, leading offset
// 16-29 (between boxes; K-major operands have none), stride offset 32-45 (8 lines), all in units of 16 bytes, swizzle mode 62-63 (1 for
// lines of 128 bytes, 2 for 64).
template <Fastest kFastest, int kBoxRows = kBox>
__device__ __forceinline__ std::uint64_t operand(std::uint32_t at, int step, int box = 0) {
  static_assert(kBoxRows == kBox || kBoxRows == kHalfBox);
  constexpr std::uint32_t kLine = kFastest == Fastest::k ? 2 * kBox : 2 * kBoxRows;  // bytes
  constexpr std::uint32_t kStep = (kFastest == Fastest::k ? 32 : 16 * kLine) >> 4, kBoxes = kBoxRows * kBox * 2 >> 4;
  constexpr std::uint64_t kHigh = std::uint64_t{kLine == 128 ? 1 : 2} << 62 | std::uint64_t{8 * kLine >> 4} << 32;
  return kHigh | (at + (static_cast<std::uint32_t>(box) * kBoxes + static_cast<std::uint32_t>(step) * kStep + (kBoxes << 16)));
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most kPending committed groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

#define TW_REGISTERS_8 "%0, %1, %2, %3"
#define TW_REGISTERS_96                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TW_REGISTERS_128                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TW_REGISTERS_160 \
  TW_REGISTERS_128       \
  ", "                   \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define TW_REGISTERS_192                                                             \
  TW_REGISTERS_128                                                                   \
  ", "                                                                               \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TW_REGISTERS_256                                                                         \
  TW_REGISTERS_192                                                                               \
  ", "                                                                                           \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TW_ACCUMULATORS_4(i) "+f"(accumulators[i]), "+f"(accumulators[(i) + 1]), "+f"(accumulators[(i) + 2]), "+f"(accumulators[(i) + 3])
#define TW_ACCUMULATORS_16(i) TW_ACCUMULATORS_4(i), TW_ACCUMULATORS_4((i) + 4), TW_ACCUMULATORS_4((i) + 8), TW_ACCUMULATORS_4((i) + 12)
#define TW_ACCUMULATORS_8 TW_ACCUMULATORS_4(0)
#define TW_ACCUMULATORS_96 TW_ACCUMULATORS_16(0), TW_ACCUMULATORS_16(16), TW_ACCUMULATORS_16(32)
#define TW_ACCUMULATORS_128 TW_ACCUMULATORS_96, TW_ACCUMULATORS_16(48)
#define TW_ACCUMULATORS_160 TW_ACCUMULATORS_128, TW_ACCUMULATORS_16(64)
#define TW_ACCUMULATORS_192 TW_ACCUMULATORS_128, TW_ACCUMULATORS_16(64), TW_ACCUMULATORS_16(80)
#define TW_ACCUMULATORS_256 TW_ACCUMULATORS_192, TW_ACCUMULATORS_16(96), TW_ACCUMULATORS_16(112)
// After the sums come the two operands, whether to add to the sums, and whether each operand's other dimension is the fastest.
#define TW_WGMMA(columns, type, a, b, add, a_other, b_other)                                                                           \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type \
               " {" TW_REGISTERS_##columns "}, " a ", " b ", add, 1, 1, " a_other ", " b_other ";\n}"                                  \
               : TW_ACCUMULATORS_##columns                                                                                             \
               : "l"(rows), "l"(cols), "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(kRows)), "n"(static_cast<int>(kCols)))
#define TW_WGMMA_OF_TYPE(columns, a, b, add, a_other, b_other) \
  if constexpr (std::is_same_v<T, bf16>) {                     \
    TW_WGMMA(columns, "bf16", a, b, add, a_other, b_other);    \
  } else {                                                     \
    TW_WGMMA(columns, "f16", a, b, add, a_other, b_other);     \
  }

// sums = rows x cols, or sums + rows x cols. T is bf16 or f16.
template <class T, Fastest kRows, Fastest kCols, int kColumns>
__device__ __forceinline__ void wgmma(float (&accumulators)[kColumns / 2], std::uint64_t rows, std::uint64_t cols, bool accumulate) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>, "the tensor cores take these two in either major");
  static_assert(kColumns == 8 || kColumns == 96 || kColumns == 128 || kColumns == 160 || kColumns == 192 || kColumns == 256,
                "add the instruction of that width here");
  if constexpr (kColumns == 8) {
    TW_WGMMA_OF_TYPE(8, "%4", "%5", "%6", "%7", "%8")
  } else if constexpr (kColumns == 96) {
    TW_WGMMA_OF_TYPE(96, "%48", "%49", "%50", "%51", "%52")
  } else if constexpr (kColumns == 128) {
    TW_WGMMA_OF_TYPE(128, "%64", "%65", "%66", "%67", "%68")
  } else if constexpr (kColumns == 160) {
    TW_WGMMA_OF_TYPE(160, "%80", "%81", "%82", "%83", "%84")
  } else if constexpr (kColumns == 192) {
    TW_WGMMA_OF_TYPE(192, "%96", "%97", "%98", "%99", "%100")
  } else {
    TW_WGMMA_OF_TYPE(256, "%128", "%129", "%130", "%131", "%132")
  }
}

#define TW_WGMMA_FROM_REGISTERS(columns, type, a, b, add, b_other)                                                                     \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type \
               " {" TW_REGISTERS_##columns "}, {" a "}, " b ", add, 1, 1, " b_other ";\n}"                                             \
               : TW_ACCUMULATORS_##columns                                                                                             \
               : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(cols), "r"(static_cast<int>(accumulate)),                 \
                 "n"(static_cast<int>(kCols)))
#define TW_WGMMA_OF_TYPE_FROM_REGISTERS(columns, a, b, add, b_other) \
  if constexpr (std::is_same_v<T, bf16>) {                           \
    TW_WGMMA_FROM_REGISTERS(columns, "bf16", a, b, add, b_other);    \
  } else {                                                           \
    TW_WGMMA_FROM_REGISTERS(columns, "f16", a, b, add, b_other);     \
  }

// The same with the row operand in registers, which stay as they are until the product is done: a thread's rows[0] holds 2 (t % 4) and
// the next of K for row 16 w + t / 4, rows[1] for the row 8 below, rows[2] and rows[3] the same 8 further along K.
template <class T, Fastest kCols, int kColumns>
__device__ __forceinline__ void wgmma(float (&accumulators)[kColumns / 2], const std::uint32_t (&rows)[4], std::uint64_t cols,
                                      bool accumulate) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>, "the tensor cores take these two in either major");
  static_assert(kColumns == 8 || kColumns == 128 || kColumns == 192 || kColumns == 256, "add the instruction of that width here");
  if constexpr (kColumns == 8) {
    TW_WGMMA_OF_TYPE_FROM_REGISTERS(8, "%4, %5, %6, %7", "%8", "%9", "%10")
  } else if constexpr (kColumns == 128) {
    TW_WGMMA_OF_TYPE_FROM_REGISTERS(128, "%64, %65, %66, %67", "%68", "%69", "%70")
  } else if constexpr (kColumns == 192) {
    TW_WGMMA_OF_TYPE_FROM_REGISTERS(192, "%96, %97, %98, %99", "%100", "%101", "%102")
  } else {
    TW_WGMMA_OF_TYPE_FROM_REGISTERS(256, "%128, %129, %130, %131", "%132", "%133", "%134")
  }
}

#undef TW_REGISTERS_8
#undef TW_REGISTERS_96
#undef TW_REGISTERS_128
#undef TW_REGISTERS_160
#undef TW_REGISTERS_192
#undef TW_REGISTERS_256
#undef TW_ACCUMULATORS_4
#undef TW_ACCUMULATORS_16
#undef TW_ACCUMULATORS_8
#undef TW_ACCUMULATORS_96
#undef TW_ACCUMULATORS_128
#undef TW_ACCUMULATORS_160
#undef TW_ACCUMULATORS_192
#undef TW_ACCUMULATORS_256
#undef TW_WGMMA
#undef TW_WGMMA_OF_TYPE
#undef TW_WGMMA_FROM_REGISTERS
#undef TW_WGMMA_OF_TYPE_FROM_REGISTERS

}  // namespace tilewave
