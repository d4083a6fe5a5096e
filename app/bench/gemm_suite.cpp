// The suites, and problems as a step poses them.
#include "app/bench/gemm_suite.h"

#include <algorithm>

namespace tilewave {
namespace {

constexpr std::string_view kForms[] = {"forward",    "dgrad",           "wgrad",      "wgrad_accumulate", "forward_gelu",
                                       "dgrad_gelu", "dgrad_gelu_bias", "wgrad_bias", "forward_beta"};
using enum GemmForm;

template <class T>
bool among(const std::vector<T>& some, const T& one) {
  return some.empty() || std::find(some.begin(), some.end(), one) != some.end();
}

}  // namespace

std::string_view name_of(GemmForm form) { return kForms[static_cast<std::size_t>(form)]; }

std::vector<std::string> gemm_forms() { return {std::begin(kForms), std::end(kForms)}; }

GemmForm parse_gemm_form(const std::string& name) {
  const auto* const found = std::find(std::begin(kForms), std::end(kForms), name);
  std::string known;
  for (const std::string_view form : kForms) known += concat(known.empty() ? "" : ", ", form);
  TW_CHECK_INPUT(found != std::end(kForms), "--form ", name, ": there are ", known, ".");
  return static_cast<GemmForm>(found - std::begin(kForms));
}

GemmTypes parse_gemm_types(const std::string& name) {
  if (name == "bf16") return {.operand = DType::bf16};
  if (name == "f16") return {.operand = DType::f16};
  if (name == "tf32") return {.operand = DType::f32, .math = MathMode::tf32};
  if (name == "f32") return {.operand = DType::f32};
  if (name == "f64") return {.operand = DType::f64, .gradient = DType::f64};
  throw InputError(concat("--dtype ", name, ": there are bf16, f16, tf32, f32 and f64."));
}

GemmProblem problem_of(const GemmCase& asked, const GemmTypes& types) {
  const auto& [out, in, tokens] = asked.layer;
  const bool forwards = asked.form == forward || asked.form == forward_gelu || asked.form == forward_beta;
  const bool dgrads = asked.form == dgrad || asked.form == dgrad_gelu || asked.form == dgrad_gelu_bias;
  GemmProblem p = {.operand_dtype = types.operand, .output_dtype = types.operand, .math = types.math, .epilogue = {}};
  const auto pitch = [&](std::int64_t cols, DType dtype) { return pitch_of(cols, dtype, asked.pitch); };
  const auto alignment = [](std::int64_t elements, DType dtype) { return alignment_of(0, elements * size_of(dtype)); };
  if (forwards) {
    p.role = GemmRole::forward;
    p.m = out, p.n = tokens, p.k = in;
    p.a_pitch = p.b_pitch = pitch(in, types.operand);
    if (asked.form == forward_beta) p.epilogue = {.residual = true};
    if (asked.form == forward_gelu) p.epilogue = {.bias = true, .activation = Activation::gelu_tanh, .saved_input = true};
  } else if (dgrads) {
    p.role = GemmRole::dgrad;
    p.m = in, p.n = tokens, p.k = out;
    p.a_major = Major::m;
    p.a_pitch = pitch(in, types.operand), p.b_pitch = pitch(out, types.operand);
    if (asked.form != dgrad) p.epilogue = {.derivative = Activation::gelu_tanh, .output_sums = asked.form == dgrad_gelu_bias};
  } else {
    p.role = GemmRole::wgrad;
    p.m = in, p.n = out, p.k = tokens;
    p.a_major = Major::m, p.b_major = Major::n;
    p.a_pitch = pitch(in, types.operand), p.b_pitch = pitch(out, types.operand);
    p.epilogue = {.bias_gradient = asked.form == wgrad_bias, .accumulate = asked.form == wgrad_accumulate};
    if (asked.form == wgrad_accumulate) p.output_dtype = types.gradient;
  }
  p.d_pitch = pitch(p.m, p.output_dtype);
  p.a_alignment = alignment(p.a_pitch, types.operand);
  p.b_alignment = alignment(p.b_pitch, types.operand);
  p.d_alignment = alignment(p.d_pitch, p.output_dtype);
  return p;
}

InParts in_parts(const GemmCase& asked) {
  const auto& [out, in, tokens] = asked.layer;
  InParts parts = {.dgrad = asked, .wgrad = {.layer = {.out = in, .in = out, .tokens = tokens}, .form = wgrad, .pitch = asked.pitch}};
  parts.dgrad.form = dgrad_gelu;
  parts.wgrad_bias = parts.wgrad;
  parts.wgrad_bias.form = wgrad_bias;
  return parts;
}

GemmSuite transformer_suite(const SuiteCut& cut) {
  GemmSuite suite;
  const auto add = [&](std::size_t claim, const GemmItem& item) {
    GemmItem own = item;
    own.claim = claim;
    if (among(cut.forms, item.ours.form) && among(cut.layers, item.ours.layer.text())) suite.items.push_back(own);
  };
  const auto claim = [&](std::string name, double mean, double least) {
    suite.claims.push_back({.name = std::move(name), .mean = mean, .least = least});
    return suite.claims.size() - 1;
  };

  std::vector<Layer> layers;
  for (const auto& [out, in] : {std::pair{4096, 1024}, {1024, 4096}, {1024, 1024}, {3072, 1024}}) {
    for (const int tokens : {2048, 2560, 4095, 4096, 4224, 5120, 16384}) layers.push_back({.out = out, .in = in, .tokens = tokens});
  }
  for (const int out : {33712, 33792}) layers.push_back({.out = out, .in = 1024, .tokens = 5120});
  for (const auto& [out, in] : {std::pair{768, 768}, {2304, 768}, {3072, 768}, {768, 3072}, {50304, 768}}) {
    for (const int tokens : {16384, 65536}) layers.push_back({.out = out, .in = in, .tokens = tokens});
  }
  for (const int size : {1024, 2048, 4096, 8192}) layers.push_back({.out = size, .in = size, .tokens = size});

  for (const GemmForm form : {forward, dgrad, wgrad, wgrad_accumulate}) {
    const bool sums = form == wgrad_accumulate;
    const std::size_t own =
        claim(sums ? "wgrad added into fp32" : concat(name_of(form), ", 16-bit output"), sums ? 1.06 : 1.03, sums ? 0.97 : 0.95);
    for (const Layer& layer : layers) add(own, {.ours = {.layer = layer, .form = form}});
  }
  const std::size_t gelu = claim("forward + bias + GELU, its input stored", 1.20, 1.05);
  for (const Layer& layer : layers) {
    if (layer.out == 4 * layer.in) add(gelu, {.ours = {.layer = layer, .form = forward_gelu}});
  }
  const std::size_t through = claim("dgrad through GELU' + bias gradient", 1.60, 1.30);
  const std::size_t parts = claim("dgrad through GELU' + bias gradient, peer in parts", 0.0, 0.0);
  for (const Layer& layer : layers) {
    if (layer.in != 4 * layer.out) continue;
    add(through, {.ours = {.layer = layer, .form = dgrad_gelu_bias}});
    add(parts, {.ours = {.layer = layer, .form = dgrad_gelu_bias}, .peer = PeerLaunches::in_parts});
  }
  const std::size_t fused = claim("our fused forms / our plain GEMM", 0.95, 0.90);
  for (const char* text : {"4096<-1024@5120", "4096<-1024@16384", "3072<-768@65536"}) {
    const Layer layer = layer_of({"--layer", text});
    add(fused, {.ours = {.layer = layer, .form = forward_gelu}, .other = GemmCase{.layer = layer, .form = forward}});
  }
  for (const char* text : {"1024<-4096@5120", "1024<-4096@16384", "768<-3072@65536"}) {
    const Layer layer = layer_of({"--layer", text});
    add(fused, {.ours = {.layer = layer, .form = dgrad_gelu}, .other = GemmCase{.layer = layer, .form = dgrad}});
  }
  for (const GemmForm form : {forward, dgrad, wgrad}) {
    const std::size_t packed = claim(concat("packed pitch / aligned, ", name_of(form)), form == forward ? 0.92 : 0.85, 0.0);
    const std::size_t aligned = claim(concat("aligned pitch / a padded vocabulary, ", name_of(form)), 0.98, 0.0);
    for (const auto& [own, padded] : {std::pair{"33708<-1024@5120", "33792<-1024@5120"}, {"50257<-768@16384", "50304<-768@16384"}}) {
      const Layer layer = layer_of({"--layer", own});
      const GemmCase straight = {.layer = layer, .form = form};
      add(packed, {.ours = {.layer = layer, .form = form, .pitch = PitchPolicy::packed}, .other = straight});
      add(aligned, {.ours = straight, .other = GemmCase{.layer = layer_of({"--layer", padded}), .form = form}});
    }
  }
  return suite;
}

GemmSuite layers_suite(const SuiteCut& cut, PitchPolicy pitch) {
  static const std::vector<std::string> portable = {"4096<-1024@2048",  "4096<-1024@4096",  "4096<-1024@5120",  "4096<-1024@16384",
                                                    "1024<-4096@5120",  "1024<-1024@4096",  "1024<-1024@16384", "3072<-1024@5120",
                                                    "33712<-1024@5120", "50304<-768@16384", "768<-768@65536",   "3072<-768@65536",
                                                    "768<-3072@65536",  "1024<-1024@1024",  "2048<-2048@2048",  "4096<-4096@4096",
                                                    "8192<-8192@8192",  "33708<-1024@5120", "50257<-768@16384"};
  GemmSuite suite;
  for (const GemmForm form : cut.forms.empty() ? std::vector{forward, dgrad, wgrad, wgrad_accumulate} : cut.forms) {
    const std::size_t claim = suite.claims.size();
    suite.claims.push_back({.name = std::string(name_of(form))});
    if (form == dgrad_gelu_bias) suite.claims.push_back({.name = concat(name_of(form), ", peer in parts")});
    for (const std::string& layer : cut.layers.empty() ? portable : cut.layers) {
      const GemmCase ours = {.layer = layer_of({"--layer", layer}), .form = form, .pitch = pitch};
      suite.items.push_back({.ours = ours, .claim = claim});
      if (form == dgrad_gelu_bias) suite.items.push_back({.ours = ours, .claim = claim + 1, .peer = PeerLaunches::in_parts});
    }
  }
  return suite;
}

}  // namespace tilewave
