// GEMMs as figures ask for them: by BLAS layout or by a layer's phase, in a tile that is held along a whole figure, and by whom.
#pragma once

#include <optional>

#include "models/figures/figure.h"
#include "models/planning/plan.h"

namespace tilewave {

// Which of A and B is transposed, of column-major matrices: what BLAS calls a GEMM. Each is a phase of a layer (the guide's Table 1).
enum class BlasLayout : std::uint8_t { tn, nn, nt };
constexpr BlasLayout layout_of(GemmRole role) { return static_cast<BlasLayout>(role); }
constexpr GemmRole role_of(BlasLayout layout) { return static_cast<GemmRole>(layout); }
constexpr std::string_view name_of(BlasLayout layout) {
  constexpr std::string_view names[] = {"TN", "NN", "NT"};
  return names[static_cast<int>(layout)];
}

struct BlasGemm {
  BlasLayout layout = BlasLayout::tn;
  std::int64_t m = 0, n = 0, k = 0;
};
GemmProblem blas_gemm(const BlasGemm& gemm, Precision precision, PitchPolicy pitch);

// The tile that a figure holds where the guide forces 256x128, or the nearest that the device's kernels have, with one kernel of it whose
// K is never split, the fastest for the problem.
struct HeldTile {
  GemmChoice choice;
  Tile tile;
  std::int64_t slots = 1;  // tiles at a time
};
HeldTile held_tile(const GemmProblem& problem, const DeviceInfo& device);

// Panels that several figures have.
inline constexpr FigurePanel kRateAndTimePanels[] = {{.title = "throughput", .quantity = Quantity::rate},
                                                     {.title = "duration", .quantity = Quantity::time}};
inline constexpr FigurePanel kQuantizationPanels[] = {{.title = "(a) throughput", .quantity = Quantity::rate},
                                                      {.title = "(b) duration", .quantity = Quantity::time},
                                                      {.title = "(c) tiles", .quantity = Quantity::tiles}};

// Where a series' GEMM stands in a figure.
struct Place {
  std::string series;
  double x = 0.0;
  std::string label = {};
  std::string group = {};
};
// The model's choice; Tensor Cores on strictly aligned operands alone; and, where the setting asks for one, the library's.
FigurePoint chosen_point(const Place& place, const GemmProblem& problem);
FigurePoint strict_point(const Place& place, const GemmProblem& problem);
void add_library_point(FigurePoints& figure, const Place& place, const GemmProblem& problem, const FigureSetting& setting);

// A figure of tile or wave quantization at one N: the GEMM in the held tile, and as the model chooses it. The former is returned.
FigurePoint add_held_and_free(FigurePoints& figure, const HeldTile& held, const GemmProblem& problem);
// Whether the guide's own sizes are those that it took for Volta.
bool sized_for_volta(const FigureSetting& setting);

inline constexpr std::string_view kLibrary = "cublaslt";
std::string with_library(const std::string& series);  // "forward, cuBLASLt"

// A layer's three phases at a place: the model's choice, and the library's behind each.
struct LayerPlace {
  double x = 0.0;
  std::string label = {};
  std::string group = {};
  AlignmentPolicy policy = AlignmentPolicy::any;
  PitchPolicy pitch = PitchPolicy::packed;
};
void add_phases(FigurePoints& figure, const LayerGemm& layer, const LayerPlace& place, const FigureSetting& setting);

// Phrases for FigurePoints::how.
std::string toy_text(const FigureSetting& setting);  // " At a sixteenth ..., since this is a CPU.", or nothing

}  // namespace tilewave
