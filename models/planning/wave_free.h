// The guide's third step: rows of tokens at which one layer's GEMM fills whole waves of tiles, or almost. Unlike the other guidelines
// it asks a device, so it is decided once, where a run begins: the recipe it leaves holds numbers and no question. Of ranks that share a
// batch out the GEMM is that of one share, and the numbers are the whole batch's.
// Source: Optimizing Linear/Fully-Connected Layers, section 4.2.3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/planning/plan.h"
#include "models/planning/real_tokens.h"
#include "models/recipe/guidelines.h"

namespace tilewave {

// "A multiple of the SMs or just below": at least this much of the waves' slots is used.
inline constexpr double kWaveFreeEfficiency = 0.95;
// Predicted times this close are the same.
inline constexpr double kSameTime = 1e-3;

struct RowsPlan {
  std::int64_t rows = 0;
  StepPlan step;
};

// The rows that are N of guidelines.wave_layer's GEMM in role wave_role: the encoder's, the decoder's or, asked to be as many, both.
struct WaveRows {
  std::int64_t asked = 0;
  bool source = false, target = false;
  std::string layer;  // "decoder.*.ffn.up"

  Recipe moved(const Recipe& recipe, std::int64_t rows) const;  // the recipe with so many of them
};
// InputError where no layer of that name has such a GEMM, or its tiles do not depend on rows.
std::vector<WaveRows> wave_rows(const Recipe& recipe, const DeviceInfo& device);

// The wave-free numbers from `least` to `most`, ascending, with the step planned anew for each: the number asked for and whole columns
// of tiles; where none of these is, `most`. Numbers are multiples of guidelines.batch_multiple_of and hold the longest sequence. InputError
// where no row of the device that runs the GEMM has guidelines.wave_tile.
std::vector<RowsPlan> wave_free_steps(const Recipe& recipe, const WaveRows& rows, std::int64_t least, std::int64_t most,
                                      const DeviceInfo& device);

struct WaveFree {
  Recipe recipe;  // wave_free_batch = "off", the rows moved
  std::vector<Adjustment> adjustments;
};

// The recipe with wave_free_batch = "off".
Recipe without_waves(const Recipe& recipe);

// Moves the rows to the wave-free number within guidelines.wave_limit whose step is predicted to take the least time per real token
// (real_tokens.h); of times within kSameTime the nearest wins, and rows that nothing betters stay, which the adjustment says. Sides asked
// for as different numbers are weighed together: one moves alone, or both to wave-free numbers near their proportion. A recipe with
// wave_free_batch = "off" comes back as it is. Where no wave-free number lies within the limit: InputError, or the rows stay.
enum class NoWholeWaves : std::uint8_t { refused, rows_stay };
WaveFree settle_wave_free_batch(const Recipe& recipe, const DeviceInfo& device, RealTokenCounter& tokens,
                                NoWholeWaves none = NoWholeWaves::refused);
WaveFree settle_wave_free_batch(const Recipe& recipe, const DeviceInfo& device);

}  // namespace tilewave
