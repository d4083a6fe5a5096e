// Allocation and initialisation of parameters.
#include "framework/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <system_error>
#include <thread>
#include <vector>

#include "framework/tensor/host_tensor.h"
#include "framework/tensor/random.h"
#include "kernels/gemm/tiling.h"
#include "kernels/ops/convert.h"
#include "kernels/ops/fill.h"

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

// Draws rows [first, last) of a tensor, `cols` elements each.
struct RowsDrawn {
  std::int64_t first = 0, last = 0, cols = 0;
};
void draw_rows(std::vector<double>& elements, const RowsDrawn& rows, const Initialization& initialization, std::uint64_t key) {
  const auto draw = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double* const out = elements.data() + (row - rows.first) * rows.cols;
      for (std::int64_t column = 0; column < rows.cols; ++column) {
        out[column] = initialization.mean + initialization.deviation * standard_normal(random_key(key, row, column));
      }
    }
  };
  constexpr std::int64_t kElementsAThread = 1 << 16;
  const std::int64_t count = rows.last - rows.first;
  const std::int64_t wanted = std::min<std::int64_t>(std::thread::hardware_concurrency(), count * rows.cols / kElementsAThread);
  const std::int64_t share = ceil_div(count, std::max<std::int64_t>(1, wanted));
  std::vector<std::jthread> threads;
  std::int64_t begin = rows.first;
  try {
    for (; begin + share < rows.last; begin += share) threads.emplace_back(draw, begin, begin + share);
  } catch (const std::system_error&) {
    // No further thread can be had: this one draws what is left.
  }
  draw(begin, rows.last);
}

// Each element is a function of its place alone, so that threads may share them out. In pieces: the whole as doubles is twice a tensor.
void initialize(Context& context, const Tensor& tensor, const Initialization& initialization, std::uint64_t key) {
  if (context.tracing()) return;
  constexpr std::int64_t kPieceElements = 1 << 20;
  const std::int64_t piece_rows =
      std::clamp<std::int64_t>(kPieceElements / std::max<std::int64_t>(1, tensor.cols()), 1, std::max<std::int64_t>(1, tensor.rows()));
  std::vector<double> elements;
  for (std::int64_t first = 0; first < tensor.rows(); first += piece_rows) {
    const RowsDrawn rows{.first = first, .last = std::min(first + piece_rows, tensor.rows()), .cols = tensor.cols()};
    elements.assign(static_cast<std::size_t>((rows.last - first) * rows.cols), initialization.mean);
    if (initialization.deviation > 0.0) draw_rows(elements, rows, initialization, key);
    write_elements(context, tensor.slice_rows(first, rows.last - first), elements);
  }
}

// "decoder.3.ffn.up.weight" -> "decoder.3"; "embedding.weight" -> "embedding".
std::string layer_of(const std::string& name) {
  const std::size_t first = name.find('.'), second = first == std::string::npos ? first : name.find('.', first + 1);
  return name.substr(0, second != std::string::npos ? second : first);
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
  const bool separate = storage_ == GradientStorage::separate;
  parameter.variable = Variable::leaf(compute, separate ? context_.persistent(stored, types.gradient) : Tensor());
  const std::uint64_t key = random_key(seed_, hash(spec.name));
  initialize(context_, parameter.logical_master(), spec.initialization, key);
  refresh_compute_copy(context_, parameter);
  parameters_.push_back(std::move(parameter));
  by_name_.emplace(parameters_.back().spec.name, &parameters_.back());
  return parameters_.back().variable;
}

void Parameters::place_gradients() {
  if (storage_ == GradientStorage::separate) return;
  TW_CHECK(layers_.empty(), "the gradients of these parameters have been placed already.");
  for (const Parameter& parameter : parameters_) {
    const std::string layer = layer_of(parameter.spec.name);
    const auto known = std::find_if(layers_.begin(), layers_.end(), [&](const LayerGradients& other) { return other.name == layer; });
    (known != layers_.end() ? *known : layers_.emplace_back(LayerGradients{.name = layer, .flat = {}, .parameters = {}}))
        .parameters.push_back(&parameter);
  }
  const DType dtype = context_.precision().gradient;
  for (LayerGradients& layer : layers_) {
    std::vector<std::int64_t> first;  // element of each
    std::int64_t elements = 0;
    const auto pitch_of = [&](const Shape& shape) {
      return shape.rows == 1 || shape.cols == 1 ? shape.cols : context_.pitch_of(shape.cols, dtype);
    };
    for (const Parameter* parameter : layer.parameters) {
      const Shape& shape = parameter->variable.shape();
      first.push_back(elements);
      elements += round_up(shape.rows * pitch_of(shape), kAlignment / size_of(dtype));
    }
    elements = round_up(elements, context_.ranks().count * kAlignment / size_of(dtype));  // shares of ranks are as aligned
    layer.flat = context_.persistent({1, elements}, dtype);
    const auto storage = std::make_shared<Tensor>(layer.flat);
    for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
      const Variable& variable = layer.parameters[i]->variable;
      char* const data = static_cast<char*>(layer.flat.data()) + first[i] * size_of(dtype);
      variable.bind_gradient(Tensor(std::shared_ptr<void>(storage, data), variable.shape(), pitch_of(variable.shape()), dtype));
    }
  }
}

const Parameter* Parameters::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
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
