// An operation of one's own: half of a gated linear unit, forward and backward, as docs/use/gradients.md explains it, checked by central
// differences. A wrong term that is planted in its backward pass must be found: a check that cannot fail proves nothing.
#include <cmath>
#include <cstdio>
#include <span>

#include "framework/autograd/gradcheck.h"
#include "framework/ops/linear.h"

namespace {

using namespace tilewave;

double& at(const Tensor& tensor, std::int64_t row, std::int64_t column) { return tensor.view().row<double>(row)[column]; }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// y = a * sigmoid(b), element by element
Variable gate(Context& context, const Variable& a, const Variable& b) {
  check_same_shape("gate", "a", a.shape(), "b", b.shape());
  TW_CHECK(context.precision().precision == Precision::fp64 && !context.tracing(), "gate: written for fp64 on a CPU.");
  const Tensor values = a.value(), gates = b.value();               // [tokens, d]
  const Tensor y = context.tensor(values.shape(), values.dtype());  // [tokens, d]
  for (std::int64_t r = 0; r < y.rows(); ++r) {
    for (std::int64_t c = 0; c < y.cols(); ++c) at(y, r, c) = at(values, r, c) * sigmoid(at(gates, r, c));
  }

  // da = dy sigmoid(b);  db = dy a sigmoid(b) (1 - sigmoid(b))
  return make_variable(context, y, "gate", {a, b}, [values, gates](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    for (std::size_t input = 0; input < 2; ++input) {
      if (!slots[input].needed()) continue;
      const GradientSlot::Target target = slots[input].open(ctx);
      for (std::int64_t r = 0; r < dy.rows(); ++r) {
        for (std::int64_t c = 0; c < dy.cols(); ++c) {
          const double s = sigmoid(at(gates, r, c));
          const double term = at(dy, r, c) * (input == 0 ? s : at(values, r, c) * s * (1.0 - s));
          at(target.gradient, r, c) = target.accumulate ? at(target.gradient, r, c) + term : term;
        }
      }
    }
  });
}

}  // namespace

int main() {
  Context context(make_cpu_queue(), probe_cpu(), {.precision = Precision::fp64});
  const Variable x = random_leaf(context, {5, 8}, 1), value = random_leaf(context, {6, 8}, 2), gates = random_leaf(context, {6, 8}, 3);
  const auto gated_linear_unit = [&](Context& c) {
    return gate(c, linear(c, {.x = x, .weight = value}), linear(c, {.x = x, .weight = gates}));
  };
  const std::vector<NamedVariable> variables = {{"x", x}, {"value", value}, {"gates", gates}};

  const GradcheckReport report = gradcheck(context, gated_linear_unit, variables);
  for (const GradcheckEntry& entry : report.entries) {
    std::printf("%-6s %.1e %s\n", entry.name.c_str(), entry.error, entry.passed ? "pass" : "FAIL");
  }
  context.plant("gate");  // a wrong term in the backward pass: the same check must see it
  const bool seen = !gradcheck(context, gated_linear_unit, variables).passed();
  std::printf("%s\n", report.passed() && seen ? "the gated linear unit's gradients are right" : "something is wrong");
  return report.passed() && seen ? 0 : 1;
}
