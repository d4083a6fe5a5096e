// Central differences against backward(), for any function of Variables: for the check command, tilewave's tests and yours.
//
//   Context context(make_cpu_queue(), probe_cpu(), {.precision = Precision::fp64});
//   GradcheckReport report = gradcheck(context, [&](Context& c) { return my_layer(c, x, weight); }, {{"x", x}, {"weight", weight}});
//
// The function is called often and must give the same result for the same inputs; whatever shape that has, it is reduced to
// sum(result * weights) with seeded random weights, except that of a loss (cross_entropy), which stays as it is. Elements of tensors up to
// `exhaustive` are all probed; of larger ones a seeded sample and one random direction over all of them.
// The error of a tensor is ||numeric - analytic|| / max(||analytic||, 1e-3 x the global norm) over what was probed.
// A kink within the step (ReLU at 0) shows as a disagreement that goes away with a narrower step, and a wrong gradient does not:
// a probe that disagrees is repeated with narrower steps, and the closest counts. At the kink itself there is no gradient to check.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/autograd/variable.h"

namespace tilewave {

struct NamedVariable {
  std::string name;
  Variable variable;  // a leaf of type f64
};

struct GradcheckOptions {
  double tolerance = 1e-6;
  double step = 1e-5;
  std::int64_t exhaustive = 4096;
  std::int64_t samples = 256;
  std::uint64_t seed = 1;
};

struct GradcheckEntry {
  std::string name;
  Shape shape;
  std::int64_t probes = 0;
  double norm = 0.0;  // of the analytic gradient over what was probed
  double error = 0.0;
  bool passed = false;
};

struct GradcheckReport {
  std::vector<GradcheckEntry> entries;
  double tolerance = 0.0;

  bool passed() const;
};

using GradcheckFunction = std::function<Variable(Context& context)>;

// Throws where the Context is not in fp64, a variable is no leaf of type f64, the function's result is not finite or all gradients are
// zero; the variables then have their values again.
GradcheckReport gradcheck(Context& context, const GradcheckFunction& function, const std::vector<NamedVariable>& variables,
                          const GradcheckOptions& options = {});

// A leaf of type f64 with seeded normal values, for gradient checks.
Variable random_leaf(Context& context, Shape shape, std::uint64_t seed, double deviation = 1.0);

}  // namespace tilewave
