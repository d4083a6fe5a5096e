// What the kernels of this room share: D as a matrix [rows, K] times a few vectors [vectors, K], a row's words of 16 bytes wherever it
// begins, and how a CTA ends: its warps' sums meet in shared memory; where K is split over CTAs, the last to come of a tile's adds the
// parts, in order. So no sum depends on who was first.
#pragma once

#include <bit>

#include "kernels/cuda/gemm/simt/core_operand.h"
#include "kernels/gemm/gemv/gemv.h"
#include "kernels/gemm/gemv/gemv_words.h"

namespace tilewave {

inline constexpr int kGemvThreads = 32 * kGemvWarps;
// Of a CTA's warps, each with so many rows at a time, for a tile and so many columns: some tiles have more rows than all warps at once.
constexpr int gemv_sums(int rows, int columns) { return (rows * kGemvWarps > 128 ? rows * kGemvWarps : 128) * columns; }

template <class Sum>
struct GemvProblem {
  CoreOperand matrix, vectors;
  std::int64_t rows = 0;  // of the matrix
  int vector_count = 0;
  int tile_rows = 0;
  int depth = 0, part_depth = 0, split = 1;
  int words_end = 0;                             // of K: elements before it are read by words, those behind it one by one
  bool rows_along_cols = false;                  // the matrix's rows are D's columns in memory
  bool sum_matrix = false, sum_vectors = false;  // over K: the bias gradient
  GemmEpilogue epilogue;
  SplitKPartials<Sum> parts;
  unsigned* flags = nullptr;  // where K is split: of tiles, and then of groups of their parts
};

template <class T>
GemvProblem<Arithmetic<T>> gemv_problem_of(CudaQueue& queue, const GemmCall& call, bool shifted) {
  const CoreProblem<T> core = core_problem_of<T>(call, 1);
  const GemvSides sides = gemv_sides(call.problem, call.plan.tile);
  const bool rows_along_cols = sides.matrix_is_a == (call.args.d_major == Major::m);
  return {.matrix = rows_along_cols ? core.right : core.left,
          .vectors = rows_along_cols ? core.left : core.right,
          .rows = sides.rows,
          .vector_count = static_cast<int>(sides.vectors),
          .tile_rows = static_cast<int>(rows_of_tile(call.plan.tile)),
          .depth = static_cast<int>(core.depth),
          .part_depth = static_cast<int>(gemv_part_depth(core.depth, call.plan.split)),
          .split = call.plan.split,
          .words_end = gemv_words_end(core.depth, 16 / static_cast<std::int64_t>(sizeof(T)), shifted),
          .rows_along_cols = rows_along_cols,
          .sum_matrix = rows_along_cols ? core.sum_right : core.sum_left,
          .sum_vectors = rows_along_cols ? core.sum_left : core.sum_right,
          .epilogue = core.epilogue,
          .parts = core.parts,
          .flags = call.plan.split > 1 ? flags_of(queue, gemv_flags(call.plan.tiling.tiles, call.plan.split)) : nullptr};
}

// 16 bytes that are read once, past the first-level cache; zeros where they are not wanted.
__device__ __forceinline__ uint4 load_once(const uint4* at, bool wanted) {
  uint4 word;
  asm volatile(
      "{\n"
      ".reg .pred wanted;\n"
      "setp.ne.b32 wanted, %5, 0;\n"
      "mov.b32 %0, 0;\n"
      "mov.b32 %1, 0;\n"
      "mov.b32 %2, 0;\n"
      "mov.b32 %3, 0;\n"
      "@wanted ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];\n"
      "}"
      : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
      : "l"(at), "r"(static_cast<int>(wanted)));
  return word;
}
// The same for what the CTA's other warps or its neighbours read too.
__device__ __forceinline__ uint4 load_shared_by_many(const uint4* at, bool wanted) {
  uint4 word = make_uint4(0, 0, 0, 0);
  if (wanted) word = __ldg(at);
  return word;
}

// 16 bytes from byte `shift` of two words on.
template <class T>
__device__ __forceinline__ uint4 shifted_word(const uint4& low, const uint4& high, int shift) {
  std::uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  shift_words<sizeof(T)>(w, shift);
  return make_uint4(w[0], w[1], w[2], w[3]);
}

template <class T>
inline constexpr int kWordElements = 16 / static_cast<int>(sizeof(T));
template <class T>
struct WordElements {
  T at[kWordElements<T>];
};

// As many elements, `step` apart, as a word has; zeros behind the first `valid`.
template <class T>
__device__ __forceinline__ uint4 gather_word(const T* first, std::int64_t step, int valid) {
  auto elements = std::bit_cast<WordElements<T>>(make_uint4(0, 0, 0, 0));
#pragma unroll
  for (int i = 0; i < kWordElements<T>; ++i) {
    if (i < valid) elements.at[i] = first[i * step];
  }
  return std::bit_cast<uint4>(elements);
}

// The compiler must not see that an address is the same in every round: it would keep those of all rows and vectors in registers.
template <class T>
__device__ __forceinline__ const T* hidden(const T* address) {
  asm volatile("" : "+l"(address));
  return address;
}

// A row of elements that follow one another, by words. A shifted row begins within a word: each of its own lies in two of memory's.
template <class T, bool kShifted>
struct RowOfWords {
  static constexpr int kLoads = kShifted ? 2 : 1;
  const T* row;
  const uint4* words;
  int shift = 0;

  __device__ __forceinline__ explicit RowOfWords(const T* first) : row(first), words(reinterpret_cast<const uint4*>(first)) {
    if constexpr (kShifted) {
      shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(first) % 16);
      words = reinterpret_cast<const uint4*>(reinterpret_cast<std::uintptr_t>(first) - static_cast<unsigned>(shift));
    }
  }
  // kOnce: nobody else reads it. The second word of a shifted row is a neighbour's first, which the first-level cache should have.
  template <bool kOnce>
  __device__ __forceinline__ void load(int index, bool wanted, uint4 (&loaded)[kLoads]) const {
    if constexpr (kShifted) {
      loaded[0] = load_shared_by_many(words + index, wanted);
      loaded[1] = load_shared_by_many(words + index + (shift != 0 ? 1 : 0), wanted);
    } else {
      loaded[0] = kOnce ? load_once(words + index, wanted) : load_shared_by_many(words + index, wanted);
    }
  }
  __device__ __forceinline__ uint4 word(const uint4 (&loaded)[kLoads]) const {
    if constexpr (kShifted) return shifted_word<T>(loaded[0], loaded[1], shift);
    return loaded[0];
  }
  // From element k on, one by one.
  __device__ __forceinline__ uint4 rest(int k, int depth) const { return gather_word(row + k, 1, depth - k); }
};

// A vector, whichever way it lies.
template <class T, bool kShifted, bool kGathered>
struct VectorOfWords : RowOfWords<T, kShifted> {
  using Base = RowOfWords<T, kShifted>;
  static constexpr int kLoads = kGathered ? 1 : Base::kLoads;
  std::int64_t along;

  __device__ __forceinline__ VectorOfWords(const T* first, std::int64_t step) : Base(first), along(step) {}
  __device__ __forceinline__ void load(int index, bool wanted, uint4 (&loaded)[kLoads]) const {
    if constexpr (kGathered) {
      loaded[0] = gather_word(Base::row + index * kWordElements<T> * along, along, wanted ? kWordElements<T> : 0);
    } else {
      Base::template load<false>(index, wanted, loaded);
    }
  }
  __device__ __forceinline__ uint4 word(const uint4 (&loaded)[kLoads]) const {
    if constexpr (kGathered)
      return loaded[0];
    else
      return Base::word(loaded);
  }
  __device__ __forceinline__ uint4 rest(int k, int depth) const { return gather_word(Base::row + k * along, along, depth - k); }
};

// Which of a tile's rows and of K a warp takes.
struct GemvWarp {
  int lane, first_row, along_k;

  __device__ __forceinline__ explicit GemvWarp(const GemvWarps& warps, int rows) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    lane = static_cast<int>(threadIdx.x) % 32;
    first_row = warp % warps.beside * rows;
    along_k = warp / warps.beside;
  }
};

// Whether this CTA is the last of `of` that come to the flag, which it then clears: what the others wrote before, it sees. Every thread
// asks.
__device__ __forceinline__ bool last_to_come(unsigned* flag, int of) {
  __shared__ bool last;
  __syncthreads();  // what the CTA's threads have written is released with the first one's addition
  if (threadIdx.x == 0) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(flag) : "memory");
    last = before + 1 == static_cast<unsigned>(of);
    if (last) *flag = 0;
  }
  __syncthreads();
  return last;
}

// What the warps of a CTA have of a tile, in shared memory. Where the matrix is summed over K, its sums are a column behind the last
// vector's; where vectors are, the first tile's CTAs have their sums.
template <class Sum>
struct GemvSums {
  const Sum* of_tile = nullptr;  // [slice of K][column][row of the tile]
  int slices = 1, columns = 1;
  const Sum* of_vectors = nullptr;  // [slice of K][kMaxVectors]
};

// Ends a CTA: sums are added slice by slice, then part by part, and become D. A function of its own, so that instances of kernels are
// short.
template <class Sum>
__device__ __noinline__ void finish_gemv(const GemvProblem<Sum>& p, const GemvSums<Sum>& sums) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.tile_rows;
  const int thread = static_cast<int>(threadIdx.x);
  const auto each_output = [&](auto&& fn) {
    for (int i = thread; i < p.tile_rows * p.vector_count; i += kGemvThreads) {  // neighbours lie so in D too
      const int in_tile = p.rows_along_cols ? i % p.tile_rows : i / p.vector_count;
      const int vector = p.rows_along_cols ? i / p.tile_rows : i % p.vector_count;
      if (first + in_tile >= p.rows) continue;
      const std::int64_t row = p.rows_along_cols ? vector : first + in_tile, col = p.rows_along_cols ? first + in_tile : vector;
      fn(vector * p.tile_rows + in_tile, row, col);
    }
  };
  // The bias gradient's elements: fn(their place, that of their sums, how far it is from one slice's to the next).
  const auto each_gradient = [&](auto&& fn) {
    if (p.sum_matrix && thread < p.tile_rows && first + thread < p.rows) {
      fn(first + thread, sums.of_tile + p.vector_count * p.tile_rows + thread, sums.columns * p.tile_rows);
    }
    if (p.sum_vectors && blockIdx.x == 0 && thread < p.vector_count) fn(thread, sums.of_vectors + thread, int{kMaxVectors});
  };
  const auto over_slices = [&](const Sum* of_slice, int step) {
    Sum z = 0;
    for (int slice = 0; slice < sums.slices; ++slice) z += of_slice[slice * step];
    return z;
  };
  const auto over_parts = [&](const Sum* of_part, std::int64_t step, int count) {
    Sum z = 0;
#pragma unroll 8
    for (int part = 0; part < count; ++part) z += of_part[part * step];
    return z;
  };
  const int slice = sums.columns * p.tile_rows;
  const auto partial_of = [&](int part, std::int64_t row, std::int64_t col) {
    return p.parts.parts + part * p.parts.part + row * p.parts.pitch + col;
  };
  const auto gradient_of = [&](int part, std::int64_t n) { return p.parts.bias_gradients + part * p.parts.n + n; };
  __syncthreads();
  int count = p.split, step = 1;  // of parts to be added at the end
  if (p.split > 1) {
    const int part = static_cast<int>(blockIdx.y);
    each_output([&](int at, std::int64_t row, std::int64_t col) { *partial_of(part, row, col) = over_slices(sums.of_tile + at, slice); });
    each_gradient([&](std::int64_t n, const Sum* of_slice, int from) { *gradient_of(part, n) = over_slices(of_slice, from); });
  }
  if (const int groups = gemv_groups(p.split); groups > 0) {  // the group's sums take its first part's place
    const int group = static_cast<int>(blockIdx.y) / kGemvGroup, first_part = group * kGemvGroup;
    const int members = min(kGemvGroup, p.split - first_part);
    if (!last_to_come(p.flags + gridDim.x + blockIdx.x * groups + group, members)) return;
    each_output([&](int, std::int64_t row, std::int64_t col) {
      Sum* const partial = partial_of(first_part, row, col);
      *partial = over_parts(partial, p.parts.part, members);
    });
    each_gradient([&](std::int64_t n, const Sum*, int) {
      Sum* const partial = gradient_of(first_part, n);
      *partial = over_parts(partial, p.parts.n, members);
    });
    count = groups, step = kGemvGroup;
  }
  if (p.split > 1 && !last_to_come(p.flags + blockIdx.x, count)) return;
  each_output([&](int at, std::int64_t row, std::int64_t col) {
    Sum z[1] = {p.split == 1 ? over_slices(sums.of_tile + at, slice) : over_parts(partial_of(0, row, col), step * p.parts.part, count)};
    finish(p.epilogue, row, col, z);
  });
  each_gradient([&](std::int64_t n, const Sum* of_slice, int from) {
    const Sum z = p.split == 1 ? over_slices(of_slice, from) : over_parts(gradient_of(0, n), step * p.parts.n, count);
    finish_bias_gradient(p.epilogue, n, z);
  });
}

// What rungs end with: a row's sum over a warp, and its element of D.
template <class Sum>
__device__ __forceinline__ Sum sum_over_warp(Sum sum) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  return sum;
}
template <class Sum>
__device__ __forceinline__ void finish_row(const GemvProblem<Sum>& p, std::int64_t row, std::int64_t vector, Sum sum) {
  Sum z[1] = {sum};
  finish(p.epilogue, p.rows_along_cols ? vector : row, p.rows_along_cols ? row : vector, z);
}

// launch(bool_constant shifted, bool_constant gathered) for how the operands lie: whether a row of the matrix, or a vector along K, begins
// on anything but 16 bytes; and whether vectors lie across K.
template <class Launch>
void with_gemv_layout(const GemmCall& call, Launch&& launch) {
  const GemvSides sides = gemv_sides(call.problem, call.plan.tile);
  const bool shifted = sides.matrix_alignment < 16 || (sides.vectors_along_k && sides.vectors_alignment < 16);
  if (!sides.vectors_along_k) return shifted ? launch(std::true_type{}, std::true_type{}) : launch(std::false_type{}, std::true_type{});
  shifted ? launch(std::true_type{}, std::false_type{}) : launch(std::false_type{}, std::false_type{});
}

}  // namespace tilewave
