// Allocation and initialisation of parameters.
#include "framework/parameters.h"

#include <cmath>
#include <numbers>

#include "framework/host_tensor.h"
#include "framework/random.h"
#include "kernels/add.h"
#include "kernels/fill.h"

namespace tilewave {
namespace {

// The normal distribution by Box and Muller, from two uniform draws of one stream.
double standard_normal(std::uint64_t key) {
  Random random(key);
  const double radius = (static_cast<double>(random.next() >> 11) + 1.0) * 0x1p-53;  // in (0, 1]
  const double angle = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

std::uint64_t hash(std::string_view name) {
  std::uint64_t value = name.size();
  for (const char character : name) value = mix64(value ^ (static_cast<unsigned char>(character) + kGolden64));
  return value;
}

void initialize(Context& context, const Tensor& tensor, const Initialization& initialization, std::uint64_t key) {
  write_elements(context, tensor, [&](std::int64_t row, std::int64_t column) {
    if (initialization.deviation == 0.0) return initialization.mean;
    return initialization.mean + initialization.deviation * standard_normal(random_key(key, row, column));
  });
}

}  // namespace

Variable Parameters::add(const ParameterSpec& spec) {
  TW_CHECK(find(spec.name) == nullptr, "two parameters are called ", spec.name, "; give one of them another name.");
  TW_CHECK(spec.padded_rows == 0 || spec.padded_rows >= spec.shape.rows, spec.name, ": ", spec.padded_rows, " padded rows cannot hold ",
           spec.shape.rows, " rows.");
  const PrecisionTable& types = context_.precision();
  const Shape stored{spec.padded_rows == 0 ? spec.shape.rows : spec.padded_rows, spec.shape.cols};
  Parameter parameter{.spec = spec, .variable = {}, .master = context_.persistent(stored, types.master)};
  const Tensor compute = types.compute == types.master ? parameter.master : context_.persistent(stored, types.compute);
  parameter.variable = Variable::leaf(compute, context_.persistent(stored, types.gradient));
  const std::uint64_t key = random_key(seed_, hash(spec.name));
  initialize(context_, parameter.logical_master(), spec.initialization, key);
  if (compute.data() != parameter.master.data()) initialize(context_, compute.slice_rows(0, spec.shape.rows), spec.initialization, key);
  parameters_.push_back(std::move(parameter));
  return parameters_.back().variable;
}

const Parameter* Parameters::find(std::string_view name) const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.spec.name == name) return &parameter;
  }
  return nullptr;
}

std::int64_t Parameters::count() const {
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters_) elements += parameter.shape().elements();
  return elements;
}

void Parameters::reset_gradients() const {
  for (const Parameter& parameter : parameters_) parameter.variable.reset_gradient();
}

void Parameters::zero_unwritten_gradients() const {
  for (const Parameter& parameter : parameters_) {
    if (!parameter.variable.gradient_written()) context_.launch(FillArgs{.y = parameter.variable.gradient().view(), .value = 0.0});
  }
}

void Parameters::refresh_compute_copies() const {
  for (const Parameter& parameter : parameters_) {
    const Tensor& compute = parameter.variable.value();
    if (compute.data() == parameter.master.data()) continue;
    context_.launch(AddArgs{.a = parameter.master.view(), .b = {}, .y = compute.view()});
  }
}

}  // namespace tilewave
