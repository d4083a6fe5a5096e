// What a GEMM kernel is composed of: the kernel, how its blocks come by their work, which operand is wgmma's rows, and when results leave.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewave {

enum class GemmSchedule : std::uint8_t {
  data_parallel,  // a block has whole tiles
  ping_pong,      // and two warpgroups take turns at them: one finishes while the other multiplies
  sliced_k,       // a block's two warpgroups take every other part of one tile's K
  paired_k,       // two blocks take half of one tile's K each, and finish half of it each
  split_k,        // blocks anywhere take parts of one tile's K, and add up through the workspace
  cluster,        // those of one cluster do, and add up through each other's shared memory
  stream_k        // blocks take even shares of the K of all tiles
};
std::string_view name_of(GemmSchedule schedule);

enum class EpilogueTiming : std::uint8_t {
  immediate,  // results leave before those who multiplied take the next tile
  deferred    // packed in registers, under the next tile's products
};
std::string_view name_of(EpilogueTiming epilogue);

struct GemmComposition {
  std::string_view kernel;
  GemmSchedule schedule = GemmSchedule::data_parallel;
  bool swap_ab = false;  // D's rows in memory are wgmma's columns
  EpilogueTiming epilogue = EpilogueTiming::immediate;

  friend bool operator==(const GemmComposition&, const GemmComposition&) = default;
};

// "persistent/ping_pong/swap_ab": the kernel, and what is not its usual: blocks with whole tiles, operands in their order, results that
// leave at once. A kernel called after its schedule names it once: "stream_k".
std::string name_of(const GemmComposition& composition);

// What a row of earlier versions is called now: "persistent_ping_pong" is "persistent/ping_pong". Other names come back as they are.
std::string_view present_name(std::string_view name);

}  // namespace tilewave
