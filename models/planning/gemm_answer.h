// What a student asks of one GEMM, or of a layer's three: which sizes near it are faster, from which batch on math limits it, where its
// waves are whole, and which multiples its type wants on the GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/planning/plan.h"

namespace tilewave {

// A GEMM is a layer's forward phase alone: M is out, N tokens, K in.
enum class AskedAs : std::uint8_t { gemm, layer };

struct GemmQuestion {
  AskedAs as = AskedAs::gemm;
  LayerGemm layer;  // its role does not count
  Precision precision = Precision::fp16;
  PitchPolicy pitch = PitchPolicy::packed;
  bool reads_c = false;  // alpha A B + beta C: a C is read beside the operands
  std::function<GemmPlan(const GemmProblem& problem)> plan;

  std::vector<GemmRole> roles() const;
  GemmProblem problem(GemmRole role) const;
};

// One size of a question.
enum class AskedSize : std::uint8_t { out, tokens, in };
std::string_view name_of(AskedSize size, AskedAs as);  // "M", or "out"

// Another number for one size, with which the same FLOPs take less time.
struct BetterSize {
  AskedSize size = AskedSize::out;
  std::int64_t from = 0, to = 0;
  double rate_gain = 0.0;  // of FLOP/s, over all of the question's GEMMs
  double time_gain = 0.0;  // of the whole time, FLOPs more or fewer: positive where even the larger problem takes less
};
// At most one a direction and size: the nearest with nine tenths of the best one's gain, of those that gain at least half a percent. Tried
// are multiples of 8, 64, 128 and 256, whole tiles and whole waves, no farther than an eighth or the next multiple of 64 (of 256, where the
// size is less). Sizes that are no multiple of 8 and outputs as many as a vocabulary's are padded and never cut: nobody can drop tokens.
std::vector<BetterSize> better_sizes(const GemmQuestion& question);

// The least N from which more FLOPs are made a byte than the device turns from memory to math at, M and K as they are; none where no N is
// enough, or a figure is not known.
std::optional<std::int64_t> math_limited_from(const GemmProblem& problem, const DeviceInfo& device);

// Columns of tiles, of outputs `items_down` tiles (or parts of tiles whose K is split) high, from one whole number of waves to the next.
std::int64_t columns_of_whole_waves(std::int64_t slots, std::int64_t items_down);
// That number as N of the plan; none of plans without such waves.
std::optional<std::int64_t> period_of_whole_waves(const GemmPlan& plan);

// Elements of its type that rows should be multiples of: the least for Tensor Cores at their best before cuBLAS 11, and the device's best.
struct AdvisedMultiple {
  std::int64_t least = 0, best = 0;
};
AdvisedMultiple advised_multiple(DType operands, const DeviceInfo& device);

// Tiles at a time that the guide asks for before it calls parallelism enough (Deep Learning Performance, section 3.4).
inline constexpr std::int64_t kGuidesCtasPerSm = 4;

// What the guides measured themselves in such a shape, as a sentence; empty where they did not.
std::string guides_own_rate(const GemmProblem& problem, const DeviceInfo& device);

}  // namespace tilewave
