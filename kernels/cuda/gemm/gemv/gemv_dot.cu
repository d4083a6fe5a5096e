// The last rung of the ladder: a lane asks for words of 16 bytes of several rows at once, so that memory never waits for it, and what it
// reads of a vector serves all of these rows. Lanes lie along K; their sums meet by shuffles when all is read.
#include "kernels/cuda/gemm/gemv/gemv.h"
#include "kernels/gemm/gemv/gemv_dot.h"

namespace tilewave {
namespace {

// A word's elements as numbers.
template <class T>
__device__ __forceinline__ void unpack(const uint4& word, Arithmetic<T> (&values)[kWordElements<T>]) {
  const auto elements = std::bit_cast<WordElements<T>>(word);
#pragma unroll
  for (int i = 0; i < kWordElements<T>; ++i) values[i] = load(elements.at[i]);
}

// Sums of kCount values over a warp's lanes, as first_value_of_lane() says.
template <int kCount, int kLanes = 16, class Sum>
__device__ __forceinline__ void reduce_over_lanes(Sum* values, int lane) {
  if constexpr (kLanes > 0) {
    constexpr int kHalf = kCount / 2;
    if constexpr (kCount > 1) {
      const bool upper = (lane & kLanes) != 0;
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        const Sum given = upper ? values[i] : values[i + kHalf], kept = upper ? values[i + kHalf] : values[i];
        values[i] = kept + __shfl_xor_sync(~0u, given, kLanes);
      }
      reduce_over_lanes<kHalf, kLanes / 2>(values, lane);
    } else {
      values[0] += __shfl_xor_sync(~0u, values[0], kLanes);
      reduce_over_lanes<1, kLanes / 2>(values, lane);
    }
  }
}
template <class T, int kColumns, bool kShifted, bool kGathered>
__global__ void __launch_bounds__(kGemvThreads, 2) gemv_dot(const __grid_constant__ GemvProblem<Arithmetic<T>> p) {
  using Sum = Arithmetic<T>;
  using Row = RowOfWords<T, kShifted>;
  using Vector = VectorOfWords<T, kShifted, kGathered>;
  constexpr int kRows = gemv_dot_rows(kColumns, kDTypeOf<T>), kSteps = gemv_dot_steps(kColumns, kDTypeOf<T>, kShifted || kGathered);
  constexpr int kWord = kWordElements<T>, kDepth = 32 * kWord;
  __shared__ Sum sums[gemv_sums(kRows, kColumns)];
  const GemvWarps warps = gemv_warps(p.tile_rows, kRows);
  const GemvWarp warp(warps, kRows);
  const int begin = static_cast<int>(blockIdx.y) * p.part_depth, end = min(begin + p.part_depth, p.words_end);
  const bool has_rest = p.words_end < p.depth && begin <= p.words_end && p.words_end < begin + p.part_depth;

  for (int turn = 0; turn < warps.turns; ++turn) {
    const int row_in_tile = warp.first_row + turn * warps.beside * kRows;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.tile_rows + row_in_tile;
    // Rows and vectors past the last are read as the last one, and not stored.
    const T* const matrix = static_cast<const T*>(p.matrix.data) + min(first, p.rows - 1) * p.matrix.across;
    const int rows_there = static_cast<int>(min(p.rows - first, std::int64_t{kRows}));
    const auto each_row = [&](int k, auto&& fn) {
      const T* row = hidden(matrix) + k;
#pragma unroll
      for (int index = 0; index < kRows; ++index) {
        fn(index, Row(row));
        if (index + 1 < rows_there) row += p.matrix.across;
      }
    };
    const auto each_vector = [&](int k, auto&& fn) {
      const T* vector = hidden(static_cast<const T*>(p.vectors.data)) + k * p.vectors.along;
#pragma unroll
      for (int index = 0; index < kColumns; ++index) {
        fn(index, Vector(vector, p.vectors.along));
        if (index + 1 < p.vector_count) vector += p.vectors.across;
      }
    };
    Sum acc[kRows][kColumns] = {};
    const auto multiply = [&](const uint4(&rows)[kRows], const uint4& vector, int column) {
      Sum x[kWord], y[kWord];
      unpack<T>(vector, y);
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        unpack<T>(rows[row], x);
#pragma unroll
        for (int i = 0; i < kWord; ++i) acc[row][column] += x[i] * y[i];
      }
    };

    // What no word holds, one by one.
    if (has_rest && warp.along_k == warps.along_k - 1) {
      const int left = p.depth - p.words_end - warp.lane * kWord, k = p.words_end + (left > 0 ? warp.lane * kWord : 0);
      uint4 rows[kRows];
      each_row(k, [&](int row, const Row& reader) { rows[row] = reader.rest(0, left); });
      each_vector(k, [&](int column, const Vector& reader) { multiply(rows, reader.rest(0, left), column); });
    }

    // Main loop: all that a lane asks for of the matrix, then vector by vector.
    for (int k = begin + warp.along_k * kSteps * kDepth; k < end; k += warps.along_k * kSteps * kDepth) {
      uint4 loaded[kSteps][kRows][Row::kLoads];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int at = k + step * kDepth + warp.lane * kWord;
        each_row(at, [&](int row, const Row& reader) { reader.template load<true>(0, at < end, loaded[step][row]); });
      }
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int at = k + step * kDepth + warp.lane * kWord;
        uint4 rows[kRows];
        each_row(at, [&](int row, const Row& reader) { rows[row] = reader.word(loaded[step][row]); });
        each_vector(at, [&](int column, const Vector& reader) {
          uint4 words[Vector::kLoads];
          reader.load(0, at < end, words);
          multiply(rows, reader.word(words), column);
        });
      }
    }

    constexpr int kCount = kRows * kColumns, kEach = kCount > 32 ? kCount / 32 : 1, kAlike = kCount < 32 ? 32 / kCount : 1;
    reduce_over_lanes<kCount>(&acc[0][0], warp.lane);
    const int mine = first_value_of_lane<kCount>(warp.lane);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int row = (mine + i) / kColumns, column = (mine + i) % kColumns;
      if (warp.lane % kAlike == 0) sums[(warp.along_k * kColumns + column) * p.tile_rows + row_in_tile + row] = (&acc[0][0])[i];
    }
  }
  finish_gemv(p, {.of_tile = sums, .slices = warps.along_k, .columns = kColumns});
}

// launch(integral_constant columns) for so many vectors of the type.
template <class T, class Launch>
void with_columns(int vectors, Launch&& launch) {
  const auto launch_if_so_many = [&]<int kColumns>(std::integral_constant<int, kColumns> columns) {
    if constexpr (gemv_columns(kColumns, kDTypeOf<T>) == kColumns) {
      if (gemv_columns(vectors, kDTypeOf<T>) == kColumns) return launch(columns), true;
    }
    return false;
  };
  const bool launched = [&]<int... kColumns>(std::integer_sequence<int, kColumns...>) {
    return (launch_if_so_many(std::integral_constant<int, kColumns>{}) || ...);
  }
  (std::integer_sequence<int, 1, 2, 4, 8, 16>{});
  TW_CHECK(launched, "gemv_dot has no kernel for ", vectors, " vectors of ", name_of(kDTypeOf<T>), ".");
}

}  // namespace

void launch_gemv_dot(CudaQueue& queue, const GemmCall& call) {
  const dim3 grid(static_cast<unsigned>(call.plan.tiling.tiles), static_cast<unsigned>(call.plan.split));
  with_float(call.args.a.dtype, "gemm", [&]<class T>(T) {
    with_gemv_layout(call, [&]<bool kShifted, bool kGathered>(std::bool_constant<kShifted>, std::bool_constant<kGathered>) {
      const GemvProblem<Arithmetic<T>> problem = gemv_problem_of<T>(queue, call, kShifted);
      with_columns<T>(problem.vector_count, [&]<int kColumns>(std::integral_constant<int, kColumns>) {
        gemv_dot<T, kColumns, kShifted, kGathered><<<grid, kGemvThreads, 0, stream_of(queue)>>>(problem);
        TW_CUDA_LAUNCHED("gemm gemv_dot");
      });
    });
  });
}

}  // namespace tilewave
