// What the Tensor Core rows share, for D as it lies in memory: D[rows, cols] = sum over depth of left[row, depth] right[depth, col].
// OperandTile: one operand's tile of a stage in shared memory, 128 bytes along depth, in either major, in boxes 128 bytes wide and
// swizzled so that neither the copies nor ldmatrix meet a bank twice; of 16-bit elements they lie as TMA's do. WarpTile: a
// warp's sums, what it multiplies, how it hands them to the epilogue.
#pragma once

#include "kernels/cuda/gemm/epilogue.h"
#include "kernels/cuda/prim/cp_async.h"
#include "kernels/cuda/prim/mma.h"
#include "kernels/gemm/kernel.h"

namespace tilewave {

inline constexpr int kDepthBytes = 128;

enum class Contiguous { along_depth, across };  // the operand's fastest dimension: depth, or its rows (left) or columns (right)

struct TileOperand {
  const void* data = nullptr;
  std::int64_t ld = 0;
  std::int64_t extent = 0;  // rows of D (left) or its columns (right)
  int alignment = 16;       // bytes that every row of it in memory starts on
};

// kExtent rows of `left` (or columns of `right`) of one stage.
template <class T, int kExtent, Contiguous kContiguous>
struct OperandTile {
  using Element = T;
  static constexpr int kDepth = kDepthBytes / sizeof(T);
  static constexpr int kChunk = 16 / sizeof(T);  // elements of the 16 bytes that are copied and swizzled as one
  static constexpr bool kAlongDepth = kContiguous == Contiguous::along_depth;
  static constexpr int kLines = kAlongDepth ? kExtent : kDepth;              // rows as they lie in memory
  static constexpr int kChunks = (kAlongDepth ? kDepth : kExtent) / kChunk;  // of a line
  static constexpr int kBytes = kExtent * kDepthBytes;
  static constexpr int kBoxElements = 128 / sizeof(T), kBoxBytes = kLines * 128;
  static_assert(kChunks % 8 == 0, "a line fills the banks");

  // A warp reads the same chunk of 8 successive lines, or, of 32-bit elements across depth, words of 4 successive ones.
  static __device__ __forceinline__ int key(int line) { return sizeof(T) == 4 && !kAlongDepth ? 2 * (line & 3) : line & 7; }
  static __device__ __forceinline__ std::uint32_t offset(int line, int chunk) {
    return static_cast<std::uint32_t>(chunk / 8 * kBoxBytes + line * 128 + (chunk % 8 ^ key(line)) * 16);
  }

  // Where this lane reads with ldmatrix, from the tile's start: of mma's A, 16 rows from `first` on, at step 0 of depth, and of mma's B,
  // as many columns. The swizzle lets the step of depth (or, of elements across depth, fragment `index`, each 16 across) be added by
  // exclusive or, the other by addition.
  static __device__ __forceinline__ std::uint32_t left_lane(int first, int lane) {
    if constexpr (kAlongDepth) return offset(first + lane % 16, lane / 16);
    return offset(lane % 8 + lane / 16 * 8, first / kChunk + lane / 8 % 2);
  }
  static __device__ __forceinline__ std::uint32_t right_lane(int first, int lane) {
    if constexpr (kAlongDepth) return offset(first + lane % 8 + lane / 16 * 8, lane / 8 % 2);
    return offset(lane % 16, first / kChunk + lane / 16);
  }
  static __device__ __forceinline__ void load(std::uint32_t (&r)[4], std::uint32_t tile, std::uint32_t lane_offset, int index, int step) {
    static_assert(kAlongDepth || sizeof(T) == 2, "ldmatrix transposes 16-bit elements");
    if constexpr (kAlongDepth) {
      ldmatrix(r, tile + (lane_offset ^ static_cast<std::uint32_t>(32 * step)) + static_cast<std::uint32_t>(index * 16 * kDepthBytes));
    } else {
      ldmatrix_transposed(r, tile + (lane_offset ^ static_cast<std::uint32_t>(32 * index)) + static_cast<std::uint32_t>(step * 16 * 128));
    }
  }

  // The same for every type: A's fragment `index` of the rows from `first` on, and B's: r[0], r[1] its first 8 columns, r[2], r[3] the
  // others.
  static __device__ __forceinline__ void load_left(std::uint32_t (&r)[4], std::uint32_t tile, int first, int index, int step, int lane) {
    if constexpr (kAlongDepth || sizeof(T) == 2) {
      load(r, tile, left_lane(first, lane), index, step);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) r[i] = word(tile, first + 16 * index + lane / 4 + i % 2 * 8, 8 * step + lane % 4 + i / 2 * 4);
    }
  }
  static __device__ __forceinline__ void load_right(std::uint32_t (&r)[4], std::uint32_t tile, int first, int index, int step, int lane) {
    if constexpr (kAlongDepth || sizeof(T) == 2) {
      load(r, tile, right_lane(first, lane), index, step);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) r[i] = word(tile, first + 16 * index + lane / 4 + i / 2 * 8, 8 * step + lane % 4 + i % 2 * 4);
    }
  }

 private:
  static __device__ __forceinline__ std::uint32_t word(std::uint32_t tile, int across, int depth) {
    return load_shared(tile + offset(depth, across / 4) + static_cast<std::uint32_t>(across % 4 * 4));
  }
};

// A block's tile of D in warps, and both operands' tiles of a stage.
template <class T, int kRows, int kCols, int kWarpsDown, int kWarpsAcross, Contiguous kLeft, Contiguous kRight>
struct CtaTile {
  using Element = T;
  using Left = OperandTile<T, kRows, kLeft>;
  using Right = OperandTile<T, kCols, kRight>;
  static constexpr int rows = kRows, cols = kCols, warps_across = kWarpsAcross;
  static constexpr int threads = 32 * kWarpsDown * kWarpsAcross;
  static constexpr int warp_rows = kRows / kWarpsDown, warp_cols = kCols / kWarpsAcross;
  static constexpr int stage_bytes = Left::kBytes + Right::kBytes;
  static constexpr int steps = 4;  // mma's depth is 32 bytes
  static_assert(warp_rows % 16 == 0 && warp_cols % 32 == 0, "a warp's tile is made of mma's, and its rows of whole runs");
  static_assert(warp_rows <= 64 && warp_cols <= 64, "what a warp reads across depth lies in one box");
};

// What a warp multiplies in one step of depth.
template <class Cta>
struct Fragments {
  std::uint32_t left[Cta::warp_rows / 16][4];
  std::uint32_t right[Cta::warp_cols / 16][4];

  __device__ __forceinline__ void load(std::uint32_t stage, int warp_row, int warp_col, int step, int lane) {
#pragma unroll
    for (int i = 0; i < Cta::warp_rows / 16; ++i) Cta::Left::load_left(left[i], stage, warp_row, i, step, lane);
#pragma unroll
    for (int j = 0; j < Cta::warp_cols / 16; ++j) {
      Cta::Right::load_right(right[j], stage + Cta::Left::kBytes, warp_col, j, step, lane);
    }
    if constexpr (sizeof(typename Cta::Element) == 4) {
#pragma unroll
      for (auto& words : left) {
        for (std::uint32_t& w : words) round_to_tf32(w);
      }
#pragma unroll
      for (auto& words : right) {
        for (std::uint32_t& w : words) round_to_tf32(w);
      }
    }
  }
};

// The rows of D that a tile's lines are: line l is row first + stride l, where begin <= l < end.
struct TileLines {
  std::int64_t first = 0, stride = 1;
  int begin = 0, end = 0;

  __device__ __forceinline__ bool has(int line) const { return begin <= line && line < end; }
  __device__ __forceinline__ std::int64_t row(int line) const { return first + stride * line; }
};
// Lines that are successive rows from `first` on.
__device__ __forceinline__ TileLines lines_from(std::int64_t first, std::int64_t rows) {
  return {.first = first, .end = static_cast<int>(max(min(rows - first, std::int64_t{1} << 30), std::int64_t{0}))};
}

inline constexpr int kNoRows = -1;  // a warp's share of rows to be summed: none

// kSumsRows: the bias gradient can be asked for.
template <class Cta, bool kSumsRows = !Cta::Left::kAlongDepth>
struct WarpTile {
  static constexpr bool kSums = kSumsRows;
  static constexpr int kDown = Cta::warp_rows / 16, kAcross = Cta::warp_cols / 8;
  static_assert(kDown <= 8, "row_sums has a column for each 16 rows");
  float accumulators[kDown][kAcross][4];  // mma's layout
  float row_sums[4];                      // the same of left alone: column i has those of rows 16 i to 16 i + 15

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (float& sum : row_sums) sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
#pragma unroll
        for (int c = 0; c < 4; ++c) accumulators[i][j][c] = 0.0f;
      }
    }
  }

  __device__ __forceinline__ void multiply(const Fragments<Cta>& f) {
    using T = typename Cta::Element;
    // To and fro, so that each mma has an operand of the one before: registers that are not read again.
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
      for (int x = 0; x < kAcross; ++x) {
        const int j = i % 2 == 0 ? x : kAcross - 1 - x;
        mma<T>(accumulators[i][j], f.left[i], f.right[j / 2][j % 2 * 2], f.right[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
  // The sums of left's rows, where they are asked for: warps side by side, whose rows are the same, share them, and `row_sum_rank` is the
  // warp's index among them.
  __device__ __forceinline__ void sum_rows(const Fragments<Cta>& f, int row_sum_rank, int lane) {
    using T = typename Cta::Element;
#pragma unroll
    for (int first = 0; first < kDown; first += Cta::warps_across) {
      std::uint32_t left[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        left[w] = f.left[first][w];
#pragma unroll
        for (int i = first + 1; i < kDown && i < first + Cta::warps_across; ++i)
          left[w] = row_sum_rank == i - first ? f.left[i][w] : left[w];
      }
      const std::uint32_t column = lane / 4 == first + row_sum_rank ? ones<T>() : 0;
      mma<T>(row_sums, left, column, column);
    }
  }

  // 16 lines at a time through this warp's slab of shared memory, so that lanes then hold runs of a row. The warp's tile begins at
  // line `top` of the block's and at column `col` of D.
  static constexpr int kSlabPitch = Cta::warp_cols + 8;
  static constexpr int kSlabBytes = 16 * kSlabPitch * static_cast<int>(sizeof(float));

  __device__ __forceinline__ void finish_all(const GemmEpilogue& e, const TileLines& lines, float* slab, int top, std::int64_t col,
                                             int lane) const {
    constexpr int kLanes = Cta::warp_cols / kRun, kRuns = 2;  // a row's; those of a lane that are finished at a time
    const bool whole = e.wide && col + Cta::warp_cols <= e.cols;
#pragma unroll 1
    for (int i = 0; i < kDown; ++i) {
      __syncwarp();
#pragma unroll
      for (int which = 0; which < kDown; ++which) {  // sums are registers: they have no run-time index
        if (which != i) continue;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          float* const at = slab + lane / 4 * kSlabPitch + 8 * j + lane % 4 * 2;
          *reinterpret_cast<float2*>(at) = make_float2(accumulators[which][j][0], accumulators[which][j][1]);
          *reinterpret_cast<float2*>(at + 8 * kSlabPitch) = make_float2(accumulators[which][j][2], accumulators[which][j][3]);
        }
      }
      __syncwarp();
      const int first = top + 16 * i;
      if (whole) {
#pragma unroll 1
        for (int part = 0; part < 16; part += kRuns * 32 / kLanes) {
          InRow<kRun> locations[kRuns];
          float z[kRuns][kRun];
#pragma unroll
          for (int x = 0; x < kRuns; ++x) {
            const int r = part + x * 32 / kLanes + lane / kLanes, run = lane % kLanes * kRun;
            locations[x] = {.row = lines.row(first + r), .col = col + run, .inside = lines.has(first + r)};
            // Lanes 4 to 7 of 8 begin with their second word, so that no two of the 8 meet in a bank.
            const int second = lane / 4 % 2 * 4;
            const float4 one = *reinterpret_cast<const float4*>(slab + r * kSlabPitch + run + second);
            const float4 other = *reinterpret_cast<const float4*>(slab + r * kSlabPitch + run + (second ^ 4));
            const float4 low = second == 0 ? one : other, high = second == 0 ? other : one;
            z[x][0] = low.x, z[x][1] = low.y, z[x][2] = low.z, z[x][3] = low.w;
            z[x][4] = high.x, z[x][5] = high.y, z[x][6] = high.z, z[x][7] = high.w;
          }
          finish(e, locations, z);
        }
      } else {
        constexpr int kStridedColumns = Cta::warp_cols / 32;
#pragma unroll 1
        for (int r = 0; r < 16; r += kRun / kStridedColumns) {
          float z[1][kRun];
#pragma unroll
          for (int c = 0; c < kRun; ++c) z[0][c] = slab[(r + c / kStridedColumns) * kSlabPitch + c % kStridedColumns * 32 + lane];
          const StridedRun<kStridedColumns> strided[] = {{.row = lines.row(first + r),
                                                          .col = col + lane,
                                                          .stride = lines.stride,
                                                          .begin = lines.begin - first - r,
                                                          .end = lines.end - first - r,
                                                          .cols = static_cast<int>(min(e.cols - col - lane, std::int64_t{64}))}};
          finish(e, strided, z);
        }
      }
    }
  }

  // The sums as they are, into part `part` of those that are split along depth.
  __device__ __forceinline__ void store_partial(const SplitKPartials<float>& split, std::int64_t part, const TileLines& lines, int top,
                                                std::int64_t col, int lane) const {
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int line = top + 16 * i + 8 * half + lane / 4;
        if (!lines.has(line)) continue;
        float* const row = split.parts + part * split.part + lines.row(line) * split.pitch;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          const std::int64_t c = col + 8 * j + lane % 4 * 2;
          if (c < split.pitch)
            *reinterpret_cast<float2*>(row + c) = make_float2(accumulators[i][j][2 * half], accumulators[i][j][2 * half + 1]);
        }
      }
    }
  }

  // fn(row of D, its sum of left), once for every row of the warp's share of its tile's.
  template <class Fn>
  __device__ __forceinline__ void for_each_row_sum(const TileLines& lines, int top, int row_sum_rank, int lane, Fn&& fn) const {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int i = lane % 4 * 2 + c % 2;
      const int line = top + 16 * i + c / 2 * 8 + lane / 4;
      if (i < kDown && i % Cta::warps_across == row_sum_rank && lines.has(line)) fn(lines.row(line), row_sums[c]);
    }
  }
};

enum class Head { whole, cut };  // where an operand's depth begins: with an element 0 that a copy may start at, or within a chunk

// A thread's share of copying one operand's tiles into stages: chunks [x], kThreads / kChunks lines apart, all in one column of
// chunks. What lies outside the operand arrives as zeros.
template <class Tile, int kThreads>
class TileCopy {
 public:
  static constexpr int kStep = kThreads / Tile::kChunks;  // lines
  static constexpr int kCopies = Tile::kLines / kStep;
  static_assert(kThreads % Tile::kChunks == 0 && Tile::kLines % kStep == 0, "threads share a tile's chunks evenly");
  static constexpr int kSize = 16 / Tile::kChunk;  // bytes of an element
  static_assert(kStep % (sizeof(typename Tile::Element) == 4 && !Tile::kAlongDepth ? 4 : 8) == 0, "a thread's chunks are swizzled alike");

  TileCopy() = default;
  // Rows (columns) from `first` on.
  __device__ __forceinline__ TileCopy(const TileOperand& operand, std::int64_t first, int depth, int thread)
      : ld_bytes_(operand.ld * kSize) {
    const int line = thread / Tile::kChunks, chunk = thread % Tile::kChunks;
    const std::int64_t across = first + (Tile::kAlongDepth ? line : chunk * Tile::kChunk);
    rest_ = static_cast<int>(min(operand.extent - across, std::int64_t{Tile::kLines + Tile::kChunk}));
    depth_ = depth - (Tile::kAlongDepth ? chunk * Tile::kChunk : line);
    source_ =
        static_cast<const char*>(operand.data) + (Tile::kAlongDepth ? across * ld_bytes_ + chunk * 16 : line * ld_bytes_ + across * kSize);
    target_ = target_of(thread);
    first_ = depth - depth_;
  }
  // Where a thread's chunk 0 goes in the tile.
  static __device__ __forceinline__ std::uint32_t target_of(int thread) {
    return Tile::offset(thread / Tile::kChunks, thread % Tile::kChunks);
  }

  // The stage from depth `from` on into the tile at the shared address, kBytes a copy; where the operand's depth is cut at its head,
  // zeros for what is less than `begin`.
  template <int kBytes = 16, Head kHead = Head::whole>
  __device__ __forceinline__ void start(std::uint32_t tile, int from, int begin = 0) const {
    const char* const source = at(0, from);
#pragma unroll
    for (int x = 0; x < kCopies; ++x) {
      const char* const chunk = source + x * (kStep * ld_bytes_);
      int bytes = valid(x, from) * kSize;
      if (kHead == Head::cut && Tile::kAlongDepth && from + first_ < begin) {
        store_shared(tile + target(x), from_element<typename Tile::Element>(chunk, begin - from - first_, bytes / kSize));
        continue;
      }
      if (kHead == Head::cut && !Tile::kAlongDepth && from + first_ + x * kStep < begin) bytes = 0;
#pragma unroll
      for (int part = 0; part < 16; part += kBytes) {
        cp_async<kBytes>(tile + target(x) + part, chunk + part, kBytes == 16 ? bytes : min(max(bytes - part, 0), kBytes));
      }
    }
  }

  // The same of a stage that lies wholly in the operand, chunk by chunk: `source` is chunk 0's at(), `target` where it goes.
  static __device__ __forceinline__ void start_whole(int x, std::uint32_t target, const char* source, std::int64_t ld) {
    cp_async<16>(target + static_cast<std::uint32_t>(x * kStep * 128), source + x * (kStep * ld * kSize));
  }
  // From a chunk's source in one stage to that in the next.
  static __device__ __forceinline__ std::int64_t stage_step(std::int64_t ld) {
    return Tile::kAlongDepth ? kDepthBytes : Tile::kDepth * ld * kSize;
  }

  __device__ __forceinline__ const char* at(int x, int from) const {
    const int lines = x * kStep + (Tile::kAlongDepth ? 0 : from);
    return source_ + lines * ld_bytes_ + (Tile::kAlongDepth ? static_cast<std::int64_t>(from) * kSize : 0);
  }
  // Elements of chunk x that lie in the operand.
  __device__ __forceinline__ int valid(int x, int from) const { return min(max(line_rest(x, from), 0), Tile::kChunk); }
  // Elements of its line from chunk x's first on, which may end before it; far below 0 where the whole line is outside.
  __device__ __forceinline__ int line_rest(int x, int from) const {
    const bool inside = Tile::kAlongDepth ? x * kStep < rest_ : from + x * kStep < depth_;
    return inside ? (Tile::kAlongDepth ? depth_ - from : rest_) : -Tile::kChunk;
  }
  // Where chunk x goes in the tile: kStep lines are whole periods of the swizzle.
  __device__ __forceinline__ std::uint32_t target(int x) const { return target_ + static_cast<std::uint32_t>(x * kStep * 128); }

 private:
  const char* source_;
  std::int64_t ld_bytes_;
  std::uint32_t target_;
  int rest_;   // rows (columns) from this thread's first on, as far as the tile reaches
  int depth_;  // what of depth lies at or after this thread's first element
  int first_;  // and where along a stage's depth that is

  // Elements [begin, end) of a chunk, zeros around them.
  template <class T>
  static __device__ __forceinline__ uint4 from_element(const char* chunk, int begin, int end) {
    alignas(16) T elements[Tile::kChunk] = {};
#pragma unroll
    for (int c = 0; c < Tile::kChunk; ++c) {
      if (begin <= c && c < end) elements[c] = reinterpret_cast<const T*>(chunk)[c];
    }
    return *reinterpret_cast<const uint4*>(elements);
  }
};

// What a Tensor Core launch of any row is told.
struct TileProblem {
  TileOperand left, right;
  int depth = 0;
  int depth_of_slice = 0;  // split along depth: a multiple of a stage's
  int split = 1;
  int tiles_down = 0, tiles_across = 0;
  int group = 1;          // the raster: so many tiles down before the next column of tiles
  bool sum_rows = false;  // the bias gradient is asked for: sums of left over depth
  GemmEpilogue epilogue;
  SplitKPartials<float> parts;
};

struct TileCoord {
  int row = 0, col = 0;  // in tiles
};
// Tile `index` of a raster of groups `group` tiles high, down first, so that a wave of blocks reads few rows and columns.
__device__ __forceinline__ TileCoord tile_coord(const TileProblem& p, int index) {
  const int in_group = p.group * p.tiles_across, group = index / in_group;
  const int height = min(p.group, p.tiles_down - group * p.group), rest = index % in_group;
  return {.row = group * p.group + rest % height, .col = rest / height};
}

// What becomes of a warp's sums once their depth is done: finished into D, or stored as one part of several.
template <class Cta, bool kSumsRows>
__device__ __forceinline__ void finish_tile(const WarpTile<Cta, kSumsRows>& tile, const GemmEpilogue& e, const TileLines& lines,
                                            int row_sum_rank, float* slab, int top, std::int64_t col, int lane) {
  tile.finish_all(e, lines, slab, top, col, lane);
  tile.for_each_row_sum(lines, top, row_sum_rank, lane, [&](std::int64_t n, float sum) { finish_bias_gradient(e, n, sum); });
}
template <class Cta, bool kSumsRows>
__device__ __forceinline__ void store_tile_partial(const WarpTile<Cta, kSumsRows>& tile, const SplitKPartials<float>& parts,
                                                   std::int64_t part, const TileLines& lines, int row_sum_rank, int top, std::int64_t col,
                                                   int lane) {
  tile.store_partial(parts, part, lines, top, col, lane);
  tile.for_each_row_sum(lines, top, row_sum_rank, lane, [&](std::int64_t n, float sum) { parts.bias_gradients[part * parts.n + n] = sum; });
}
template <class Cta, bool kSumsRows>
__device__ __forceinline__ void finish_tile(const WarpTile<Cta, kSumsRows>& tile, const TileProblem& p, const TileLines& lines,
                                            std::int64_t part, int row_sum_rank, float* slab, int top, std::int64_t col, int lane) {
  if (p.split == 1) return finish_tile(tile, p.epilogue, lines, row_sum_rank, slab, top, col, lane);
  store_tile_partial(tile, p.parts, part, lines, row_sum_rank, top, col, lane);
}

struct Contiguities {
  Contiguous left, right;
};
inline Contiguities contiguous_of(const GemmArgs& args) {
  const Contiguous a = args.a_major == Major::k ? Contiguous::along_depth : Contiguous::across;
  const Contiguous b = args.b_major == Major::k ? Contiguous::along_depth : Contiguous::across;
  return args.d_major == Major::m ? Contiguities{.left = b, .right = a} : Contiguities{.left = a, .right = b};
}

// K and the number of tiles fit an int: the rows refuse what does not.
inline TileProblem tile_problem_of(const GemmCall& call, std::int64_t stage_depth) {
  const bool along_m = call.args.d_major == Major::m;
  const std::int64_t size_k = call.args.a_major == Major::k ? call.args.a.cols : call.args.a.rows;
  const auto operand = [](const ConstMatrixView& view, bool along_depth) {
    const std::int64_t alignment = alignment_of(reinterpret_cast<std::uintptr_t>(view.data), view.ld * size_of(view.dtype));
    return TileOperand{.data = view.data,
                       .ld = view.ld,
                       .extent = along_depth ? view.rows : view.cols,
                       .alignment = static_cast<int>(std::min<std::int64_t>(alignment, 16))};
  };
  const TileOperand a = operand(call.args.a, call.args.a_major == Major::k), b = operand(call.args.b, call.args.b_major == Major::k);
  const GemmEpilogue epilogue = epilogue_of(call.args);
  return {.left = along_m ? b : a,
          .right = along_m ? a : b,
          .depth = static_cast<int>(size_k),
          .depth_of_slice = static_cast<int>(round_up(ceil_div(size_k, call.plan.split), stage_depth)),
          .split = call.plan.split,
          .tiles_down = static_cast<int>(along_m ? call.plan.tiling.tiles_n : call.plan.tiling.tiles_m),
          .tiles_across = static_cast<int>(along_m ? call.plan.tiling.tiles_m : call.plan.tiling.tiles_n),
          .group = static_cast<int>(call.plan.raster.group),
          .sum_rows = static_cast<bool>(call.args.bias_gradient),
          .epilogue = epilogue,
          .parts = SplitKPartials<float>(call.args.workspace, epilogue, call.plan.split, call.args.bias_gradient.cols)};
}

}  // namespace tilewave
