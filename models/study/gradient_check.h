// Every gradient of a recipe's model against central differences, in double precision whatever the recipe's:
// each kind of layer alone, with the recipe's norm placement, activation, dropout and tying, and the whole model with its loss.
// They run on few packed rows: sequences of uneven lengths, padding rows, an ignored label; or on a few pictures. Biases and norms are
// moved off their initial zeros and ones, which would hide terms. Models too large to probe are made smaller, and the plan says where.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/tensor/shape.h"
#include "kernels/core/device.h"
#include "kernels/core/queue.h"
#include "models/recipe/recipe.h"

namespace tilewave {

struct GradientCheckOptions {
  std::string layer;       // the only one to check; empty: all of them
  std::string plant;       // an operation whose backward pass gets a wrong term, so that the check must fail; empty: none
  std::uint64_t seed = 1;  // of weights, inputs, dropout and samples
  // Where it runs. Of a CPU one thread: matrices of a few rows are multiplied before a second one has woken up.
  Queue queue = make_cpu_queue(1);
  DeviceInfo device = probe_cpu(1);
};

// A key of the recipe that is checked at another value than it says.
struct Reduction {
  std::string key;
  std::int64_t from = 0, to = 0;

  friend bool operator==(const Reduction&, const Reduction&) = default;
};

struct GradientCheckPlan {
  ResolvedRecipe resolved;  // as it is checked
  std::vector<Reduction> reductions;
  std::vector<std::string> layers;                           // names for GradientCheckOptions::layer, "model" the last
  std::vector<std::int64_t> source_lengths, target_lengths;  // of the sequences, in tokens; of pictures none
};

struct GradientCheckRow {
  std::string layer, tensor;
  Shape shape;
  std::int64_t probes = 0;
  double norm = 0.0;   // of the gradient over what was probed
  double error = 0.0;  // as framework/autograd/gradcheck.h defines it
  bool passed = false;
};

struct GradientCheckReport {
  std::vector<GradientCheckRow> rows;
  double tolerance = 0.0;

  bool passed() const;
};

GradientCheckPlan plan_gradient_check(const Recipe& recipe);

// The operations whose backward passes a check with these options runs, collected from the graphs, in alphabetical order.
std::vector<std::string> checked_operations(const GradientCheckPlan& plan, const GradientCheckOptions& options);

// Tells the observer each row as soon as it is known. Throws InputError for a layer that the plan does not have and an operation
// that is not among checked_operations(), with the names there are.
GradientCheckReport check_gradients(
    const GradientCheckPlan& plan, const GradientCheckOptions& options,
    const std::function<void(const GradientCheckRow&)>& observer = [](const GradientCheckRow&) {});

}  // namespace tilewave
