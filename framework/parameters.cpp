// Allocation and initialisation of parameters.
#include "framework/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "framework/host_tensor.h"
#include "framework/random.h"
#include "kernels/convert.h"
#include "kernels/fill.h"
#include "kernels/gemm/tiling.h"

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

// Each element is a function of its place alone, so that threads may share them out.
void initialize(Context& context, const Tensor& tensor, const Initialization& initialization, std::uint64_t key) {
  if (context.tracing()) return;
  std::vector<double> elements(static_cast<std::size_t>(tensor.shape().elements()), initialization.mean);
  const auto draw_rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin * tensor.cols(); index < end * tensor.cols(); ++index) {
      elements[static_cast<std::size_t>(index)] +=
          initialization.deviation * standard_normal(random_key(key, index / tensor.cols(), index % tensor.cols()));
    }
  };
  if (initialization.deviation > 0.0) {
    constexpr std::int64_t kElementsAThread = 1 << 18;
    const std::int64_t wanted = std::min<std::int64_t>(std::thread::hardware_concurrency(), std::ssize(elements) / kElementsAThread);
    const std::int64_t rows = ceil_div(tensor.rows(), std::max<std::int64_t>(1, wanted));
    std::vector<std::jthread> threads;
    for (std::int64_t begin = rows; begin < tensor.rows(); begin += rows) {
      threads.emplace_back(draw_rows, begin, std::min(begin + rows, tensor.rows()));
    }
    draw_rows(0, std::min(rows, tensor.rows()));
  }
  write_elements(context, tensor, elements);
}

// The master, rounded to the compute copy's type.
void refresh_compute_copy(Context& context, const Parameter& parameter) {
  const Tensor& compute = parameter.variable.value();
  if (compute.data() == parameter.master.data() || context.tracing()) return;
  context.launch(ConvertArgs{.x = parameter.master.view(), .y = compute.view()});
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
  refresh_compute_copy(context_, parameter);
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
  for (const Parameter& parameter : parameters_) refresh_compute_copy(context_, parameter);
}

}  // namespace tilewave
