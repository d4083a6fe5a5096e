// What the claims about GEMMs are made over, as data: fully-connected layers, what a training step asks of them, and the targets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/literals.h"
#include "framework/tensor/pitch.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

// What a training step asks of a layer. wgrad_accumulate adds into an fp32 gradient; forward_gelu has a bias and stores the GELU's
// input; dgrad_gelu multiplies by the GELU's derivative; dgrad_gelu_bias also wants the bias gradient of the layer below, the sums of dX
// over tokens; wgrad_bias sums the layer's own bias gradient on its way. forward_beta reads a C beside: alpha A B + beta C.
enum class GemmForm : std::uint8_t {
  forward,
  dgrad,
  wgrad,
  wgrad_accumulate,
  forward_gelu,
  dgrad_gelu,
  dgrad_gelu_bias,
  wgrad_bias,
  forward_beta
};
std::string_view name_of(GemmForm form);
std::vector<std::string> gemm_forms();
GemmForm parse_gemm_form(const std::string& name);

// bf16, f16, tf32, f32 or f64, and what gradients are summed in.
struct GemmTypes {
  DType operand = DType::bf16, gradient = DType::f32;
  MathMode math = MathMode::ieee;
};
GemmTypes parse_gemm_types(const std::string& name);

struct GemmCase {
  Layer layer;
  GemmForm form = GemmForm::forward;
  PitchPolicy pitch = PitchPolicy::aligned;
};
// One launch that does all of it.
GemmProblem problem_of(const GemmCase& asked, const GemmTypes& types);

// The dgrad_gelu_bias as our rows do it: dX by one launch, its sums by what they add to a wgrad of the layer below.
struct InParts {
  GemmCase dgrad, wgrad, wgrad_bias;
};
InParts in_parts(const GemmCase& asked);

// A ratio and its targets: the geometric mean over the claim's items, and what none of them is to be under.
struct GemmClaim {
  std::string name;
  double mean = 0.0, least = 0.0;  // 0: no target
};
// How the library does what ours does in parts: in one launch of its own, or in the same parts.
enum class PeerLaunches : std::uint8_t { one, in_parts };
// `ours` against `other`, which is the library's on the same problem, or a problem of our own: then in multiply-adds a second.
struct GemmItem {
  GemmCase ours;
  std::size_t claim = 0;
  std::optional<GemmCase> other;
  PeerLaunches peer = PeerLaunches::one;
};
struct GemmSuite {
  std::vector<GemmClaim> claims;
  std::vector<GemmItem> items;
};

// The Transformer suite, whole, or cut to the forms and layers named (none: all).
struct SuiteCut {
  std::vector<GemmForm> forms;
  std::vector<std::string> layers;
};
GemmSuite transformer_suite(const SuiteCut& cut);
// Every form on every layer, without targets. No layers: the portable rows' suite, the aligned layers and then the unaligned ones.
GemmSuite layers_suite(const SuiteCut& cut, PitchPolicy pitch);

}  // namespace tilewave
