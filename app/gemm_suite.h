// What the claims about GEMMs are made over, as data: fully-connected layers, what a training step asks of them, and the targets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/pitch.h"
#include "kernels/error.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

// A fully-connected layer on a number of tokens, written out<-in@tokens.
struct Layer {
  std::int64_t out = 0, in = 0, tokens = 0;

  std::string text() const { return sentence(out, "<-", in, "@", tokens); }
};
// InputError, naming the option, where the text is no layer.
Layer parse_layer(const std::string& text);

// What a training step asks of a layer. wgrad_accumulate adds into an fp32 gradient; forward_gelu has a bias and stores the GELU's
// input; dgrad_gelu multiplies by the GELU's derivative; wgrad_bias sums the bias gradient on its way.
enum class GemmForm : std::uint8_t { forward, dgrad, wgrad, wgrad_accumulate, forward_gelu, dgrad_gelu, wgrad_bias };
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
GemmProblem problem_of(const GemmCase& asked, const GemmTypes& types);

// A ratio and its targets: the geometric mean over the claim's items, and what none of them is to be under.
struct GemmClaim {
  std::string name;
  double mean = 0.0, least = 0.0;  // 0: no target
};
// `ours` against `other`, which is the library's on the same problem, or a problem of our own: then in multiply-adds a second.
// A bias gradient's cost is what it adds to `bias_gradient_on`, the wgrad that it rides on, on both sides.
struct GemmItem {
  GemmCase ours;
  std::size_t claim = 0;
  std::optional<GemmCase> other;
  std::optional<Layer> bias_gradient_on;
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
