// What the two passes over short segments share. A block has 64 rows a side of shared memory and four warps, sixteen rows each: one
// head of a segment longer than 32 rows, two of one longer than 16, four of a shorter one. kParts sixteens of rows are a head's.
// Blocks find their work themselves: pieces are (segment, head), dealt out one by one over all blocks, and a thread looks at kLooks
// lines at once, since most may be unused. Then, those with the fewest pieces first, they clear the rows that no segment covers.
// Nothing depends on the segments' order.
#pragma once

#include "kernels/cuda/attention/segments.h"
#include "kernels/cuda/attention/tiles.h"
#include "kernels/gemm/tiling.h"

namespace tilewave::attention_on_gpu {

constexpr int kTileRows = kShortSegment, kPart = 16;
static_assert(kTileRows == kWarps * kPart, "a warp owns sixteen rows of a tile");

// A segment and the first of the heads that a block works on at once.
struct Work {
  Segment segment;
  int head = 0;
};
template <int kLooks>
struct SharedWork {
  int4 found[kLooks * kThreads];  // both lengths in one word
  int counts[kLooks * kWarps];

  __device__ void put(int place, const Work& work) {
    const Segment& segment = work.segment;
    found[place] = {segment.q_begin, segment.q_length | segment.k_length << 16, segment.k_begin, work.head};
  }
  __device__ Work operator[](int place) const {
    const int4 four = found[place];
    return {.segment = {.q_begin = four.x, .q_length = four.y & 0xffff, .k_begin = four.z, .k_length = four.y >> 16}, .head = four.w};
  }
};

__device__ __forceinline__ int parts_of(const Segment& segment) {
  const int longest = max(segment.q_length, segment.k_length);
  return longest <= kPart ? 1 : longest <= 2 * kPart ? 2 : 4;
}

// Finds the block's pieces and calls fn(count) for each `count` of them that `shared` begins with, all threads of the block together.
template <int kLooks, class Fn>
__device__ __forceinline__ void for_each_found(SharedWork<kLooks>& shared, const Segments& segments, unsigned heads, Fn&& fn) {
  const unsigned pieces = static_cast<unsigned>(segments.count) * heads, blocks = gridDim.x;
  for (std::uint64_t first = blockIdx.x; first < pieces; first += blocks * (kLooks * kThreads)) {
    Work work[kLooks];
    bool found[kLooks];
    unsigned lanes[kLooks];
#pragma unroll
    for (int look = 0; look < kLooks; ++look) {
      const std::uint64_t piece = first + std::uint64_t{look * kThreads + threadIdx.x} * blocks;
      found[look] = false;
      if (piece < pieces) {
        const auto line = static_cast<unsigned>(piece) / heads;
        work[look] = {.segment = segments.read(line), .head = static_cast<int>(static_cast<unsigned>(piece) - line * heads)};
        found[look] = work[look].segment.used() && work[look].head % (kWarps / parts_of(work[look].segment)) == 0;
      }
    }
#pragma unroll
    for (int look = 0; look < kLooks; ++look) {
      lanes[look] = __ballot_sync(~0u, found[look]);
      if (lane_index() == 0) shared.counts[look * kWarps + warp_index()] = __popc(lanes[look]);
    }
    __syncthreads();
    int count = 0;
#pragma unroll
    for (int part = 0; part < kLooks * kWarps; ++part) {
      const int look = part / kWarps;
      if (found[look] && part % kWarps == warp_index()) {
        shared.put(count + __popc(lanes[look] & ((1u << lane_index()) - 1)), work[look]);
      }
      count += shared.counts[part];
    }
    __syncthreads();
    if (count > 0) fn(count);
  }
}

// How many blocks there are for so many pieces or windows. Odd, so that pieces which lie two or four apart are spread over all of them.
inline unsigned working_blocks(std::int64_t pieces, std::int64_t windows, std::int64_t most) {
  return static_cast<unsigned>(std::min(std::max(pieces, windows), most) - 1) | 1u;
}

// Rows that a block clears where no segment covers them. The first windows are the last blocks', which have the fewest pieces.
constexpr int kWindow = 128, kWindowWords = kWindow / 32;
inline unsigned windows_of(std::int64_t rows) { return static_cast<unsigned>(ceil_div(rows, kWindow)); }
template <class Fn>
__device__ __forceinline__ void for_each_window(unsigned windows, Fn&& fn) {
  for (unsigned window = gridDim.x - 1 - blockIdx.x; window < windows; window += gridDim.x) {
    fn(window);
    __syncthreads();
  }
}

// Calls fn(row), a warp together, for each row of the window that no segment covers.
template <class Fn>
__device__ __forceinline__ void for_each_row_outside(unsigned (&covered)[kWindowWords], const Segments& segments, AttentionSide side,
                                                     unsigned window, Fn&& fn) {
  constexpr int kLines = 4;  // a thread's at once
  const std::int64_t first_row = std::int64_t{window} * kWindow, rows = side == AttentionSide::queries ? segments.q_rows : segments.k_rows;
  const int thread = static_cast<int>(threadIdx.x), column = side == AttentionSide::queries ? 0 : 2;
  if (thread < kWindowWords) {  // beyond the last row there is nothing to clear
    const std::int64_t left = rows - first_row - 32 * thread;
    covered[thread] = left >= 32 ? 0u : left <= 0 ? ~0u : ~0u << left;
  }
  __syncthreads();
  for (std::int64_t line = 0; line < segments.count; line += kLines * kThreads) {
    std::int64_t begin[kLines], length[kLines];
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const std::int64_t mine = line + i * kThreads + thread;
      const bool present = mine < segments.count;
      begin[i] = present ? segments.line(mine)[column] - first_row : 0;
      length[i] = present ? segments.line(mine)[column + 1] : 0;
    }
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const int from = static_cast<int>(max(begin[i], std::int64_t{0}));
      const int end = static_cast<int>(min(begin[i] + length[i], std::int64_t{kWindow}));
      for (int word = from / 32; 32 * word < end; ++word) {
        const int low = max(from - 32 * word, 0), high = min(end - 32 * word, 32);
        if (low < high) atomicOr(&covered[word], ~0u >> (32 - (high - low)) << low);
      }
    }
    __syncthreads();
    if (__syncthreads_and(thread >= kWindowWords || covered[thread] == ~0u)) return;
  }
  for (int row = warp_index(); row < kWindow; row += kWarps) {
    if ((covered[row / 32] >> row % 32 & 1) == 0) fn(first_row + row);
  }
}

// A warp clears a row.
template <class T>
__device__ __forceinline__ void clear_row(const Rows<T>& rows, std::int64_t row, int columns, RowAccess access) {
  T* target = rows.row(row);
  if (access == RowAccess::wide) {
    for (int column = 8 * lane_index(); column < columns; column += 8 * kWarp) *reinterpret_cast<uint4*>(target + column) = uint4{};
  } else {
    for (int column = lane_index(); column < columns; column += kWarp) target[column] = T{};
  }
}

// A value that the compiler cannot see through, so that what is made of it is not kept from one piece of work to the next, in registers
// that the sums need.
__device__ __forceinline__ int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class Tile>
__device__ __forceinline__ LanePointer<Tile> opaque(LanePointer<Tile> pointer) {
  asm volatile("" : "+r"(pointer.lane));
  return pointer;
}

// Calls fn(Parts<>) with what parts_of says.
template <int kParts>
struct Parts {};
template <class Fn>
__device__ __forceinline__ void with_parts(const Segment& segment, Fn&& fn) {
  const int parts = parts_of(segment);
  if (parts == 1) {
    fn(Parts<1>{});
  } else if (parts == 2) {
    fn(Parts<2>{});
  } else {
    fn(Parts<4>{});
  }
}

// Rows of one side of the segment on their way, those of as many heads as the block works on at once; zero beyond the segment's.
template <int kParts, class Tile, class T>
__device__ __forceinline__ void load_segment(Tile& tile, const Rows<const T>& rows, int begin, int length, const Work& work, int heads,
                                             RowAccess access) {
  constexpr int kHeadSize = 8 * Tile::kChunks, kStep = kThreads / Tile::kChunks, kHeadRows = kParts * kPart;
  static_assert(kStep % 8 == 0, "a thread's rows have one permutation");
  static_assert(kStep % kHeadRows == 0 || kHeadRows % kStep == 0, "a thread's rows are as far from their head's first, or in other heads");
  const auto thread = static_cast<unsigned>(opaque(static_cast<int>(threadIdx.x)));  // unsigned, since it is divided
  const unsigned place = thread / Tile::kChunks;
  const int first = static_cast<int>(place), chunk = static_cast<int>(thread % Tile::kChunks);
  const int first_row = static_cast<int>(place % kHeadRows), first_head = work.head + static_cast<int>(place / kHeadRows);
  const int offset = Tile::offset(first, chunk);
  const T* source = rows.row(begin + first_row) + first_head * kHeadSize + 8 * chunk;
  const int rows_left = length - first_row, heads_left = heads - first_head;
  const auto present = [&](int row) { return row % kHeadRows < rows_left && (kParts == kWarps || row / kHeadRows < heads_left); };
  const auto at = [&](int row) { return source + row % kHeadRows * rows.ld + row / kHeadRows * kHeadSize; };
  if (access == RowAccess::wide) {
    const std::uint32_t address = shared_address(tile.bytes) + offset;
#pragma unroll
    for (int row = 0; row < Tile::kRows; row += kStep) cp_async<16>(address + row * Tile::kRowBytes, at(row), present(row) ? 16 : 0);
  } else {
#pragma unroll 1
    for (int row = 0; row < Tile::kRows; row += kStep) {
      T* target = reinterpret_cast<T*>(tile.bytes + offset + row * Tile::kRowBytes);
      const bool loads = present(row);
#pragma unroll 1
      for (int c = 0; c < 8; ++c) target[c] = loads ? at(row)[c] : T{};
    }
  }
}

// Where a warp stands in a segment: its head and its sixteen rows, the same of queries and keys.
template <int kParts>
struct WarpPlace {
  int head, row, tile_row, head_row;  // tile_row: its first of a tile; head_row: its head's first
  bool present;

  __device__ __forceinline__ WarpPlace(const Work& work, int heads) {
    const int warp = opaque(warp_index()), group = warp / kParts % (kWarps / kParts);
    head = work.head + group;
    row = warp % kParts * kPart;
    tile_row = warp * kPart;
    head_row = group * kParts * kPart;
    present = head < heads;
  }
};

// A warp's rows of a tile to one side of the segment.
template <int kParts, class Tile, class T>
__device__ __forceinline__ void store_segment(const Tile& tile, const WarpPlace<kParts>& place, const Rows<T>& rows, int begin, int length,
                                              RowAccess access) {
  constexpr int kStep = kWarp / Tile::kChunks;
  const int lane = opaque(lane_index()), first = lane / Tile::kChunks, chunk = lane % Tile::kChunks;
  const int count = place.present ? length - place.row : 0;
  T* target = rows.row(begin + place.row + first) + place.head * (8 * Tile::kChunks) + 8 * chunk;
  if (access == RowAccess::wide) {
#pragma unroll
    for (int row = 0; row < kPart; row += kStep) {
      if (first + row >= count) continue;
      *reinterpret_cast<uint4*>(target + row * rows.ld) =
          *reinterpret_cast<const uint4*>(tile.bytes + Tile::offset(place.tile_row + first + row, chunk));
    }
  } else {
#pragma unroll 1
    for (int row = 0; row < kPart && first + row < count; row += kStep) {
      const T* source = reinterpret_cast<const T*>(tile.bytes + Tile::offset(place.tile_row + first + row, chunk));
#pragma unroll 1
      for (int c = 0; c < 8; ++c) target[row * rows.ld + c] = source[c];
    }
  }
}

// Scores of keys that a query does not see become -infinity.
template <int kParts>
__device__ __forceinline__ void hide_unseen(Sums<1, 2 * kParts>& scores, const WarpPlace<kParts>& place, const Segment& segment,
                                            Mask mask) {
  if (mask == Mask::none && segment.k_length == kParts * kPart) return;
  int seen[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = place.row + 8 * half + lane_row();
    seen[half] = mask == Mask::none ? segment.k_length : min(segment.k_length, query + 1 + segment.k_length - segment.q_length);
  }
#pragma unroll
  for (int n = 0; n < 2 * kParts; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (8 * n + lane_column() + i % 2 >= seen[i / 2]) scores[0][n][i] = -INFINITY;
    }
  }
}

// Which of a warp's probabilities are kept, a bit a key: of a lane's two queries the lower and the upper half of the keys.
template <int kParts>
struct Kept {
  static constexpr int kHalf = kParts * kPart / 2;
  std::uint32_t keys[2][2] = {};

  __device__ __forceinline__ bool operator()(int n, int i) const {
    return (keys[i / 2][n / kParts] >> (8 * (n % kParts) + lane_column() + i % 2) & 1) != 0;
  }
};

// Draws are four to a quad of keys, counted from key 0: lane 2 r + h draws those that half h of query r's keys lie in.
template <int kParts>
__device__ __forceinline__ Kept<kParts> draw_kept(const Dropout& dropout, const WarpPlace<kParts>& place, const Segment& segment) {
  constexpr int kHalf = Kept<kParts>::kHalf;
  Kept<kParts> kept;
  if (!dropout.draws()) return kept;
  const DrawKey of_launch = draw_key(dropout);
  const auto query = static_cast<std::uint32_t>(segment.q_begin + place.row + lane_index() / 2);
  const auto first = static_cast<std::uint32_t>(segment.k_begin + lane_index() % 2 * kHalf);
  const std::uint32_t quads = kHalf / 4 + (first % 4 != 0 ? 1 : 0);
  std::uint64_t bits = 0;
#pragma unroll 2
  for (std::uint32_t quad = 0; quad < quads; ++quad) {
    const PhiloxCounter draws = of_launch(query, first / 4 + quad, static_cast<unsigned>(place.head));
    std::uint32_t four = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) four |= static_cast<std::uint32_t>(keeps(draws[i], dropout.threshold)) << i;
    bits |= static_cast<std::uint64_t>(four) << 4 * quad;
  }
  const auto mine = static_cast<std::uint32_t>(bits >> first % 4);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) kept.keys[half][upper] = __shfl_sync(~0u, mine, 2 * (lane_row() + 8 * half) + upper);
  }
  return kept;
}

}  // namespace tilewave::attention_on_gpu
