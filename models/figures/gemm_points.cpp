#include "models/figures/gemm_points.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr Tile kGuidesTile = {256, 128}, kCpuTile = {128, 192};

}  // namespace

GemmProblem blas_gemm(const BlasGemm& gemm, Precision precision, PitchPolicy pitch) {
  const auto [layout, m, n, k] = gemm;
  const GemmRole role = role_of(layout);
  switch (role) {
    case GemmRole::forward:
      return plain_gemm({.role = role, .out = m, .in = k, .tokens = n}, precision, pitch);
    case GemmRole::dgrad:
      return plain_gemm({.role = role, .out = k, .in = m, .tokens = n}, precision, pitch);
    case GemmRole::wgrad:
      return plain_gemm({.role = role, .out = n, .in = m, .tokens = k}, precision, pitch);
  }
  throw Error("a GEMM has one of three layouts.");
}

HeldTile held_tile(const GemmProblem& problem, const DeviceInfo& device) {
  const Tile wanted = device.backend == Backend::cpu ? kCpuTile : kGuidesTile;
  const std::vector<GemmPlan> plans = gemm_candidates(problem, device, {.split = 1});
  const auto far = [&](const GemmPlan& plan) { return std::abs(plan.tile.m - wanted.m) + std::abs(plan.tile.n - wanted.n); };
  const GemmPlan& plan = *std::ranges::min_element(plans, {}, far);  // of equals the first, which is the fastest
  return {.choice = {.forced = name_of(plan), .split = 1}, .tile = plan.tile, .slots = plan.tiling.slots};
}

FigurePoint chosen_point(const Place& place, const GemmProblem& problem) {
  FigurePoint point;
  point.series = place.series, point.group = place.group, point.label = place.label;
  point.x = place.x;
  point.problem = problem;
  return point;
}

FigurePoint strict_point(const Place& place, const GemmProblem& problem) {
  FigurePoint point = chosen_point(place, problem);
  point.choice.alignment_policy = AlignmentPolicy::strict;
  return point;
}

FigurePoint add_held_and_free(FigurePoints& figure, const HeldTile& held, const GemmProblem& problem) {
  const auto x = static_cast<double>(problem.n);
  FigurePoint point = chosen_point({.series = concat(held.tile.m, 'x', held.tile.n, " held"), .x = x}, problem);
  point.choice = held.choice;
  figure.points.push_back(point);
  figure.points.push_back(chosen_point({.series = "free choice", .x = x}, problem));
  return point;
}

bool sized_for_volta(const FigureSetting& setting) { return setting.device.capability > 0 && setting.device.capability < 80; }

std::string with_library(const std::string& series) { return series.empty() ? "cuBLASLt" : series + ", cuBLASLt"; }

void add_library_point(FigurePoints& figure, const Place& place, const GemmProblem& problem, const FigureSetting& setting) {
  if (!setting.library) return;
  FigurePoint point = chosen_point(place, problem);
  point.series = with_library(place.series);
  point.choice.forced = kLibrary;
  point.library = true;
  figure.points.push_back(std::move(point));
}

void add_phases(FigurePoints& figure, const LayerGemm& layer, const LayerPlace& place, const FigureSetting& setting) {
  const auto& [x, label, group, policy, pitch] = place;
  for (const GemmRole role : {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad}) {
    LayerGemm gemm = layer;
    gemm.role = role;
    const Place at = {.series = std::string(name_of(role)), .x = x, .label = label, .group = group};
    FigurePoint point = chosen_point(at, plain_gemm(gemm, setting.precision, pitch));
    point.choice.alignment_policy = policy;
    point.pitch = pitch;
    figure.points.push_back(point);
    if (policy == AlignmentPolicy::any) add_library_point(figure, at, point.problem, setting);
  }
}

std::string toy_text(const FigureSetting& setting) {
  return setting.toy() ? " Sizes are a sixteenth of these, since this is a CPU: toys, which show how the command works and not a GPU." : "";
}

}  // namespace tilewave
