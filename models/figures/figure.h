// A figure of NVIDIA's guides as data: what is asked of the device at which places of which axis, what stands in which panel, and which
// numbers the guide's claim comes down to. One loop (run_figure.h) predicts the points, and measures them where there is the device.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/measure/convolution_work.h"
#include "framework/tensor/pitch.h"
#include "framework/tensor/precision.h"
#include "framework/tensor/shape.h"
#include "kernels/core/device.h"
#include "kernels/gemm/plan.h"
#include "models/figures/tile_life.h"

namespace tilewave {

enum class AxisScale : std::uint8_t { linear, log, categories };
enum class Quantity : std::uint8_t { time, rate, bandwidth, tiles, intensity };
std::string_view label_of(Quantity quantity);  // "TFLOP/s"

struct FigurePanel {
  std::string_view title;
  Quantity quantity = Quantity::time;
  std::string_view group;  // points of this group alone; empty: all
};

enum class FigureSizes : std::uint8_t { scaled, printed };  // printed: the guide's own, which fill the waves of the guide's GPU

struct FigureSetting {
  DeviceInfo device;
  Precision precision = Precision::fp16;
  FigureSizes sizes = FigureSizes::scaled;
  bool library = false;  // with a library's curve beside ours

  bool printed() const { return sizes == FigureSizes::printed; }
  bool toy() const { return device.backend == Backend::cpu && !printed(); }
  // A size as it is run: on a CPU a sixteenth, as far from the next multiple of 8 as it was.
  std::int64_t sized(std::int64_t size) const;
};

// One launch that a figure asks for: a GEMM, an operation by its name in framework/measure/operation_work.h, or a pass of a convolution.
struct FigurePoint {
  std::string series;
  std::string group;
  std::string label;  // on an axis of categories; x then is its place
  double x = 0.0;
  GemmProblem problem;
  PitchPolicy pitch = PitchPolicy::packed;
  GemmChoice choice;
  bool library = false;
  std::string refused;  // why it cannot be asked for
  std::string operation;
  Shape shape{0, 0};
  std::optional<ConvolutionPass> convolution;
};

// What a reader needs along an axis besides the points.
struct FigureLine {
  std::string label;
  double at = 0.0;
};

struct FigurePoints {
  std::vector<FigurePoint> points;  // those that take turns one after another: equal in x and group
  std::string how;                  // what the sizes are, as a sentence
  std::vector<FigureLine> marks;    // across the x axis: where waves end
  std::vector<FigureLine> levels;   // across the y axis: where devices turn from memory- to math-limited
};

// A point with its answer. Numbers that are not known are NaN.
struct FigureRecord {
  std::string series, group, label;
  double x = 0.0;
  std::string operation;      // "gemm", the operation's name, or "convolution " and its sizes
  std::string phase, layout;  // of a GEMM: "forward", "TN"; of a convolution its phase
  std::int64_t m = 0, n = 0, k = 0;
  std::string dtype, pitch;
  std::int64_t a_alignment = 0, b_alignment = 0, d_alignment = 0;  // bytes
  std::int64_t flops = 0, bytes = 0;
  std::string kernel, tile;
  std::int64_t split = 1, tiles = 0, slots = 0, tail_tiles = 0;
  double useful_fraction = NAN, waves = NAN, tail_fraction = NAN, wave_fraction = NAN;
  double floor_s = NAN, predicted_s = NAN;
  double measured_s = NAN, lower_quartile_s = NAN, upper_quartile_s = NAN;
  int rounds = 0;       // of the measurement
  std::string refused;  // why there is no answer, or no measured one

  bool measured() const { return !std::isnan(measured_s); }
  double flops_per_byte() const { return bytes > 0 ? static_cast<double>(flops) / static_cast<double>(bytes) : NAN; }
  // What a panel shows of it, where it takes so many seconds.
  double value(Quantity quantity, double seconds) const;

  bool same_question(const FigureRecord& other) const;  // and the same plan to answer it
};
using FigureRecords = std::vector<FigureRecord>;

// What a claim comes down to on a device: a number, predicted and measured, with the range that the quartiles leave it.
struct Effect {
  std::string what;
  double predicted = NAN, measured = NAN, low = NAN, high = NAN;
  std::string_view unit = "x";  // "x": a ratio; "%": a fraction; "": a count
};

// The output of a GEMM in tiles, and the waves in which `slots` of them run at a time.
struct TileDiagram {
  std::string name;   // of its file
  std::string title;  // what it shows
  std::int64_t m = 0, n = 0, k = 0;
  Tile tile;
  std::int64_t slots = 1;
};

struct Figure {
  std::string_view name;
  std::string_view references;
  std::string_view shows;
  std::string_view claim = {};   // the guide's, in our words
  std::string_view absent = {};  // why it is not here yet; empty: it is
  std::string_view axis = {};
  AxisScale scale = AxisScale::linear;
  std::span<const FigurePanel> panels = {};
  bool runs = true;  // its points are launched where there is the device; else they are counted
  std::function<FigurePoints(const FigureSetting& setting)> points = nullptr;
  std::function<std::vector<Effect>(const FigureRecords& records)> effects = nullptr;
  std::function<std::vector<TileDiagram>(const FigureSetting& setting)> diagrams = nullptr;
  std::function<std::vector<TileLife>(const FigureSetting& setting)> lives = nullptr;
};

}  // namespace tilewave
