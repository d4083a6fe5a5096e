// Tiles and waves, drawn.
#include "kernels/core/error.h"
#include "models/figures/figures.h"
#include "models/figures/gemm_points.h"
#include "models/figures/whole_waves.h"

namespace tilewave {
namespace {

std::vector<TileDiagram> guide_diagrams(const FigureSetting& setting) {
  const GemmProblem problem = blas_gemm({.m = 2304, .n = 1664, .k = 4096}, setting.precision, PitchPolicy::packed);
  const HeldTile held = held_tile(problem, setting.device);
  const WaveShape wave = wave_shape(held.slots);
  return {{.name = "tiled_product",
           .title = "A GEMM in tiles: each CTA steps along K through a strip of A and one of B",
           .m = 768,
           .n = 640,
           .k = 512,
           .tile = {256, 128},
           .slots = 15},
          {.name = "tiles_256x256",
           .title = "256 x 256 in tiles of 128x128: 4 tiles, all of them whole",
           .m = 256,
           .n = 256,
           .k = 256,
           .tile = {128, 128},
           .slots = 4},
          {.name = "tiles_256x257",
           .title = "256 x 257 in tiles of 128x128: 6 tiles, two of them nearly empty",
           .m = 256,
           .n = 257,
           .k = 256,
           .tile = {128, 128},
           .slots = 6},
          {.name = "twelve_blocks_on_8_sms",
           .title = "12 tiles on 8 SMs: 2 waves, the second one half full",
           .m = 384,
           .n = 512,
           .k = 256,
           .tile = {128, 128},
           .slots = 8},
          {.name = "waves_here",
           .title = concat("One column past a whole wave of ", held.slots, " tiles at a time"),
           .m = wave.down * held.tile.m,
           .n = (wave.across + 1) * held.tile.n,
           .k = 4096,
           .tile = held.tile,
           .slots = held.slots}};
}

}  // namespace

const Figure kDiagramsFigure = {
    .name = "diagrams",
    .references = "Matrix Multiplication Background, figures 1 and 6; Deep Learning Performance, figures 3, 4 and 9",
    .shows = "outputs in tiles, coloured by the wave they run in; on Hopper, what a CTA does from tile to tile",
    .claim =
        "An output is cut into tiles, which run in waves: 256 x 256 makes four of 128x128, one more column makes "
        "six, 1.5 times the arithmetic for 0.39 % more work; 12 tiles on 8 SMs leave half of the second wave idle.",
    .runs = false,
    .diagrams = guide_diagrams,
    .lives = [](const FigureSetting& setting) { return tile_lives(setting.device); }};

}  // namespace tilewave
