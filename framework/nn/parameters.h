// The named parameters of a model: what files hold, what the optimizer updates, what gradient checks probe.
// Names are paths, "decoder.3.ffn.up.weight". A parameter may have padding rows behind its logical ones (a padded vocabulary):
// they are zero, stay zero, and are in no file.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/autograd/variable.h"
#include "framework/tensor/context.h"
#include "kernels/ops/adamw.h"

namespace tilewave {

enum class ParameterKind : std::uint8_t { weight, bias, norm };  // biases and norms are vectors and do not decay

// Normal values of mean `mean` and deviation `deviation` (0: constant), each a function of (seed, name, row, column) alone.
struct Initialization {
  double mean = 0.0;
  double deviation = 0.0;
};

struct ParameterSpec {
  std::string name;
  Shape shape;                   // logical
  std::int64_t padded_rows = 0;  // at least shape.rows; 0: no padding
  ParameterKind kind = ParameterKind::weight;
  Initialization initialization;
  std::vector<std::int64_t> parts;  // of rows, or of a vector's columns: matrices below each other that are one; empty: it is one by itself
};

struct Parameter {
  ParameterSpec spec;
  Variable variable;  // the compute copy and its gradient, padding rows included
  Tensor master;      // what the optimizer updates; the compute copy itself where both have one type

  const Shape& shape() const { return spec.shape; }
  Tensor logical_master() const { return master.slice_rows(0, spec.shape.rows); }
  Tensor logical_gradient() const { return variable.gradient().slice_rows(0, spec.shape.rows); }
  WeightDecay decay() const { return spec.kind == ParameterKind::weight ? WeightDecay::yes : WeightDecay::no; }
};

// Where gradients lie: each by itself, or those of a layer one behind another, so that ranks sum them as one.
enum class GradientStorage : std::uint8_t { separate, by_layer };

// The gradients of a layer in one piece: what lies between them is zero.
struct LayerGradients {
  std::string name;  // "decoder.3"
  Tensor flat;       // [1, elements]
  std::vector<const Parameter*> parameters;
};

class Parameters {
 public:
  Parameters(Context& context, std::uint64_t seed, GradientStorage storage = GradientStorage::separate)
      : context_(context), seed_(seed), storage_(storage) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Allocates and initialises one. Throws where the name is taken.
  Variable add(const ParameterSpec& spec);

  Context& context() { return context_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  const Parameter* find(std::string_view name) const;
  std::int64_t count() const;  // logical elements

  // By layer: gives every parameter its gradient, once all have been added.
  void place_gradients();
  const std::vector<LayerGradients>& layers() const { return layers_; }  // none where they are separate

  // The next backward() writes gradients instead of adding to them.
  void reset_gradients() const;
  // Gradients that no operation wrote since reset_gradients() become zero.
  void zero_unwritten_gradients() const;
  // Writes the compute copies from the masters, after these were read from a file.
  void refresh_compute_copies() const;

 private:
  Context& context_;
  std::uint64_t seed_;
  GradientStorage storage_;
  std::vector<LayerGradients> layers_;
  std::deque<Parameter> parameters_;
  std::unordered_map<std::string_view, const Parameter*> by_name_;
};

}  // namespace tilewave
