// A ring of a plan's stages, filled as fast as they are emptied, and consumers one of whose k_tiles follows the other.
#include "models/figures/tile_life.h"

#include <algorithm>

#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/plan.h"
#include "kernels/gemm/tile_pace.h"

namespace tilewave {
namespace {

constexpr std::int64_t kTiles = 3;

class Life {
 public:
  explicit Life(const TilePace& pace) : pace_(pace) {}

  // A tile's k_tiles one after the other, by whoever waits in `lane` from `free_at` on; when the last one's MMAs end.
  double multiply(std::int64_t tile, double free_at, LifeLane& lane) {
    double begin = 0.0, now = free_at;
    for (std::int64_t k_tile = 0; k_tile < pace_.k_tiles; ++k_tile) {
      const double asked =
          ends_.size() < static_cast<std::size_t>(pace_.stages) ? 0.0 : ends_[ends_.size() - static_cast<std::size_t>(pace_.stages)];
      const double arrived = asked + pace_.latency;
      loads.spans.push_back({LifePart::load, tile, asked, arrived, concat("k_tile ", k_tile + 1, " of tile ", tile + 1)});
      now = std::max(now, arrived);
      if (k_tile == 0) begin = now;
      now += pace_.k_tile;
      ends_.push_back(now);
    }
    lane.spans.push_back({LifePart::mma, tile, begin, now, concat("tile ", tile + 1, ": MMAs")});
    return now;
  }
  static double finish(std::int64_t tile, double begin, double cycles, const char* what, LifeLane& lane) {
    lane.spans.push_back({LifePart::epilogue, tile, begin, begin + cycles, concat("tile ", tile + 1, ": ", what)});
    return begin + cycles;
  }

  LifeLane loads = {.label = "TMA", .spans = {}};

 private:
  TilePace pace_;
  std::vector<double> ends_;  // of every k_tile's MMAs, which free its stage
};

// Both consumers share a tile.
std::vector<LifeLane> data_parallel(const TilePace& pace) {
  Life life(pace);
  LifeLane both = {.label = "both consumers", .spans = {}};
  double now = 0.0;
  for (std::int64_t tile = 0; tile < kTiles; ++tile) {
    now = Life::finish(tile, life.multiply(tile, now, both), pace.epilogue, "epilogue", both);
  }
  return {life.loads, both};
}

// The same, but a tile's results leave under the next one's MMAs, the last one's alone.
std::vector<LifeLane> deferred(const TilePace& pace) {
  Life life(pace);
  LifeLane both = {.label = "both consumers", .spans = {}}, stores = {.label = "stores", .spans = {}};
  double now = 0.0;
  for (std::int64_t tile = 0; tile < kTiles; ++tile) {
    now = life.multiply(tile, now, both);
    const bool last = tile + 1 == kTiles;
    const double packed = last ? now : Life::finish(tile, now, pace.packing, "packing", both);
    const double under = last ? pace.epilogue : pace.k_tile * static_cast<double>(pace.k_tiles);
    Life::finish(tile, packed, under, last ? "epilogue" : "stores under MMAs", stores);
    now = packed;
  }
  return {life.loads, both, stores};
}

// Each consumer has every other tile, and one's epilogue lies under the other's MMAs.
std::vector<LifeLane> ping_pong(const TilePace& pace) {
  Life life(pace);
  LifeLane consumers[] = {{.label = "consumer 0", .spans = {}}, {.label = "consumer 1", .spans = {}}};
  double free_at[] = {0.0, 0.0}, tensor_cores = 0.0;
  for (std::int64_t tile = 0; tile < kTiles; ++tile) {
    LifeLane& own = consumers[tile % 2];
    const double begin = std::max(tensor_cores, free_at[tile % 2]);
    tensor_cores = life.multiply(tile, begin, own);
    free_at[tile % 2] = Life::finish(tile, tensor_cores, pace.epilogue, "epilogue", own);
  }
  return {life.loads, consumers[0], consumers[1]};
}

GemmProblem drawn_problem() {
  return {.role = GemmRole::forward,
          .m = 4096,
          .n = 5120,
          .k = 1024,
          .operand_dtype = DType::bf16,
          .output_dtype = DType::bf16,
          .epilogue = {},
          .a_pitch = 1024,
          .b_pitch = 1024,
          .d_pitch = 4096,
          .a_alignment = 128,
          .b_alignment = 128,
          .d_alignment = 128};
}

}  // namespace

std::vector<TileLife> tile_lives(const DeviceInfo& device) {
  const GemmProblem problem = drawn_problem();
  struct Drawn {
    const char* name;
    const char* says;
    std::vector<LifeLane> (*lanes)(const TilePace& pace);
  };
  constexpr Drawn kDrawn[] = {{"persistent", "all wait while a tile is finished", data_parallel},
                              {"persistent/deferred", "results leave under the next tile's MMAs", deferred},
                              {"persistent/ping_pong", "one consumer finishes while the other multiplies", ping_pong}};
  std::vector<TileLife> lives;
  for (const Drawn& drawn : kDrawn) {
    const GemmKernel& kernel = *find_gemm_kernel(Backend::cuda, drawn.name);
    if (device.backend != Backend::cuda || !kernel.refuse(problem, device).empty()) continue;
    const GemmPlan plan = choose(problem, device, {.forced = drawn.name});
    const TilePace pace = tile_pace(problem, plan, device);
    lives.push_back({.title = concat(name_of(plan), ": ", drawn.says, "; ", plan.stages, " stages, ", pace.k_tiles, " k_tiles per tile"),
                     .lanes = drawn.lanes(pace)});
  }
  return lives;
}

}  // namespace tilewave
