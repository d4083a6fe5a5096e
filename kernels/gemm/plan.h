// A GEMM is data before it is a launch: which kernel of the catalog runs a problem, with which tile, how many waves that makes,
// what it should cost and why it was chosen. Plans can be printed, logged, forced by a recipe, stored and compared with
// what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm/composition.h"
#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

struct DeviceInfo;

// The order in which blocks take tiles, as D lies in memory.
enum class RasterKind : std::uint8_t {
  rows,     // along D's rows
  grouped,  // `group` tiles down D's rows before the next column of tiles
  bands,    // down a group of columns of D, group after group
  columns,  // down each column of tiles
  patches,  // so that a GPC's tiles lie together
  library   // a library's own
};
std::string_view name_of(RasterKind kind);
struct TileRaster {
  RasterKind kind = RasterKind::rows;
  std::int64_t group = 1;  // tiles, where the kind is grouped

  friend bool operator==(const TileRaster&, const TileRaster&) = default;
};

struct GemmPlan {
  GemmComposition composition;  // as the catalog has it
  Tile tile;
  int stages = 1;
  int cluster = 1;
  int split = 1;                 // along K
  std::int64_t whole_tiles = 0;  // where K is split: the first ones, whose K is not
  TileRaster raster;
  int algorithm = 0;  // of a library: which of its heuristic's candidates
  std::int64_t blocks = 0;
  Tiling tiling;
  std::int64_t a_alignment = 0, b_alignment = 0, d_alignment = 0;  // bytes
  std::int64_t workspace_bytes = 0;
  bool streams_k = false;    // blocks take even shares of all tiles' K, one behind the other: there are no waves to be quantized
  double predicted_s = 0.0;  // by the kernel's model; where the device's clock is unknown, at 1 GHz: it ranks and tells no time
  std::string inside;        // what stands behind a kernel of several launches, to be read
  std::string reason;

  // What waves are made of: tiles, or parts of those whose K is split.
  std::int64_t items() const { return whole_tiles + (tiling.tiles - whole_tiles) * split; }

  // The same launch: what was predicted and why it was chosen do not count.
  friend bool operator==(const GemmPlan& a, const GemmPlan& b) {
    return a.composition == b.composition && a.tile == b.tile && a.stages == b.stages && a.cluster == b.cluster && a.split == b.split &&
           a.raster == b.raster && a.algorithm == b.algorithm && a.blocks == b.blocks && a.workspace_bytes == b.workspace_bytes;
  }
};

// Which shapes Tensor Cores multiply 16-bit operands of: any, or, as libraries once had it, those that are strictly_aligned().
enum class AlignmentPolicy : std::uint8_t { any, strict };

// Elements that 16 bytes hold: what Tensor Cores once wanted multiples of, 8 of 16 bits and 16 of 8.
constexpr std::int64_t strict_multiple(DType operands) { return 16 / size_of(operands); }
// Whether K and the fastest-varying dimension of each of A, B and D are such multiples (Matrix Multiplication Background, section 2.2):
// the other dimensions may be any. What the epilogue reads and writes beside D lies as D does, or is one row, and asks nothing more.
constexpr bool strictly_aligned(const GemmProblem& p) {
  const auto whole = [multiple = strict_multiple(p.operand_dtype)](std::int64_t dimension) { return dimension % multiple == 0; };
  return whole(p.k) && (p.a_major == Major::k || whole(p.m)) && (p.b_major == Major::k || whole(p.n)) &&
         whole(p.d_major == Major::m ? p.m : p.n);
}

// The plan's kernel and tile as `forced` takes them: "persistent/128x192/ping_pong/swap_ab"; where K is split, with its parts:
// "split_k/256x128/k4".
std::string name_of(const GemmPlan& plan);

// How a plan is chosen. `forced` is "", or a kernel's name in the catalog and, in any order behind it, a tile of its and the parts of K
// ("packed_tiles/96x240", "persistent/128x192/ping_pong/swap_ab", "split_k/k4"). `split` is 0, or the parts that every tile's K is taken
// in: 1 leaves out what splits K and what streams it, so that waves are the guide's. Forced parts come before it.
struct GemmChoice {
  std::string forced;
  AlignmentPolicy alignment_policy = AlignmentPolicy::any;
  int split = 0;
};

// The catalog's best kernel and tile for the problem on the device by predicted time, or the best that fits what is forced.
// Throws Error where no kernel runs it, with each one's reason; InputError where its FLOPs are more than 2^63, where the forced kernel or
// tile is unknown, with the known ones, or the forced kernel refuses, or nothing that may run takes K in so many parts.
GemmPlan choose(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice = {});

// All that choose() would look at, each kernel's tiles, the least predicted time first: what to measure where a measurement decides.
// Reasons are empty. Throws as choose() does.
std::vector<GemmPlan> gemm_candidates(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice = {});

}  // namespace tilewave
