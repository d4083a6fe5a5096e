// Probes: single elements and one random direction, each by central differences with a step that narrows where it disagrees.
#include "framework/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "framework/tensor/host_tensor.h"
#include "framework/tensor/random.h"

namespace tilewave {
namespace {

constexpr int kNarrowings = 4;  // of a probe that disagrees
constexpr double kNarrowing = 1.0 / 8.0;
constexpr int kHopeless = 32;  // probes of a tensor that disagree with every step: then its others are not narrowed either

double uniform(Random& random) { return static_cast<double>(random.next() >> 11) * 0x1p-52 - 1.0; }  // in [-1, 1)

// Puts things back, also where the function checked throws.
template <class Action>
class AtExit {
 public:
  explicit AtExit(Action action) : action_(std::move(action)) {}
  ~AtExit() { action_(); }
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;

 private:
  Action action_;
};

class Prober {
 public:
  Prober(Context& context, const GradcheckFunction& function, const GradcheckOptions& options)
      : context_(context), function_(function), options_(options) {}

  // The loss, without a graph behind it.
  double evaluate() {
    const NoGradient scope(context_);
    return reduce(call());
  }

  void differentiate() {
    const Variable result = call();
    if (result.is_loss()) {
      backward(context_, result);
      return;
    }
    const Tensor seed = context_.tensor(result.shape(), DType::f64);
    write_elements(context_, seed, [&](std::int64_t row, std::int64_t column) { return weight(row * result.cols() + column); });
    backward(context_, result, seed);
  }

  // d loss / d t of `move(t)`, which changes the inputs; that of the step that comes closest to `expected`, the first within `allowed`.
  template <class Move>
  double probe(Move&& move, double expected, double allowed) {
    double step = options_.step, closest = std::numeric_limits<double>::infinity();
    const AtExit back([&] { move(0.0); });
    for (int narrowing = 0; narrowing <= (hopeless_ < kHopeless ? kNarrowings : 0); ++narrowing, step *= kNarrowing) {
      move(step);
      const double above = evaluate();
      move(-step);
      const double measured = (above - evaluate()) / (2.0 * step);
      if (std::abs(measured - expected) < std::abs(closest - expected)) closest = measured;
      if (std::abs(closest - expected) <= allowed) break;
    }
    if (std::abs(closest - expected) > allowed) ++hopeless_;
    return closest;
  }

  void begin_tensor() { hopeless_ = 0; }

 private:
  Variable call() {
    context_.begin_step();
    const AtExit end([&] { context_.end_step(); });
    Variable result = function_(context_);
    TW_CHECK(result, "gradcheck: the function returned an empty Variable.");
    return result;
  }

  double weight(std::int64_t element) const {
    Random random(random_key(options_.seed, element));
    return uniform(random);
  }

  double reduce(const Variable& result) {
    const std::vector<double> elements = read_elements(context_, result.value());
    double loss = 0.0;
    for (std::size_t i = 0; i < elements.size(); ++i)
      loss += result.is_loss() ? elements[i] : elements[i] * weight(static_cast<std::int64_t>(i));
    TW_CHECK(std::isfinite(loss), "gradcheck: the function's result is not finite.");
    return loss;
  }

  Context& context_;
  const GradcheckFunction& function_;
  const GradcheckOptions& options_;
  int hopeless_ = 0;
};

// The elements to probe: all, or a seeded sample without repetition, in order.
std::vector<std::int64_t> choose_elements(std::int64_t elements, const GradcheckOptions& options, std::uint64_t key) {
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(elements));
  std::iota(chosen.begin(), chosen.end(), std::int64_t{0});
  if (elements <= options.exhaustive) return chosen;
  Random random(key);
  const auto samples = static_cast<std::size_t>(std::min(options.samples, elements));
  for (std::size_t i = 0; i < samples; ++i) {
    std::swap(chosen[i], chosen[i + random.next() % (chosen.size() - i)]);
  }
  chosen.resize(samples);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

double norm(const std::vector<double>& values) { return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0)); }

}  // namespace

bool GradcheckReport::passed() const {
  return !entries.empty() && std::all_of(entries.begin(), entries.end(), [](const GradcheckEntry& entry) { return entry.passed; });
}

GradcheckReport gradcheck(Context& context, const GradcheckFunction& function, const std::vector<NamedVariable>& variables,
                          const GradcheckOptions& options) {
  TW_CHECK(context.precision().precision == Precision::fp64, "gradcheck: central differences need the Context in fp64, and it is in ",
           name_of(context.precision().precision), "; make it with {.precision = Precision::fp64}.");
  // Analytic gradients.
  for (const NamedVariable& named : variables) {
    TW_CHECK(named.variable.requires_gradient() && named.variable.gradient() && named.variable.value().dtype() == DType::f64,
             "gradcheck: ", named.name, " is no leaf of type f64; make it with random_leaf or Variable::leaf.");
    named.variable.reset_gradient();
  }
  Prober prober(context, function, options);
  prober.differentiate();
  std::vector<std::vector<double>> gradients;
  double global = 0.0;
  for (const NamedVariable& named : variables) {
    TW_CHECK(named.variable.gradient_written(), "gradcheck: the function's result does not depend on ", named.name, ".");
    gradients.push_back(read_elements(context, named.variable.gradient()));
    global = std::hypot(global, norm(gradients.back()));
  }
  TW_CHECK(global > 0.0,
           "gradcheck: every gradient is zero, so that there is nothing to check; a loss is divided by the real_tokens that "
           "Context::write_step_state sets, and dropout may have dropped everything.");

  // Central differences beside them.
  GradcheckReport report{.entries = {}, .tolerance = options.tolerance};
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const Tensor& value = variables[v].variable.value();
    const std::vector<double>& gradient = gradients[v];
    const std::vector<double> before = read_elements(context, value);
    const double floor = 1e-3 * global;
    const double scale = std::max(norm(gradient), floor) / std::sqrt(static_cast<double>(before.size()));
    const double allowed = 0.5 * options.tolerance * scale;  // a tensor whose probes are all within it passes
    std::vector<double> analytic, difference;
    prober.begin_tensor();
    const auto compare = [&](double expected, double measured) {
      analytic.push_back(expected);
      difference.push_back(measured - expected);
    };

    const std::vector<std::int64_t> chosen = choose_elements(value.shape().elements(), options, random_key(options.seed, v, 1));
    for (const std::int64_t element : chosen) {
      const Tensor cell = value.slice_rows(element / value.cols(), 1).columns(element % value.cols(), 1);
      const double centre = before[static_cast<std::size_t>(element)];
      const double expected = gradient[static_cast<std::size_t>(element)];
      const auto move = [&](double t) { write_elements(context, cell, std::vector<double>{centre + t}); };
      compare(expected, prober.probe(move, expected, allowed));
    }
    double error = norm(difference) / std::max(norm(analytic), floor);

    if (chosen.size() < before.size()) {
      std::vector<double> direction(before.size());
      Random random(random_key(options.seed, v, 2));
      for (double& component : direction) component = uniform(random);
      const double length = norm(direction);
      for (double& component : direction) component /= length;
      const double expected = std::inner_product(gradient.begin(), gradient.end(), direction.begin(), 0.0);
      const auto move = [&](double t) {
        std::vector<double> moved = before;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += t * direction[i];
        write_elements(context, value, moved);
      };
      const double measured = prober.probe(move, expected, allowed);
      // A direction sees one component of the gradient: its error is measured against the component a random one would have.
      error = std::max(error, std::abs(measured - expected) / std::max({std::abs(expected), scale, floor}));
    }
    report.entries.push_back({.name = variables[v].name,
                              .shape = value.shape(),
                              .probes = static_cast<std::int64_t>(chosen.size()) + (chosen.size() < before.size() ? 1 : 0),
                              .norm = norm(analytic),
                              .error = error,
                              .passed = error <= options.tolerance});
  }
  return report;
}

Variable random_leaf(Context& context, Shape shape, std::uint64_t seed, double deviation) {
  const Tensor value = context.persistent(shape, DType::f64);
  write_elements(context, value, [&](std::int64_t row, std::int64_t column) {
    Random random(random_key(seed, row, column));
    double sum = 0.0;  // of twelve uniform draws: mean 0, variance 1 after scaling
    for (int i = 0; i < 12; ++i) sum += uniform(random);
    return deviation * sum * 0.5;
  });
  return Variable::leaf(value, context.persistent(shape, DType::f64));
}

}  // namespace tilewave
